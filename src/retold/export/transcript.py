"""A session as a transcript in plain text: prompts, answers, and each tool call on a line."""

import json
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from retold.export.text.formatting import SECONDS, format_moment, format_time, plural
from retold.model.serialization import allow_deep_values
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
    Usage,
    is_copied_prompt,
    patched_paths,
)

Style = Literal["title", "faint", "you", "agent", "tool", "bad", "plain"]
Tools = Literal["none", "names", "full"]
KEY_ARGUMENTS = (
    "file_path", "absolute_path", "command", "path", "dir_path", "pattern", "query", "url", "prompt", "objective",
    "request", "question", "agent_name", "name", "title", "fact", "uri", "paths", "include", "plan_filename", "reason",
)  # fmt: skip
"""Names of arguments that say most about a call, by preference."""
MARKS = {"success": "•", "error": "✗", "cancelled": "⊘"}
"""Signs of a call's status, so that it does not depend on colour."""
LINE = 100
"""Characters of an argument or an error that are shown on one line."""


class TranscriptLine(NamedTuple):
    """A line of a transcript and its style."""

    style: Style
    text: str


class TranscriptOptions(NamedTuple):
    """Options for what a transcript shows besides the conversation."""

    tools: Tools = "names"
    thoughts: bool = False
    tokens: bool = False
    notices: bool = False


CONVERSATION = TranscriptOptions()


class EntryLines(NamedTuple):
    """The place of an entry in the timeline, and its lines."""

    seq: int
    lines: list[TranscriptLine]


def format_transcript(
    session: Session, options: TranscriptOptions = CONVERSATION
) -> Iterator[TranscriptLine]:
    """Yield the lines of a session."""
    yield from format_heading(session)
    for entry in format_entries(session, options):
        yield from entry.lines


def format_entries(session: Session, options: TranscriptOptions = CONVERSATION) -> Iterator[EntryLines]:
    """Yield the entries that are shown, with a heading before each change of the speaker."""
    before: Entry | None = None
    for seq, entry in enumerate(session.timeline):
        lines = list(format_entry(entry, options))
        if not lines:
            continue
        head = [] if _continues(entry, before) else [TranscriptLine("plain", ""), *_heading(entry, session)]
        yield EntryLines(seq, [*head, *lines])
        before = entry


def format_heading(session: Session, *, is_utc: bool = False) -> Iterator[TranscriptLine]:
    """Yield the title and the facts of a session; times are local or UTC."""
    yield TranscriptLine("title", session.title or "(no prompt)")
    counts, usage = session.counts, session.usage
    root = session.project.root or session.project.native_key
    began = format_moment(session.started_at, is_utc=is_utc) if session.started_at else None
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
    if problems := problem_summary(session):
        yield TranscriptLine("bad", problems)


def problem_summary(session: Session) -> str:
    """Return the number and the codes of problems in a session's files; empty if there are none."""
    codes = [problem.code for problem in session.problems if problem.severity != "note"]
    return f"{plural(len(codes), 'problem')} while reading: {', '.join(sorted(set(codes)))}" if codes else ""


def _continues(entry: Entry, before: Entry | None) -> bool:
    """Return whether an entry belongs to the same response as the one before."""
    if not isinstance(entry, Message) or not isinstance(before, Message) or entry.response is None:
        return False
    return (entry.response, entry.fate) == (before.response, before.fate)


def format_entry(entry: Entry, options: TranscriptOptions) -> Iterator[TranscriptLine]:
    """Yield the lines of an entry, without a heading."""
    if isinstance(entry, Event):
        yield from _event(entry, options)
        return
    for part in prompt_and_parts(entry):
        yield from _lines("plain", part) if isinstance(part, str) else _part(part, options)
    if options.tokens and entry.usage is not None:
        yield TranscriptLine("faint", f"  tokens: {format_usage(entry.usage)}")


def prompt_and_parts(message: Message) -> Iterator[str | Part]:
    """Yield the parts of a message, with a person's own prompt in place of the texts that the agent made of it."""
    has_prompt = message.prompt is None
    for part in message.parts:
        if isinstance(part, Text) and message.prompt is not None:
            yield from () if has_prompt else (message.prompt,)
            has_prompt = True
        else:
            yield part
    if message.prompt is not None and not has_prompt:
        yield message.prompt


def _heading(entry: Entry, session: Session) -> Iterator[TranscriptLine]:
    if isinstance(entry, Event):
        return
    words = fate_words(entry)
    at = f" · {format_time(entry.at, session.started_at, SECONDS)}" if entry.at else ""
    fate = f" ({words})" if words else ""
    yield TranscriptLine(
        "you" if _is_person(entry) else "agent", f"── {speaker_name(entry, session.agent)}{fate}{at}"
    )


