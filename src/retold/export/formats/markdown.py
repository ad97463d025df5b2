"""Sessions as Markdown to read and paste, which `retold read` reads back."""

import html
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from retold.export.formats.registry import ExportOptions, ExportSession
from retold.export.text.amounts import format_usd
from retold.export.text.formatting import clean_name, format_minute, format_period, plural
from retold.export.transcript import MARKS, format_usage, key_argument, one_line, prompt_and_parts
from retold.model.serialization import encode_tree, to_builtins
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
from retold.reading.markdown_codec import PAGE, WordsForm, encode_words, fence_text, format_mark

_BACKTICKS = re.compile("`+")
_CODE_SPAN = re.compile(r"(?<!`)(`{1,3})(?!`)(.{1,500}?)(?<!`)\1(?!`)")
_LINK_OR_HTML = re.compile(r"([\\`<]|\](?=[(\[]))")
"""Characters that begin HTML, or make a link or a picture of the brackets before them."""
_MARKUP = re.compile(r"([\\`*_\[\]<>&~|$])")


def escape_markdown(text: str) -> str:
    """Return text on one line, with all markup escaped."""
    return _MARKUP.sub(r"\\\1", clean_name(text))


def markdown_code(text: str) -> str:
    """Return text on one line as code, whatever backticks it has."""
    line = clean_name(text)
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(line)), default=0))
    blank = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{blank}{line}{blank}{fence}"


def markdown_prose(text: str) -> str:
    """Return Markdown on one line without links, pictures and HTML; code and emphasis stay."""
    pieces: list[str] = []
    end, line = 0, clean_name(text)
    for span in _CODE_SPAN.finditer(line):
        pieces += (_LINK_OR_HTML.sub(r"\\\1", line[end : span.start()]), markdown_code(span[2]))
        end = span.end()
    return "".join((*pieces, _LINK_OR_HTML.sub(r"\\\1", line[end:])))


def escape_html(text: str) -> str:
    """Return text on one line for a line of HTML."""
    return html.escape(clean_name(text))


def title_and_facts(session: Session, options: ExportOptions) -> str:
    """Return the title and a list of facts."""
    lines = (f"- **{name}:** {text}" for name, text in _facts(session, options) if text)
    return f"# {escape_markdown(session.title or '(no prompt)')}\n\n" + "\n".join(lines) + "\n\n"


def _facts(session: Session, options: ExportOptions) -> Iterator[tuple[str, str]]:
    root = session.project.root or session.project.native_key
    yield "Agent", " · ".join(map(escape_markdown, (session.agent, *session.models)))
    yield "Project", markdown_code(root) if root else ""
    yield "Time", format_period(session.started_at, session.ended_at) if session.started_at else ""
    yield "Content", _content(session)
    yield "Cost", "" if session.cost_usd is None else format_usd(session.cost_usd)
    yield "Tags", ", ".join(map(markdown_code, session.tags))
    yield "Session", markdown_code(session.key)
    codes = {problem.code for problem in session.problems if problem.severity != "note"}
    yield "Problems while reading", ", ".join(sorted(codes))
    yield "Secrets", "taken out" if options.is_redacted else "not looked for"


def _content(session: Session) -> str:
    counts, usage = session.counts, session.usage
    facts = [plural(counts.prompts, "prompt"), plural(counts.tool_calls, "tool call")]
    if counts.tool_errors:
        facts.append(f"{counts.tool_errors:,} failed")
    if usage.total is not None:
        facts.append(plural(usage.total, "token") + (" (estimated)" if usage.estimated else ""))
    return ", ".join(facts)


Json = dict[str, Any]
BlockPlace = tuple[int, int, WordsForm]
"""The first line behind the mark, the number of lines, and the form of the words in them."""


