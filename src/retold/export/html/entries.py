"""What of an entry is on the page, and how it is headed."""

from collections.abc import Callable, Iterator
from datetime import datetime

import msgspec
from markupsafe import Markup

from retold.export.formats.registry import ExportOptions
from retold.export.html.blocks import RenderContext, as_tree, attached, box, failure, fold, said, told
from retold.export.html.tool_calls import CallView, call_view
from retold.export.text.times import when
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
"""What an agent put into a message and is read as part of the conversation."""
QUIET = ("acknowledgement", "background", "environment", "hook", "ide", "notification", "reminder")
"""What it put there for itself: told only with `notices`."""
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
    """An entry, as templates get it."""

    kind: str
    """`prompt`, `answer`, `context`, `system`; of events `compaction`, `error`, `info`, `warning`, `notice`."""
    anchor: str | None
    """The id in the page; events have none, unless places are told."""
    name: str
    level: int
    """The level of its heading."""
    at: datetime | None
    when: str
    """The time of day, with the day where it is not the first."""
    goes_on: bool
    """Whether the same one goes on speaking."""
    number: int
    """Of the message; or the place of the entry, where those are told."""
    holds: tuple[str, ...]
    """What there is in it: `words`, `thoughts`, `calls`, `notices`."""
    size: int
    """Characters of its texts."""
    blocks: Iterator[Block]
    tokens: str


def is_shown(entry: Entry, choice: ExportOptions) -> bool:
    """Tell whether there is anything of an entry on the page."""
    if isinstance(entry, Event):
        return entry.kind in ("compaction", "error") or (choice.notices and bool(entry.text or entry.opaque))
    return entry.prompt is not None or any(is_part_shown(part, choice) for part in entry.parts)


def is_part_shown(part: Part, choice: ExportOptions) -> bool:
    """Tell whether a part is on the page."""
    match part:
        case Text(text):
            return bool(text.strip())
        case Thinking():
            return choice.thoughts
        case ToolCall():
            return choice.tools != "none"
        case Context(kind, text):
            return bool((text or "").strip() or part.attachments) and (choice.notices or kind not in QUIET)
        case Opaque():
            return choice.notices
        case Attachment():
            return True


def entry_view(entry: Entry, number: int, frame: RenderContext, *, goes_on: bool) -> EntryView:
    """Return an entry to be shown; messages are counted, whatever is shown of them."""
    kind, name = _headed(entry, frame.telling.session.agent)
    level = frame.level + (kind != "prompt" and frame.depth == 0)
    has_anchor = isinstance(entry, Message) or frame.first is not None
    anchor = f"{frame.prefix}{number}" if has_anchor else None
    return EntryView(
        kind=kind,
        anchor=anchor,
        name=name,
        level=level,
        at=entry.at,
        when=when(entry.at, frame.telling.session.started_at) if entry.at else "",
        goes_on=goes_on,
        number=number,
        holds=held(entry),
        size=_size(entry),
        blocks=_event(entry, frame)
        if isinstance(entry, Event)
        else _blocks(entry, frame, anchor or "", level + 1),
        tokens=_tokens(entry) if frame.choice.tokens else "",
    )


def held(entry: Entry) -> tuple[str, ...]:
    """Return what kinds of things an entry holds, each of which may be shown or not."""
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
    """Return who speaks: the same one who goes on needs no second heading."""
    if isinstance(entry, Event) or entry.role != "assistant":
        return (None,)
    return entry.role, entry.model


def _headed(entry: Entry, agent: str) -> tuple[str, str]:
    """Return what an entry is, and what stands above it."""
    if isinstance(entry, Event):
        return entry.kind, _EVENTS[entry.kind]
    return _speaker(entry, agent)


def _speaker(message: Message, agent: str) -> tuple[str, str]:
    if message.role == "assistant":
        return "answer", message.model or agent
    if message.role == "system":
        return "system", "System"
    if message.prompt is not None or is_copied_prompt(message):
        return "prompt", "User"
    kinds = [part.kind for part in message.parts if isinstance(part, Context)]
    return "context", next((_NAMES[kind] for kind in kinds if kind in _NAMES), "Context")


def _blocks(message: Message, frame: RenderContext, anchor: str, level: int) -> Iterator[Block]:
    """Yield what a message says; of a prompt in several texts, the person's own words once."""
    is_told = message.prompt is None
    calls = 0
    for part in message.parts:
        if isinstance(part, Text) and message.prompt is not None:
            yield from () if is_told else (said(message.prompt, frame.key),)
            is_told = True
        elif isinstance(part, ToolCall) and is_part_shown(part, frame.choice):
            calls += 1
            yield call_view(part, frame, anchor, calls)
        elif is_part_shown(part, frame.choice):
            yield _part(part, message, frame.key, level)
    if message.prompt is not None and not is_told:
        yield said(message.prompt, frame.key)


def _part(part: Part, message: Message, key: str, level: int) -> Markup:
    match part:
        case Text(text):
            return told(text, key, level) if message.role == "assistant" else said(text, key)
        case Thinking(subject, text):
            return fold(f"Thought: {subject or text[:200]}", told(text, key, level), "thought")
        case Attachment():
            return attached((part,))
        case Context():
            return _context(part, key)
        case Opaque(value):
            return fold("Something that retold does not understand", as_tree(value, key), "aside notice")
    raise AssertionError(part)


def _context(part: Context, key: str) -> Markup:
    content = attached(part.attachments)
    if part.text:
        show: Callable[[str, str], Markup] = failure if part.is_error else box
        content = show(part.text, key) + content
    if part.kind in _NAMES:
        return content
    kind = "aside notice" if part.kind in QUIET else "aside"
    return fold(_FOLDS.get(part.kind, f"Added by the agent: {part.kind}"), content, kind)


def _event(event: Event, frame: RenderContext) -> Iterator[Markup]:
    if event.text and event.kind == "compaction":
        yield fold("What the agent kept of it", told(event.text, frame.key, frame.level + 2))
    elif event.text:
        yield box(event.text, frame.key)
    if event.opaque is not None and frame.choice.notices:
        yield fold("All that was recorded of it", as_tree(event.opaque.value, frame.key), "aside notice")


def _tokens(entry: Entry) -> str:
    usage = entry.usage if isinstance(entry, Message) else None
    if usage is None:
        return ""
    figures = {"in": usage.input, "cached": usage.cached, "out": usage.output, "thinking": usage.reasoning}
    shown = ", ".join(f"{name} {figure:,}" for name, figure in figures.items() if figure is not None)
    return f"Tokens: {shown}{' (estimated)' if usage.estimated else ''}" if shown else ""
