"""Views of entries for the templates: their headings, and the boxes of their parts."""

from collections.abc import Callable, Iterator
from datetime import datetime

import msgspec
from markupsafe import Markup

from retold.export.formats.registry import ExportOptions
from retold.export.html.blocks import (
    RenderContext,
    answer_box,
    attachment_boxes,
    error_box,
    fold,
    json_box,
    prompt_box,
    text_box,
)
from retold.export.html.tool_calls import CallView, call_view
from retold.export.text.formatting import format_time
from retold.export.transcript import format_usage, prompt_and_parts
from retold.model.session import (
    Attachment,
    Context,
    Entry,
    Event,
    Message,
    Opaque,
    Part,
    Text,
    Thinking,
    ToolCall,
    is_copied_prompt,
)

_NAMES = {"shell": "The user's shell", "task": "Task"}
"""Context that is read as part of the conversation, with its heading."""
QUIET = ("acknowledgement", "background", "environment", "hook", "ide", "notification", "reminder")
"""Context that the agent added for itself: shown only with `notices`."""
_FOLDS = {
    "code": "Code that the model ran",
    "code_result": "What the code gave",
    "command": "A command of the agent",
    "continuation": "What the agent kept of the conversation before",
    "referenced_files": "Files that the prompt referred to",
    "skill": "A skill that was loaded",
    "snapshot": "What the agent kept of the conversation before",
    "steering": "A hint to the agent on its way",
    "tool_result": "The result of a tool",
}

_ALL = ExportOptions(thoughts=True, notices=True)

Block = Markup | CallView


class EntryView(msgspec.Struct, frozen=True, kw_only=True):
    """An entry as templates get it; docs/exports.md lists its fields."""

    kind: str
    """`prompt`, `answer`, `context` or `system`; for an event `compaction`, `error`, `info`, `warning` or `notice`."""
    anchor: str | None
    """The id on the page. An event has one only if anchors are places in the timeline."""
    name: str
    level: int
    """The level of its heading."""
    at: datetime | None
    when: str
    """The time of day, with the day unless it is that of the session's start."""
    goes_on: bool
    """Whether the speaker is the same as before."""
    number: int
    """The number of the message, or the place of the entry in the timeline."""
    holds: tuple[str, ...]
    """Kinds of its content: `words`, `thoughts`, `calls`, `notices`."""
    size: int
    """Characters of its texts."""
    blocks: Iterator[Block]
    tokens: str


def is_shown(entry: Entry, options: ExportOptions) -> bool:
    """Return whether any part of an entry is on the page."""
    if isinstance(entry, Event):
        return entry.kind in ("compaction", "error") or (options.notices and bool(entry.text or entry.opaque))
    return entry.prompt is not None or any(is_part_shown(part, options) for part in entry.parts)


def is_part_shown(part: Part, options: ExportOptions) -> bool:
    """Return whether a part is on the page."""
    match part:
        case Text(text):
            return bool(text.strip())
        case Thinking():
            return options.thoughts
        case ToolCall():
            return options.tools != "none"
        case Context(kind, text):
            return bool((text or "").strip() or part.attachments) and (options.notices or kind not in QUIET)
        case Opaque():
            return options.notices
        case Attachment():
            return True


def entry_view(entry: Entry, number: int, context: RenderContext, *, goes_on: bool) -> EntryView:
    """Return the view of an entry."""
    kind, name = _kind_and_name(entry, context.export.session.agent)
    level = context.level + (kind != "prompt" and context.depth == 0)
    has_anchor = isinstance(entry, Message) or context.first is not None
    anchor = f"{context.prefix}{number}" if has_anchor else None
    return EntryView(
        kind=kind,
        anchor=anchor,
        name=name,
        level=level,
        at=entry.at,
        when=format_time(entry.at, context.export.session.started_at) if entry.at else "",
        goes_on=goes_on,
        number=number,
        holds=content_kinds(entry),
        size=_size(entry),
        blocks=_event(entry, context)
        if isinstance(entry, Event)
        else _blocks(entry, context, anchor or "", level + 1),
        tokens=_tokens(entry) if context.options.tokens else "",
    )


