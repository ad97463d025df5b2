"""A session as Markdown: made to be read and pasted, and to be read back by `retold read`."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from retold.export.formats.registry import ExportOptions, ExportSession
from retold.export.text.escape import as_code, as_html, as_words
from retold.export.text.numbers import money
from retold.export.text.times import minute, period
from retold.export.transcript import MARKS, key_argument_of, one_line
from retold.model.report import PICOS
from retold.model.serialization import as_builtins, encoded
from retold.model.session import (
    Attachment,
    Context,
    DiffDisplay,
    Entry,
    Event,
    Message,
    Opaque,
    Part,
    Session,
    Text,
    Thinking,
    ToolCall,
)
from retold.model.usage import Usage
from retold.reading.markdown_codec import PAGE, Look, fenced, mark, shown


def facts(session: Session, choice: ExportOptions) -> str:
    """Return the title and a short list."""
    lines = (f"- **{name}:** {told}" for name, told in _facts(session, choice) if told)
    return f"# {as_words(session.title or '(no prompt)')}\n\n" + "\n".join(lines) + "\n\n"


def _facts(session: Session, choice: ExportOptions) -> Iterator[tuple[str, str]]:
    root = session.project.root or session.project.native_key
    yield "Agent", " · ".join(map(as_words, (session.agent, *session.models)))
    yield "Project", as_code(root) if root else ""
    yield "Time", _time(session)
    yield "Content", _content(session)
    yield "Cost", "" if session.cost_usd is None else money(int(session.cost_usd * PICOS))
    yield "Tags", ", ".join(map(as_code, session.tags))
    yield "Session", as_code(session.key)
    codes = {problem.code for problem in session.problems if problem.severity != "note"}
    yield "Problems while reading", ", ".join(sorted(codes))
    yield "Secrets", "taken out" if choice.is_redacted else "not looked for: nothing was taken out"


def _time(session: Session) -> str:
    if session.started_at is None:
        return ""
    return period(session.started_at, session.ended_at)


def _content(session: Session) -> str:
    counts, usage = session.counts, session.usage
    told = [_plural(counts.prompts, "prompt"), _plural(counts.tool_calls, "tool call")]
    if counts.tool_errors:
        told.append(f"{counts.tool_errors:,} failed")
    if usage.total is not None:
        told.append(_plural(usage.total, "token") + (" (estimated)" if usage.estimated else ""))
    return ", ".join(told)


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


Json = dict[str, Any]
BlockPlace = tuple[int, int, Look]
"""The first line behind the mark, how many lines, and how words stand in them."""


class MarkdownBlock:
    """Grows line by line; every piece is followed by an empty line."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.lines = 1  # the mark is followed by an empty line as well
        self.parts: list[Json] = []

    def put(self, text: str) -> int:
        """Add lines of our own; return how many they are."""
        self.pieces.append(text)
        count = text.count("\n") + 1
        self.lines += count + 1
        return count

    def words(self, text: str, *, is_quoted: bool = False) -> BlockPlace:
        """Add what somebody said; return where it stands."""
        lines, look = shown(text, is_quoted=is_quoted)
        start = self.lines
        return start, self.put(lines), look

    def code(self, text: str, info: str = "") -> BlockPlace:
        """Add what is not prose; return where it stands."""
        start = self.lines
        return start, self.put(fenced(text, info)), "fence"

    def page(self, about: Json) -> str:
        """Return the block behind its mark."""
        told = {**about, "lines": self.lines, **({"parts": self.parts} if self.parts else {})}
        return "\n\n".join((mark(told), *self.pieces, ""))


def put_call(block: MarkdownBlock, call: ToolCall, choice: ExportOptions) -> None:
    """Add a call, as much of it as was asked for."""
    about = _about_call(call)
    if choice.tools == "names":
        error = f": {as_code(one_line(call.error))}" if call.error else ""
        block.put(f"- {_mark(call)} {as_code(_line(call))}{_outcome(call)}{error}")
    else:
        key = one_line(key_argument_of(call.arguments))
        told = f" <code>{as_html(key)}</code>" if key else ""
        block.put(
            f"<details>\n<summary>{_mark(call)} <b>{as_html(call.name)}</b>{told}{_outcome(call)}</summary>"
        )
        about |= _arguments(block, call) | _results(block, call)
        block.put("</details>")
    block.parts.append({"call": about})


def _about_call(call: ToolCall) -> Json:
    told = {
        "id": call.id,
        "name": call.name,
        "canonical": call.canonical,
        "status": call.status,
        "native_status": call.native_status,
        "at": call.at and call.at.isoformat(),
        "child": call.child,
        "exit_code": call.exit_code,
        "server": call.server,
        "server_tool": call.server_tool,
    }
    return {name: value for name, value in told.items() if value is not None}


def _mark(call: ToolCall) -> str:
    return MARKS.get(call.status, "?")


def _line(call: ToolCall) -> str:
    return f"{call.name} {one_line(key_argument_of(call.arguments))}".rstrip()


