"""The rows that the archive keeps of a session: a worker makes them, and the writer writes them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from hashlib import blake2b
from operator import attrgetter
from typing import Any

import msgspec

from retold.archive.store import as_text
from retold.model import FIGURES
from retold.model.serialization import encode_summary, encode_tree, format_utc
from retold.model.session import (
    MOST_TOKENS,
    Entry,
    Message,
    Request,
    Session,
    ToolCall,
    Totals,
    Usage,
    clamp_figure,
    is_spoken,
    sum_usage,
    to_micros,
    touched_paths,
)

MessageRow = tuple[int, str | None, int | None, str, bool, bool, int | None, str, str | None, bool]
"""Columns of `messages`, without the session: seq, id, uid, role, is_event, is_prompt, at, fate, model, copied."""
CallRow = tuple[int, int, str | None, str, str | None, str, int | None, int | None]
"""Columns of `tool_calls`, without the session: seq, position, tool, canonical, server, status, at, took_ms."""
RequestRow = tuple[Any, ...]
"""Columns of `requests`, without the session: uid, seq, model, at, each figure of FIGURES, estimated."""
SHORTEST_UNIQUE_ID = 16
"""Shorter ids are too common: two entries may bear the same."""
EDITING_TOOLS = ("file_edit", "file_write")
_DIGITS = 8
_FIGURES = attrgetter(*FIGURES)


class SessionRows(msgspec.Struct):
    """Everything that is written of one session, except numbers that only the archive knows."""

    uid: int
    stamp: bytes
    cluster: str | None
    session: Session
    """Without its timeline."""
    summary: str
    sources: tuple[str, ...]
    """The paths of its files."""
    messages: list[MessageRow]
    calls: list[CallRow]
    files: list[tuple[str, int]]
    """The files that calls name, and how many of the calls were to change them."""
    requests: list[RequestRow]
    has_copied_requests: bool
    is_spoken: bool
    """Whether the timeline makes it a conversation."""
    named_cluster: str | None = None
    """The cluster of files with the names that the agent gives to those of this conversation."""


def stable_uid(*words: str | None) -> int:
    """Return a stable 64-bit hash of words."""
    data = "\0".join(word or "" for word in words).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=_DIGITS).digest(), "big", signed=True)


def make_session_rows(  # noqa: PLR0913 - all that is kept of a session
    session: Session,
    uid: int,
    stamp: bytes,
    cluster: str | None,
    sources: Sequence[str],
    named_cluster: str | None = None,
    first: int = 0,
) -> SessionRows:
    """Return the rows of a session in its full view; `first` is the seq of its first entry, of one that was read from a bookmark on."""
    bare = msgspec.structs.replace(session, timeline=())
    requests = list(requests_with_copies(session))
    return SessionRows(
        uid,
        stamp,
        cluster,
        bare,
        encode_summary(bare).decode(),
        tuple(sources),
        [_message_row(seq, entry) for seq, entry in enumerate(session.timeline, first)],
        list(_call_rows(session, first)),
        sorted(count_changes(session).items()),
        [_request_row(first + place, request) for place, request in requests],
        any(request.copied for _, request in requests),
        first > 0 or is_spoken(session),
        named_cluster,
    )


def _message_row(seq: int, entry: Entry) -> MessageRow:
    is_event = not isinstance(entry, Message)
    return (
        seq,
        _text(entry.id),
        stable_uid("entry", entry.id) if not is_event and len(entry.id or "") >= SHORTEST_UNIQUE_ID else None,
        entry.kind if not isinstance(entry, Message) else entry.role,
        is_event,
        isinstance(entry, Message) and entry.prompt is not None,
        to_micros(entry.at),
        entry.fate,
        None if not isinstance(entry, Message) else _text(entry.model),
        not entry.own,
    )


def _call_rows(session: Session, first: int) -> Iterator[CallRow]:
    for place, position, call in iterate_tool_calls(session):
        yield (
            first + place, position, _text(call.name), call.canonical, _text(call.server), call.status, to_micros(call.at), call.took_ms,
        )  # fmt: skip


def count_changes(session: Session) -> Counter[str]:
    """Return the files that calls name, and how many of these calls were to change them."""
    counts: Counter[str] = Counter()
    for _, _, call in iterate_tool_calls(session):
        counts.update(dict.fromkeys(touched_paths(call), int(call.canonical in EDITING_TOOLS)))
    return counts


def iterate_tool_calls(session: Session) -> Iterator[tuple[int, int, ToolCall]]:
    """Yield every call with its position: the seq of its message, and its index among the message's parts."""
    for seq, entry in enumerate(session.timeline):
        if isinstance(entry, Message):
            for position, part in enumerate(entry.parts):
                if isinstance(part, ToolCall):
                    yield seq, position, part