def content_kinds(entry: Entry) -> tuple[str, ...]:
    """Return the kinds of content of an entry, each of which a reader may show or hide."""
    if isinstance(entry, Event):
        return ("words",) if is_shown(entry, ExportOptions()) else ("notices",)
    kinds = {_kind(part) for part in entry.parts if is_part_shown(part, _ALL)}
    return tuple(sorted(kinds | ({"words"} if entry.prompt is not None else set())))


def _kind(part: Part) -> str:
    match part:
        case Thinking():
            return "thoughts"
        case ToolCall():
            return "calls"
        case _:
            return "words" if is_part_shown(part, ExportOptions()) else "notices"


def _size(entry: Entry) -> int:
    if isinstance(entry, Event):
        return len(entry.text)
    texts = (getattr(part, "text", None) for part in entry.parts)
    return sum(len(text) for text in texts if text)


_EVENTS = {
    "compaction": "The conversation was compressed here",
    "error": "Error",
    "info": "Notice",
    "notice": "Notice",
    "warning": "Warning",
}


def speaker(entry: Entry) -> tuple[str | None, ...]:
    """Return the role and model of an answer; an entry with the same ones as before needs no heading."""
    if isinstance(entry, Event) or entry.role != "assistant":
        return (None,)
    return entry.role, entry.model


def _kind_and_name(entry: Entry, agent: str) -> tuple[str, str]:
    """Return the kind of an entry and its heading."""
    if isinstance(entry, Event):
        return entry.kind, _EVENTS[entry.kind]
    if entry.role == "assistant":
        return "answer", entry.model or agent
    if entry.role == "system":
        return "system", "System"
    if entry.prompt is not None or is_copied_prompt(entry):
        return "prompt", "User"
    kinds = [part.kind for part in entry.parts if isinstance(part, Context)]
    return "context", next((_NAMES[kind] for kind in kinds if kind in _NAMES), "Context")


def _blocks(message: Message, context: RenderContext, anchor: str, level: int) -> Iterator[Block]:
    calls = 0
    for part in prompt_and_parts(message):
        if isinstance(part, str):
            yield prompt_box(part, context.key)
        elif isinstance(part, ToolCall) and is_part_shown(part, context.options):
            calls += 1
            yield call_view(part, context, anchor, calls)
        elif is_part_shown(part, context.options):
            yield _part(part, message, context.key, level)


def _part(part: Part, message: Message, key: str, level: int) -> Markup:
    match part:
        case Text(text):
            return answer_box(text, key, level) if message.role == "assistant" else prompt_box(text, key)
        case Thinking(subject, text):
            return fold(f"Thought: {subject or text[:200]}", answer_box(text, key, level), "thought")
        case Attachment():
            return attachment_boxes((part,))
        case Context():
            return _context(part, key)
        case Opaque(value):
            return fold("Something that retold does not understand", json_box(value, key), "aside notice")
    raise AssertionError(part)


def _context(part: Context, key: str) -> Markup:
    content = attachment_boxes(part.attachments)
    if part.text:
        show: Callable[[str, str], Markup] = error_box if part.is_error else text_box
        content = show(part.text, key) + content
    if part.kind in _NAMES:
        return content
    kind = "aside notice" if part.kind in QUIET else "aside"
    return fold(_FOLDS.get(part.kind, f"Added by the agent: {part.kind}"), content, kind)


def _event(event: Event, context: RenderContext) -> Iterator[Markup]:
    if event.text and event.kind == "compaction":
        yield fold("What the agent kept of it", answer_box(event.text, context.key, context.level + 2))
    elif event.text:
        yield text_box(event.text, context.key)
    if event.opaque is not None and context.options.notices:
        yield fold("All that was recorded of it", json_box(event.opaque.value, context.key), "aside notice")


def _tokens(entry: Entry) -> str:
    usage = entry.usage if isinstance(entry, Message) else None
    if usage is None or usage.input is usage.cached is usage.output is usage.reasoning is None:
        return ""
    return f"Tokens: {format_usage(usage)}"