def _outcome(call: ToolCall) -> str:
    """Return what went wrong, in a word: no meaning hangs on a mark alone."""
    bad = "" if call.status in ("success", "unknown") else f" · {call.status}"
    return bad + (f" · exit code {call.exit_code}" if call.exit_code else "")


def _arguments(block: MarkdownBlock, call: ToolCall) -> Json:
    """Add the arguments as JSON, but texts of several lines as they are."""
    long = {
        name: value
        for name, value in call.arguments.items()
        if isinstance(value, str) and "\n" in value.rstrip("\n")
    }
    short = {name: value for name, value in call.arguments.items() if name not in long}
    places: Json = {}
    if isinstance(call.display, DiffDisplay) and call.display.diff:
        places["diff"] = block.code(call.display.diff, "diff")
    if short:
        places["arguments"] = block.code(indented(short), "json")
    for name, text in long.items():
        block.put(f"{as_code(name)}:")
        places.setdefault("texts", {})[name] = block.code(text)
    return places


def _results(block: MarkdownBlock, call: ToolCall) -> Json:
    places: Json = {}
    if call.error is not None:
        block.put("**Error:**")
        places["error"] = block.code(call.error)
    if call.result is not None:
        block.put("**Result:**")
        places["result"] = block.code(call.result)
    if call.full_result is not None:
        block.put("**The whole output, of which the agent had only an extract:**")
        places["full_result"] = block.code(call.full_result)
    return places


def indented(value: Any) -> str:
    """Return a value as JSON to read, and in the order in which it was recorded."""
    compact = encoded(value)
    try:
        return msgspec.json.format(compact, indent=2).decode()
    except (msgspec.DecodeError, RecursionError):  # too deep for it
        return compact.decode()


_LABELS = {"referenced_files": "files that the prompt names", "tool_result": "a result of no known call"}
"""What was added to a message, where its kind alone would not be understood."""


def put_entry(block: MarkdownBlock, entry: Entry, choice: ExportOptions) -> None:
    """Add an entry; nothing, where there is nothing to tell."""
    if isinstance(entry, Event):
        _put_event(block, entry, choice)
        return
    _put_message(block, entry, choice)
    if choice.tokens and entry.usage is not None:
        block.put(f"<sub>{_tokens(entry.usage)}</sub>")


def _put_event(block: MarkdownBlock, event: Event, choice: ExportOptions) -> None:
    if event.kind == "compaction":
        block.put("---\n\n*The conversation was compressed here.*")
        if event.text:
            block.parts.append({"said": _folded(block, "what was left of it", event.text)})
    elif event.kind == "error":
        block.put("**Error:**")
        block.parts.append({"said": block.code(event.text)})
    elif choice.notices and event.text:
        block.parts.append({"said": _folded(block, event.kind, event.text)})
    elif choice.notices and event.opaque is not None:
        _folded(block, event.kind, indented(event.opaque.value))


def _put_message(block: MarkdownBlock, message: Message, choice: ExportOptions) -> None:
    """Add what a message says; of a prompt in several texts, the human's own words once."""
    is_told = False
    for part in message.parts:
        if isinstance(part, Text) and message.prompt is not None:
            if not is_told:
                block.parts.append({"prompt": block.words(message.prompt, is_quoted=True)})
            is_told = True
        else:
            _put_part(block, part, choice, is_quoted=message.role == "user")
    if message.prompt is not None and not is_told:
        block.parts.append({"prompt": block.words(message.prompt, is_quoted=True)})


def _put_part(block: MarkdownBlock, part: Part, choice: ExportOptions, *, is_quoted: bool) -> None:
    match part:
        case Text(text) if text.strip():
            block.parts.append({"text": block.words(text, is_quoted=is_quoted)})
        case Thinking() if choice.thoughts:
            _put_thought(block, part)
        case ToolCall() if choice.tools != "none":
            put_call(block, part, choice)
        case Attachment():
            block.put(f"- attached: {as_code(part.path or part.media_type or 'something')}")
            block.parts.append({"attachment": {"path": part.path, "media_type": part.media_type}})
        case Context(kind="shell" | "task", text=str(text)):
            block.parts.append({"context": part.kind, "said": block.words(text, is_quoted=True)})
        case Context(text=str(text)) if choice.notices or part.kind in _LABELS:
            label = _LABELS.get(part.kind, part.kind.replace("_", " "))
            block.parts.append({"context": part.kind, "said": _folded(block, label, text)})
        case Opaque() if choice.notices:
            block.parts.append({"opaque": _folded(block, "not understood", indented(part.value))})


def _put_thought(block: MarkdownBlock, thought: Thinking) -> None:
    told = f": {as_html(thought.subject)}" if thought.subject else ""
    block.put(f"<details>\n<summary>thought{told}</summary>")
    block.parts.append({"thinking": block.words(thought.text), "subject": thought.subject})
    block.put("</details>")


