"""A session as a transcript to read: the human's words, the agent's words, each tool call on a line."""

import json
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from retold.export.text.times import SECONDS, moment, when
from retold.model.serialization import room_for_depth
from retold.model.session import (
    PATCH,
    Attachment,
    Context,
    Entry,
    Event,
    Message,
    Opaque,
    Part,
    Session,
    Text,
    Thinking,
    ToolCall,
    is_copied_prompt,
    patched,
)
from retold.model.usage import Usage

Style = Literal["title", "faint", "you", "agent", "tool", "bad", "plain"]
Tools = Literal["none", "names", "full"]
KEY_ARGUMENTS = (
    "file_path", "absolute_path", "command", "path", "dir_path", "pattern", "query", "url", "prompt", "objective",
    "request", "question", "agent_name", "name", "title", "fact", "uri", "paths", "include", "plan_filename", "reason",
)  # fmt: skip
"""The argument that tells most, by order of preference."""
MARKS = {"success": "•", "error": "✗", "cancelled": "⊘"}
"""What became of a call, without colour."""
LINE = 100
"""How much of an argument or an error is shown on a line of its own."""


class TranscriptLine(NamedTuple):
    """One line of a transcript, and what it is."""

    style: Style
    text: str


class TranscriptOptions(NamedTuple):
    """What a transcript shows beyond the conversation."""

    tools: Tools = "names"
    thoughts: bool = False
    tokens: bool = False
    notices: bool = False


CONVERSATION = TranscriptOptions()


def transcript(session: Session, wanted: TranscriptOptions = CONVERSATION) -> Iterator[TranscriptLine]:
    """Yield a session line by line."""
    yield from about(session)
    for _, lines in transcript_lines(session, wanted):
        yield from lines


def transcript_lines(
    session: Session, wanted: TranscriptOptions = CONVERSATION
) -> Iterator[tuple[int, list[TranscriptLine]]]:
    """Yield the entries of which something is shown, by their number in the timeline, each with its lines."""
    before: Entry | None = None
    for number, entry in enumerate(session.timeline):
        lines = list(entry_lines(entry, wanted))
        if not lines:
            continue
        head = [] if _goes_on(entry, before) else [TranscriptLine("plain", ""), *_heading(entry, session)]
        yield number, [*head, *lines]
        before = entry


def about(session: Session, *, is_utc: bool = False) -> Iterator[TranscriptLine]:
    """Yield the title, and what is known of the whole; times are local, or UTC."""
    yield TranscriptLine("title", session.title or "(no prompt)")
    counts, usage = session.counts, session.usage
    root = session.project.root or session.project.native_key
    began = moment(session.started_at, is_utc=is_utc) if session.started_at else None
    facts = [session.key, began, root, ", ".join(session.models)]
    yield TranscriptLine("faint", " · ".join(fact for fact in facts if fact))
    tools = plural(counts.tool_calls, "tool call") + (
        f", {counts.tool_errors} failed" if counts.tool_errors else ""
    )
    tokens = (
        None if usage.total is None else f"{usage.total:,} tokens{' (estimated)' if usage.estimated else ''}"
    )
    yield TranscriptLine(
        "faint", " · ".join(fact for fact in [plural(counts.prompts, "prompt"), tools, tokens] if fact)
    )
    codes = [problem.code for problem in session.problems if problem.severity != "note"]
    if codes:
        yield TranscriptLine(
            "bad", f"{plural(len(codes), 'problem')} while reading: {', '.join(sorted(set(codes)))}"
        )


def plural(number: int, noun: str) -> str:
    """Return how many there are of something."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _goes_on(entry: Entry, before: Entry | None) -> bool:
    """Tell whether an entry is the next piece of one response."""
    if not isinstance(entry, Message) or not isinstance(before, Message) or entry.response is None:
        return False
    return (entry.response, entry.fate) == (before.response, before.fate)


def entry_lines(entry: Entry, wanted: TranscriptOptions) -> Iterator[TranscriptLine]:
    """Yield what is shown of an entry, without a heading."""
    if isinstance(entry, Event):
        yield from _event(entry, wanted)
        return
    yield from _said(entry, wanted)
    if wanted.tokens and entry.usage is not None:
        yield TranscriptLine("faint", _tokens(entry.usage))


def _said(message: Message, wanted: TranscriptOptions) -> Iterator[TranscriptLine]:
    """Yield what a message says; of a prompt in several texts, the human's own words once."""
    is_told = False
    for part in message.parts:
        if isinstance(part, Text) and message.prompt is not None:
            yield from () if is_told else _lines("plain", message.prompt)
            is_told = True
        else:
            yield from _part(part, wanted)
    if message.prompt is not None and not is_told:
        yield from _lines("plain", message.prompt)