def _request_row(seq: int, request: Request) -> RequestRow:
    uid = stable_uid("request", request.name)
    return (uid, seq, request.model, request.at, *request.figures, request.estimated)


def own_requests(session: Session) -> Iterator[tuple[int, Request]]:
    """Yield each request that a session made itself, with the seq of its message."""
    return unique_requests(
        (seq, entry) for seq, entry in enumerate(session.timeline) if isinstance(entry, Message) and entry.own
    )


def requests_with_copies(session: Session) -> Iterator[tuple[int, Request]]:
    """Yield each request of a session with the seq of its message, and copied ones that other sessions may have by the same name."""
    return unique_requests(_shareable_messages(session))


def totals_with_copies(session: Session) -> Totals:
    """Return a session's totals with copied requests, as they count while the archive lacks the session that made them."""
    messages = [message for _, message in _shareable_messages(session)]
    if all(message.own for message in messages):
        return session.usage
    return sum_usage([message.usage for message in messages if message.usage is not None])


def _shareable_messages(session: Session) -> Iterator[tuple[int, Message]]:
    """Yield the messages with an own request, or with a copied one that another session may have by the same name.

    An estimate, and a copied request that is named after this session, have no name that another session would know.
    """
    for seq, entry in enumerate(session.timeline):
        if isinstance(entry, Message) and (usage := entry.usage) is not None:
            has_own_name = usage.estimated or usage.request.startswith(f"{session.native_id}/")
            if entry.own or not has_own_name:
                yield seq, entry


def unique_requests(messages: Iterable[tuple[int, Message]]) -> Iterator[tuple[int, Request]]:
    """Yield each request of messages once, with its seq: its last message counts, own messages before copies."""
    found: dict[str, tuple[int, Message, Usage]] = {}
    for seq, entry in messages:
        if entry.usage is not None:
            known = found.get(entry.usage.request)
            if known is None or entry.own or not known[1].own:
                found[entry.usage.request] = (seq, entry, entry.usage)
    for name, (seq, message, usage) in found.items():
        input_, cached, cache_write, output, reasoning, tool, total, cache_write_1h = [
            figure if figure is None or 0 <= figure <= MOST_TOKENS else clamp_figure(figure)
            for figure in _FIGURES(usage)
        ]
        figures = (input_, cached, cache_write, output, reasoning, tool, total, cache_write_1h)
        about = (_text(message.model), to_micros(message.at), figures, usage.estimated, not message.own)
        yield seq, Request(name, *about)


def _text(text: str | None) -> str | None:
    return None if text is None else as_text(text)


def usage_json(session: Session) -> str:
    """Return the totals of a session, as its files say them."""
    return encode_tree(msgspec.to_builtins(session.usage)).decode()


def insert_cost(summary: str, cost: str | None) -> str:
    """Return the JSON form of a session with its cost. In texts of the transcript, quotes are escaped."""
    return summary if cost is None else summary.replace('"cost_usd":null', f'"cost_usd":"{cost}"', 1)


def format_time(at: datetime | None) -> str | None:
    """Return a time as text that sorts like the times."""
    return None if at is None else format_utc(at)