def _folded(block: MarkdownBlock, label: str, text: str) -> tuple[int, int, str]:
    block.put(f"<details>\n<summary>{as_html(label)}</summary>")
    place = block.code(text)
    block.put("</details>")
    return place


def _tokens(usage: Usage) -> str:
    figures = {"in": usage.input, "cached": usage.cached, "out": usage.output, "thinking": usage.reasoning}
    told = ", ".join(f"{name} {figure:,}" for name, figure in figures.items() if figure is not None)
    return f"tokens: {told}{' (estimated)' if usage.estimated else ''}"


_LEFT_OUT = ("first_prompt", "last_prompt", "timeline", "sources", "coverage", "problems", "extra")
"""What the mark of a session leaves to the page, or what that does not tell: the files, and what else the agent wrote."""


class PagePlace(NamedTuple):
    """Where in the page something is told: below how many sessions, and whether it was taken back."""

    depth: int = 0
    is_rewound: bool = False

    def heading(self, text: str) -> str:
        """Return a heading that fits; in the details of another session a bold line."""
        return f"**{text}**" if self.depth else f"{'###' if self.is_rewound else '##'} {text}"


def pieces(tellings: Iterable[ExportSession], choice: ExportOptions) -> Iterator[bytes]:
    """Yield a page for each session, its subagents inside it."""
    for telling in tellings:
        yield from (text.encode(errors="replace") for text in _session(telling, choice, PagePlace()))


def _session(telling: ExportSession, choice: ExportOptions, place: PagePlace) -> Iterator[str]:
    session = telling.session
    yield mark({"retold": PAGE, "session": _summary(session)}) + "\n\n"
    if not place.depth:
        yield facts(session, choice)
    for is_rewound, entries in groupby(session.timeline, lambda entry: entry.fate == "rewound"):
        told = _entries(entries, telling, choice, PagePlace(place.depth, is_rewound))
        yield from _folded_back(told, place) if is_rewound else told
    yield mark({"end": session.key}) + "\n"


def _summary(session: Session) -> Json:
    tree = as_builtins(msgspec.structs.replace(session, timeline=(), sources=(), problems=(), extra={}))
    return {name: value for name, value in tree.items() if name not in _LEFT_OUT}


def _folded_back(told: Iterator[str], place: PagePlace) -> Iterator[str]:
    """Yield what was taken back behind a heading, if there is any of it to tell."""
    first = next(told, None)
    if first is not None:
        yield f"{place.heading('Rewound')}\n\n<details>\n<summary>said, and then taken back</summary>\n\n{first}"
        yield from told
        yield "</details>\n\n"


def _entries(
    entries: Iterable[Entry], telling: ExportSession, choice: ExportOptions, place: PagePlace
) -> Iterator[str]:
    speaker = None
    for entry in entries:
        block = MarkdownBlock()
        name = _speaker(entry, telling.session.agent)
        if name is not None and name != speaker:
            at = f" · {minute(entry.at)}" if entry.at else ""
            block.put(place.heading(f"{name}{at}"))
        before = len(block.pieces)
        put_entry(block, entry, choice)
        if len(block.pieces) == before:
            continue
        speaker = name or speaker
        yield block.page(_about(entry))
        if isinstance(entry, Message) and choice.tools != "none":
            yield from _subagents(entry, telling, choice, place)


def _speaker(entry: Entry, agent: str) -> str | None:
    """Return who speaks, and what became of it; nobody says an event."""
    if isinstance(entry, Event):
        return None
    is_copied = not entry.own and any(isinstance(part, Text) for part in entry.parts)
    user = "You" if entry.prompt is not None or is_copied else "Context"
    names = {"user": user, "assistant": as_words(entry.model or agent), "system": "System"}
    became = [
        word for word, is_so in ((entry.fate, entry.fate != "live"), ("copied", not entry.own)) if is_so
    ]
    return names[entry.role] + (f" ({', '.join(became)})" if became else "")


def _about(entry: Entry) -> Json:
    told: Json = {"id": entry.id, "at": entry.at and entry.at.isoformat()}
    if isinstance(entry, Event):
        told = {"event": entry.kind, **told}
    else:
        told = {"role": entry.role, **told, "model": entry.model, "response": entry.response}
    told |= {"fate": None if entry.fate == "live" else entry.fate, "own": None if entry.own else False}
    return {name: value for name, value in told.items() if value is not None}


def _subagents(
    message: Message, telling: ExportSession, choice: ExportOptions, place: PagePlace
) -> Iterator[str]:
    """Yield the conversations that the calls of a message started."""
    for part in message.parts:
        child = telling.subagents.get(part.child) if isinstance(part, ToolCall) and part.child else None
        if child is not None:
            title = as_html(child.session.title or child.session.key)
            yield f"<details>\n<summary>Subagent: <b>{title}</b></summary>\n\n"
            yield from _session(child, choice, PagePlace(place.depth + 1))
            yield "\n</details>\n\n"