def _heading(entry: Entry, session: Session) -> Iterator[TranscriptLine]:
    if isinstance(entry, Event):
        return
    became = fate_of(entry)
    at = f" · {when(entry.at, session.started_at, SECONDS)}" if entry.at else ""
    told = f" ({became})" if became else ""
    yield TranscriptLine(
        "you" if _is_person(entry) else "agent", f"── {speaker(entry, session.agent)}{told}{at}"
    )


def speaker(message: Message, agent: str) -> str:
    """Return who says a message: a person, the model, or what was put there by nobody."""
    names = {"user": "you" if _is_person(message) else "context", "assistant": message.model or agent}
    return names.get(message.role, message.role)


def fate_of(entry: Entry) -> str:
    """Return what became of an entry, in words; nothing of one that is here as it was said here."""
    words = ("" if entry.own else "copied", "" if entry.fate == "live" else entry.fate)
    return ", ".join(word for word in words if word)


def _is_person(message: Message) -> bool:
    return message.role == "user" and (message.prompt is not None or is_copied_prompt(message))


def _event(event: Event, wanted: TranscriptOptions) -> Iterator[TranscriptLine]:
    if event.kind == "compaction":
        yield TranscriptLine("faint", "── the conversation was compressed here ──")
    elif event.kind == "error":
        yield from _lines("bad", f"! {event.text}")
    elif wanted.notices and (event.text or event.opaque):
        yield from _lines(
            "faint", f"{event.kind}: {event.text or as_json(event.opaque and event.opaque.value)}"
        )


def _part(part: Part, wanted: TranscriptOptions) -> Iterator[TranscriptLine]:
    match part:
        case Text(text):
            yield from _lines("plain", text.strip("\n")) if text.strip() else ()
        case Thinking() if wanted.thoughts:
            yield from _lines(
                "faint", ": ".join(words for words in (part.subject, part.text) if words), "  ~ "
            )
        case ToolCall() if wanted.tools != "none":
            yield from _call(part, wanted)
        case Attachment():
            yield TranscriptLine("faint", "  + " + one_line(part.path or part.media_type or "attachment"))
        case Context(kind="shell" | "task", text=str(text)):
            yield from _lines("plain", text)
        case Context(text=str(text)) if wanted.notices:
            yield from _lines("faint", text, f"  {part.kind}: ")
        case Opaque() if wanted.notices:
            yield TranscriptLine("faint", f"  not understood: {one_line(as_json(part.value))}")


def _call(call: ToolCall, wanted: TranscriptOptions) -> Iterator[TranscriptLine]:
    mark = MARKS.get(call.status, "?")
    told = one_line(key_argument_of(call.arguments))
    yield TranscriptLine(
        "bad" if call.status == "error" else "tool", f"  {mark} {call.name}{'  ' + told if told else ''}"
    )
    if wanted.tools == "full":
        yield from _lines("faint", as_json(call.arguments, indent=2), "    ")
        yield from _lines("plain", call.full_result or call.result or "", "    ")
        yield from _lines("bad", call.error or "", "    ")
    elif call.error:
        yield TranscriptLine("bad", f"    {one_line(call.error)}")
    if call.exit_code:
        yield TranscriptLine("bad", f"    exit code {call.exit_code}")


def key_argument_of(arguments: dict[str, Any]) -> str:
    """Return the one argument that tells what a call was about."""
    for name in KEY_ARGUMENTS:
        value = arguments.get(name)
        if value not in (None, "", [], {}):
            return _as_words(value)
    return _as_words(next(iter(arguments.values()), ""))


def _as_words(value: Any) -> str:
    """Return an argument as a person would type it: a command is often a list of words."""
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return " ".join(value)
    if not isinstance(value, str):
        return as_json(value)
    return ", ".join(patched(value)) or value if value.startswith(PATCH) else value


def _tokens(usage: Usage) -> str:
    figures = {"in": usage.input, "cached": usage.cached, "out": usage.output, "thinking": usage.reasoning}
    told = ", ".join(f"{name} {figure:,}" for name, figure in figures.items() if figure is not None)
    return f"  tokens: {told}{' (estimated)' if usage.estimated else ''}"


def _lines(style: Style, text: str, indent: str = "") -> Iterator[TranscriptLine]:
    for number, line in enumerate(text.splitlines()):
        yield TranscriptLine(style, (indent if number == 0 else " " * len(indent)) + line)


def one_line(text: str) -> str:
    """Return text on one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= LINE else line[: LINE - 1] + "…"


def as_json(value: object, indent: int | None = None) -> str:
    """Return a value as JSON for people: nothing in it is too deep or too strange to be shown."""
    with room_for_depth():
        return json.dumps(value, ensure_ascii=False, indent=indent, default=repr)