class MarkdownBlock:
    """The lines of an entry. Each piece is followed by an empty line; `parts` says where each text stands."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.lines = 1  # the mark is followed by an empty line as well
        self.parts: list[Json] = []

    def add_lines(self, text: str) -> int:
        """Add lines as they are; return their number."""
        self.pieces.append(text)
        count = text.count("\n") + 1
        self.lines += count + 1
        return count

    def add_words(self, text: str, *, is_quoted: bool = False) -> BlockPlace:
        """Add words of a person or a model; return their place."""
        lines, form = encode_words(text, is_quoted=is_quoted)
        start = self.lines
        return start, self.add_lines(lines), form

    def add_code(self, text: str, info: str = "") -> BlockPlace:
        """Add a text in a fence; return its place."""
        start = self.lines
        return start, self.add_lines(fence_text(text, info)), "fence"

    def render(self, about: Json) -> str:
        """Return the block behind its mark, which says where the texts stand."""
        fields = {**about, "lines": self.lines, **({"parts": self.parts} if self.parts else {})}
        return "\n\n".join((format_mark(fields), *self.pieces, ""))


def add_call(block: MarkdownBlock, call: ToolCall, options: ExportOptions) -> None:
    """Add a call: a line, or its arguments and results behind a fold."""
    about = _about_call(call)
    mark = MARKS.get(call.status, "?")
    key = one_line(key_argument(call.arguments))
    if options.tools == "names":
        error = f": {markdown_code(one_line(call.error))}" if call.error else ""
        line = markdown_code(f"{call.name} {key}".rstrip())
        block.add_lines(f"- {mark} {line}{_outcome(call)}{error}")
    else:
        argument = f" <code>{escape_html(key)}</code>" if key else ""
        name = f"<b>{escape_html(call.name)}</b>"
        block.add_lines(f"<details>\n<summary>{mark} {name}{argument}{_outcome(call)}</summary>")
        about |= _arguments(block, call) | _results(block, call)
        block.add_lines("</details>")
    block.parts.append({"call": about})


def _about_call(call: ToolCall) -> Json:
    fields = {
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
    return {name: value for name, value in fields.items() if value is not None}


def _outcome(call: ToolCall) -> str:
    """Return what went wrong in a word, so that the sign is not needed."""
    bad = "" if call.status in ("success", "unknown") else f" · {call.status}"
    return bad + (f" · exit code {call.exit_code}" if call.exit_code else "")


def _arguments(block: MarkdownBlock, call: ToolCall) -> Json:
    """Add the arguments as JSON, but texts of several lines in fences of their own."""
    long = {
        name: value
        for name, value in call.arguments.items()
        if isinstance(value, str) and "\n" in value.rstrip("\n")
    }
    short = {name: value for name, value in call.arguments.items() if name not in long}
    places: Json = {}
    if isinstance(call.display, DiffDisplay) and call.display.diff:
        places["diff"] = block.add_code(call.display.diff, "diff")
    if short:
        places["arguments"] = block.add_code(format_json(short), "json")
    for name, text in long.items():
        block.add_lines(f"{markdown_code(name)}:")
        places.setdefault("texts", {})[name] = block.add_code(text)
    return places


def _results(block: MarkdownBlock, call: ToolCall) -> Json:
    places: Json = {}
    if call.error is not None:
        block.add_lines("**Error:**")
        places["error"] = block.add_code(call.error)
    if call.result is not None:
        block.add_lines("**Result:**")
        places["result"] = block.add_code(call.result)
    if call.full_result is not None:
        block.add_lines("**The whole output, of which the agent had only an extract:**")
        places["full_result"] = block.add_code(call.full_result)
    return places


def format_json(value: Any) -> str:
    """Return a value as indented JSON in its recorded order; compact if it is nested too deep."""
    compact = encode_tree(value)
    try:
        return msgspec.json.format(compact, indent=2).decode()
    except (msgspec.DecodeError, RecursionError):  # nested too deep
        return compact.decode()


_LABELS = {"referenced_files": "files that the prompt names", "tool_result": "a result of no known call"}
"""Labels of context whose kind alone would not be understood."""


def add_entry(block: MarkdownBlock, entry: Entry, options: ExportOptions) -> None:
    """Add an entry; nothing if the options include nothing of it."""
    if isinstance(entry, Event):
        _add_event(block, entry, options)
        return
    for part in prompt_and_parts(entry):
        if isinstance(part, str):
            block.parts.append({"prompt": block.add_words(part, is_quoted=True)})
        else:
            _add_part(block, part, options, is_quoted=entry.role == "user")
    if options.tokens and entry.usage is not None:
        block.add_lines(f"<sub>tokens: {format_usage(entry.usage)}</sub>")


def _add_event(block: MarkdownBlock, event: Event, options: ExportOptions) -> None:
    if event.kind == "compaction":
        block.add_lines("---\n\n*The conversation was compressed here.*")
        if event.text:
            block.parts.append({"said": _add_fold(block, "what was left of it", event.text)})
    elif event.kind == "error":
        block.add_lines("**Error:**")
        block.parts.append({"said": block.add_code(event.text)})
    elif options.notices and event.text:
        block.parts.append({"said": _add_fold(block, event.kind, event.text)})
    elif options.notices and event.opaque is not None:
        _add_fold(block, event.kind, format_json(event.opaque.value))


def _add_part(block: MarkdownBlock, part: Part, options: ExportOptions, *, is_quoted: bool) -> None:
    match part:
        case Text(text) if text.strip():
            block.parts.append({"text": block.add_words(text, is_quoted=is_quoted)})
        case Thinking() if options.thoughts:
            subject = f": {escape_html(part.subject)}" if part.subject else ""
            block.add_lines(f"<details>\n<summary>thought{subject}</summary>")
            block.parts.append({"thinking": block.add_words(part.text), "subject": part.subject})
            block.add_lines("</details>")
        case ToolCall() if options.tools != "none":
            add_call(block, part, options)
        case Attachment():
            block.add_lines(f"- attached: {markdown_code(part.path or part.media_type or 'something')}")
            block.parts.append({"attachment": {"path": part.path, "media_type": part.media_type}})
        case Context(kind="shell" | "task", text=str(text)):
            block.parts.append({"context": part.kind, "said": block.add_words(text, is_quoted=True)})
        case Context(text=str(text)) if options.notices or part.kind in _LABELS:
            label = _LABELS.get(part.kind, part.kind.replace("_", " "))
            block.parts.append({"context": part.kind, "said": _add_fold(block, label, text)})
        case Opaque() if options.notices:
            block.parts.append({"opaque": _add_fold(block, "not understood", format_json(part.value))})


def _add_fold(block: MarkdownBlock, label: str, text: str) -> BlockPlace:
    block.add_lines(f"<details>\n<summary>{escape_html(label)}</summary>")
    place = block.add_code(text)
    block.add_lines("</details>")
    return place


_LEFT_OUT = ("first_prompt", "last_prompt", "timeline", "sources", "coverage", "problems", "extra")
"""Fields of a session that its mark omits: they stand on the page, or are not exported."""


class PagePlace(NamedTuple):
    """The place of entries on the page: below how many sessions, and whether they were rewound."""

    depth: int = 0
    is_rewound: bool = False

    def heading(self, text: str) -> str:
        """Return a heading; in the fold of a subagent a bold line."""
        return f"**{text}**" if self.depth else f"{'###' if self.is_rewound else '##'} {text}"


def encode_sessions(exports: Iterable[ExportSession], options: ExportOptions) -> Iterator[bytes]:
    """Yield a page for each session, its subagents inside it."""
    for export in exports:
        yield from (text.encode(errors="replace") for text in _session(export, options, PagePlace()))


def _session(export: ExportSession, options: ExportOptions, place: PagePlace) -> Iterator[str]:
    session = export.session
    tree = to_builtins(msgspec.structs.replace(session, timeline=(), sources=(), problems=(), extra={}))
    summary = {name: value for name, value in tree.items() if name not in _LEFT_OUT}
    yield format_mark({"retold": PAGE, "session": summary}) + "\n\n"
    if not place.depth:
        yield title_and_facts(session, options)
    for is_rewound, entries in groupby(session.timeline, lambda entry: entry.fate == "rewound"):
        blocks = _entries(entries, export, options, PagePlace(place.depth, is_rewound))
        yield from _fold_rewound(blocks, place) if is_rewound else blocks
    yield format_mark({"end": session.key}) + "\n"


def _fold_rewound(blocks: Iterator[str], place: PagePlace) -> Iterator[str]:
    """Yield rewound entries behind a heading, if there are any."""
    first = next(blocks, None)
    if first is not None:
        yield f"{place.heading('Rewound')}\n\n<details>\n<summary>said, and then taken back</summary>\n\n{first}"
        yield from blocks
        yield "</details>\n\n"


def _entries(
    entries: Iterable[Entry], export: ExportSession, options: ExportOptions, place: PagePlace
) -> Iterator[str]:
    speaker = None
    for entry in entries:
        block = MarkdownBlock()
        name = _speaker(entry, export.session.agent)
        if name is not None and name != speaker:
            at = f" · {format_minute(entry.at)}" if entry.at else ""
            block.add_lines(place.heading(f"{name}{at}"))
        before = len(block.pieces)
        add_entry(block, entry, options)
        if len(block.pieces) == before:
            continue
        speaker = name or speaker
        yield block.render(_about(entry))
        if isinstance(entry, Message) and options.tools != "none":
            yield from _subagents(entry, export, options, place)


def _speaker(entry: Entry, agent: str) -> str | None:
    """Return the speaker of a message with its fate; None for an event."""
    if isinstance(entry, Event):
        return None
    is_copied = not entry.own and any(isinstance(part, Text) for part in entry.parts)
    user = "You" if entry.prompt is not None or is_copied else "Context"
    names = {"user": user, "assistant": escape_markdown(entry.model or agent), "system": "System"}
    words = ([] if entry.fate == "live" else [entry.fate]) + ([] if entry.own else ["copied"])
    return names[entry.role] + (f" ({', '.join(words)})" if words else "")


def _about(entry: Entry) -> Json:
    fields: Json = {"id": entry.id, "at": entry.at and entry.at.isoformat()}
    if isinstance(entry, Event):
        fields = {"event": entry.kind, **fields}
    else:
        fields = {"role": entry.role, **fields, "model": entry.model, "response": entry.response}
    fields |= {"fate": None if entry.fate == "live" else entry.fate, "own": None if entry.own else False}
    return {name: value for name, value in fields.items() if value is not None}


def _subagents(
    message: Message, export: ExportSession, options: ExportOptions, place: PagePlace
) -> Iterator[str]:
    """Yield the subagents that the calls of a message started."""
    for part in message.parts:
        child = export.subagents.get(part.child) if isinstance(part, ToolCall) and part.child else None
        if child is not None:
            title = escape_html(child.session.title or child.session.key)
            yield f"<details>\n<summary>Subagent: <b>{title}</b></summary>\n\n"
            yield from _session(child, options, PagePlace(place.depth + 1))
            yield "\n</details>\n\n"
