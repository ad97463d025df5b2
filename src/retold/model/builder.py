"""Makes a Session of an agent's draft: adds title, counts, usage, models, and estimates of tokens."""

from collections.abc import Sequence
from datetime import datetime
from itertools import chain
from typing import Any

import msgspec

from retold.model.problem import Problem
from retold.model.session import (
    VERSION,
    Counts,
    Coverage,
    Entry,
    Kind,
    Message,
    Project,
    Session,
    SessionStatus,
    SourceFile,
    ToolCall,
    Totals,
    Usage,
    View,
    add_totals,
    sum_usage,
)

TITLE_LENGTH = 120
_TITLE_SOURCE = 10 * TITLE_LENGTH
"""Characters from which a title is made: more than it has, because runs of spaces become one."""
_COMMANDS = ("/", "?")
"""Openings of prompts that are commands of the agent."""
LARGEST_EXTRA = 4096
"""The largest value in a session's `extra`, in bytes of JSON."""


class Beginning(msgspec.Struct, frozen=True, array_like=True):
    """The first entries of a timeline, without the entries: everything that a session says of them."""

    entries: int
    counts: Counts
    usage: Totals
    models: tuple[str, ...]
    first_prompt: str | None
    spoken_prompt: str | None
    """The start of the first prompt that is no command of the agent."""
    last_prompt: str | None


def summarise_beginning(timeline: Sequence[Entry], before: Beginning | None = None) -> Beginning:
    """Return the beginning that some entries make, behind an earlier beginning if there is one."""
    messages = [entry for entry in timeline if type(entry) is Message]
    prompts = [message.prompt for message in messages if message.prompt is not None]
    usage = sum_usage([message.usage for message in messages if message.usage and message.own])
    spoken = next((prompt for prompt in prompts if not prompt.startswith(_COMMANDS)), None)
    own = Beginning(
        len(timeline),
        count_messages(messages),
        usage,
        _models(messages),
        prompts[0] if prompts else None,
        None if spoken is None else spoken[:_TITLE_SOURCE],
        prompts[-1] if prompts else None,
    )
    return own if before is None else _join_beginnings(before, own)


def _join_beginnings(first: Beginning, second: Beginning) -> Beginning:
    return Beginning(
        first.entries + second.entries,
        add_counts(first.counts, second.counts),
        add_totals(first.usage, second.usage),
        tuple(dict.fromkeys((*first.models, *second.models))),
        second.first_prompt if first.first_prompt is None else first.first_prompt,
        second.spoken_prompt if first.spoken_prompt is None else first.spoken_prompt,
        first.last_prompt if second.last_prompt is None else second.last_prompt,
    )


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's contribution to a Session."""

    key: str
    agent: str
    native_id: str | None
    kind: Kind
    project: Project
    summary: str | None = None
    started_at: datetime | None
    ended_at: datetime | None
    are_times_derived: bool = False
    status: SessionStatus
    parent: str | None = None
    usage: Totals | None = None
    """Recorded totals, if they differ from the sum of the messages' usage."""
    sources: tuple[SourceFile, ...]
    coverage: Coverage
    problems: tuple[Problem, ...]
    extra: dict[str, Any] = {}
    full: tuple[Entry, ...]
    active: tuple[Entry, ...]
    beginning: Beginning | None = None
    """The entries before those of `full`, for a session whose file was read from a checkpoint on."""