def speaker_name(message: Message, agent: str) -> str:
    """Return the speaker of a message: `you`, the model, or `context` for text that the agent added."""
    names = {"user": "you" if _is_person(message) else "context", "assistant": message.model or agent}
    return names.get(message.role, message.role)


def fate_words(entry: Entry) -> str:
    """Return the fate of an entry in words; empty for a live entry of its own session."""
    words = ("" if entry.own else "copied", "" if entry.fate == "live" else entry.fate)
    return ", ".join(word for word in words if word)


def _is_person(message: Message) -> bool:
    return message.role == "user" and (message.prompt is not None or is_copied_prompt(message))


def _event(event: Event, options: TranscriptOptions) -> Iterator[TranscriptLine]:
    if event.kind == "compaction":
        yield TranscriptLine("faint", "── the conversation was compressed here ──")
    elif event.kind == "error":
        yield from _lines("bad", f"! {event.text}")
    elif options.notices and (event.text or event.opaque):
        yield from _lines(
            "faint", f"{event.kind}: {event.text or format_json(event.opaque and event.opaque.value)}"
        )


def _part(part: Part, options: TranscriptOptions) -> Iterator[TranscriptLine]:
    match part:
        case Text(text):
            yield from _lines("plain", text.strip("\n")) if text.strip() else ()
        case Thinking() if options.thoughts:
            yield from _lines(
                "faint", ": ".join(words for words in (part.subject, part.text) if words), "  ~ "
            )
        case ToolCall() if options.tools != "none":
            yield from _call(part, options)
        case Attachment():
            yield TranscriptLine("faint", "  + " + one_line(part.path or part.media_type or "attachment"))
        case Context(kind="shell" | "task", text=str(text)):
            yield from _lines("plain", text)
        case Context(text=str(text)) if options.notices:
            yield from _lines("faint", text, f"  {part.kind}: ")
        case Opaque() if options.notices:
            yield TranscriptLine("faint", f"  not understood: {one_line(format_json(part.value))}")


def _call(call: ToolCall, options: TranscriptOptions) -> Iterator[TranscriptLine]:
    mark = MARKS.get(call.status, "?")
    argument = one_line(key_argument(call.arguments))
    yield TranscriptLine(
        "bad" if call.status == "error" else "tool",
        f"  {mark} {call.name}{'  ' + argument if argument else ''}",
    )
    if options.tools == "full":
        yield from _lines("faint", format_json(call.arguments, indent=2), "    ")
        yield from _lines("plain", call.full_result or call.result or "", "    ")
        yield from _lines("bad", call.error or "", "    ")
    elif call.error:
        yield TranscriptLine("bad", f"    {one_line(call.error)}")
    if call.exit_code:
        yield TranscriptLine("bad", f"    exit code {call.exit_code}")


def key_argument(arguments: dict[str, Any]) -> str:
    """Return the argument that says most about a call."""
    for name in KEY_ARGUMENTS:
        value = arguments.get(name)
        if value not in (None, "", [], {}):
            return _argument_text(value)
    return _argument_text(next(iter(arguments.values()), ""))


def _argument_text(value: Any) -> str:
    """Return an argument as a person would type it: a command is often a list of words."""
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return " ".join(value)
    if not isinstance(value, str):
        return format_json(value)
    return ", ".join(patched_paths(value)) or value if value.startswith(PATCH) else value


def format_usage(usage: Usage) -> str:
    """Return the recorded tokens of a message."""
    figures = {"in": usage.input, "cached": usage.cached, "out": usage.output, "thinking": usage.reasoning}
    text = ", ".join(f"{name} {figure:,}" for name, figure in figures.items() if figure is not None)
    return f"{text}{' (estimated)' if usage.estimated else ''}"


def _lines(style: Style, text: str, indent: str = "") -> Iterator[TranscriptLine]:
    for number, line in enumerate(text.splitlines()):
        yield TranscriptLine(style, (indent if number == 0 else " " * len(indent)) + line)


def one_line(text: str) -> str:
    """Return text on one line, cut if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= LINE else line[: LINE - 1] + "…"


def format_json(value: object, indent: int | None = None) -> str:
    """Return a value as JSON for people, however deep it is and whatever it holds."""
    with allow_deep_values():
        return json.dumps(value, ensure_ascii=False, indent=indent, default=repr)