def assemble_session(draft: Draft, view: View) -> Session:
    """Return the Session in a view."""
    whole = summarise_beginning(draft.full, draft.beginning)
    counts = whole.counts
    if view != "full":
        counts = count_messages([entry for entry in draft.active if type(entry) is Message])
    return Session(
        version=VERSION,
        key=draft.key,
        agent=draft.agent,
        native_id=draft.native_id,
        kind=draft.kind,
        project=draft.project,
        title=_title(draft.summary or _words(whole)),
        summary=draft.summary,
        first_prompt=whole.first_prompt,
        last_prompt=whole.last_prompt,
        tags=(),
        started_at=draft.started_at,
        ended_at=draft.ended_at,
        are_times_derived=draft.are_times_derived,
        status=draft.status,
        models=whole.models,
        parent=draft.parent,
        children=(),
        counts=counts,
        usage=draft.usage or whole.usage,
        cost_usd=None,
        sources=draft.sources,
        coverage=draft.coverage,
        problems=draft.problems,
        view=view,
        extra=limit_extra(draft.extra),
        timeline=draft.full if view == "full" else draft.active,
    )


def limit_extra(extra: dict[str, Any]) -> dict[str, Any]:
    """Return a session's other fields without large values, which would be in every listing.

    `left_out` has their names and their sizes in bytes; the original has the values.
    """
    sizes = {name: _size(value) for name, value in extra.items()}
    large = {name: size for name, size in sizes.items() if size > LARGEST_EXTRA}
    if not large:
        return extra
    return {**{name: value for name, value in extra.items() if name not in large}, "left_out": large}


def _size(value: Any) -> int:
    try:
        return len(msgspec.json.encode(value))
    except (OverflowError, RecursionError):  # an integer of more than 64 bits
        return len(repr(value).encode(errors="replace"))


def count_messages(messages: Sequence[Message]) -> Counts:
    """Return the counts of messages."""
    prompts = sum([message.prompt is not None for message in messages])
    parts = chain.from_iterable([message.parts for message in messages])
    statuses = [part.status for part in parts if type(part) is ToolCall]
    return Counts(prompts, len(messages), len(statuses), statuses.count("error"))


def add_counts(first: Counts, second: Counts) -> Counts:
    """Return the sums of two counts."""
    return Counts(
        first.prompts + second.prompts,
        first.messages + second.messages,
        first.tool_calls + second.tool_calls,
        first.tool_errors + second.tool_errors,
    )


def _models(messages: Sequence[Message]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([message.model for message in messages if message.model]))


def _words(beginning: Beginning) -> str:
    """Return the words that say what a session is about: a prompt that is no command counts before one that is."""
    spoken = beginning.spoken_prompt
    return spoken if spoken is not None else beginning.first_prompt or ""


def _title(words: str) -> str | None:
    """Return the start of a summary or a prompt, on one line."""
    line = " ".join(words[:_TITLE_SOURCE].split())
    return (line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…") or None


def status_after(last: Entry | None) -> SessionStatus:
    """Return how a session ended, by its last entry."""
    if not isinstance(last, Message) or last.role != "assistant":
        return "interrupted"
    failed = any(isinstance(part, ToolCall) and part.status == "error" for part in last.parts)
    return "failure" if failed else "success"


BYTES_PER_TOKEN = 4
"""The usual estimate for text and code."""


def estimate_usage(timeline: Sequence[Entry], native_id: str) -> tuple[Entry, ...]:
    """Return the timeline with estimated tokens for each answer: all earlier text is its prompt."""
    entries: list[Entry] = []
    said = 0
    for place, entry in enumerate(timeline):
        if not isinstance(entry, Message):
            entries.append(entry)
            continue
        size = _message_size(entry)
        if entry.role == "assistant":
            given, output = _to_tokens(said), _to_tokens(size)
            request = f"{native_id}/{entry.id or place}"
            guess = Usage(request, given, None, 0, output, None, None, given + output, estimated=True)
            entry = msgspec.structs.replace(entry, usage=guess)  # noqa: PLW2901
        entries.append(entry)
        said += size
    return tuple(entries)


def _message_size(message: Message) -> int:
    texts: list[str] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            texts.extend((part.name, str(part.arguments), part.result or "", part.error or ""))
        else:
            texts.append(getattr(part, "text", None) or "")
    return sum(len(text.encode(errors="replace")) for text in texts)


def _to_tokens(size: int) -> int:
    return -(-size // BYTES_PER_TOKEN)
