"""HTML pages of conversations, and the index of a folder of them."""

import hashlib
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from jinja2 import BaseLoader, ChoiceLoader, FileSystemLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from retold.export.formats.registry import ExportOptions, ExportSession
from retold.export.html.blocks import RenderContext, show_control_chars
from retold.export.html.entries import EntryView, entry_view, is_part_shown, is_shown, speaker
from retold.export.text.amounts import format_count, format_duration, format_usd
from retold.export.text.formatting import (
    PIECE_LENGTH,
    clean_name,
    format_period,
    plural,
    project_names,
    zone_names,
)
from retold.export.transcript import one_line, problem_summary
from retold.model.session import Entry, Message, Opaque, Session, Thinking, ToolCall, prompt_words
from retold.search.dates import to_local

_HEADINGS = {
    "rewound": "Taken back: the conversation went on as if this had not been said",
    "compacted": "Before the compression: the agent itself kept only a summary of this",
    "superseded": "Replaced: this was said again in another way",
    "copied": "Copied from an earlier session",
}
_OPEN = ("live", "compacted", "copied")
"""Fates that are shown unfolded; entries of the others are side branches, folded behind their heading."""
_PROMPT = 1_000

Numbered = tuple[int, Entry]


class EntryRun(msgspec.Struct, frozen=True):
    """Consecutive entries with the same fate."""

    fate: str
    """`live`, `rewound`, `compacted`, `superseded`, or `copied`."""
    heading: str
    """The fate in words; empty for live entries."""
    is_open: bool
    level: int
    entries: Iterator[EntryView]


class Prompt(msgspec.Struct, frozen=True):
    """A line of the table of contents."""

    anchor: str
    text: str
    fate: str


def entry_runs(context: RenderContext) -> Iterator[EntryRun]:
    """Yield the runs of a conversation, lazily."""
    shown = [(number, entry) for number, entry in _numbered(context) if is_shown(entry, context.options)]
    for fate, group in groupby(shown, key=_fate_of):
        entries = list(group)
        messages = sum(isinstance(entry, Message) for _, entry in entries)
        heading = f"{_HEADINGS[fate]} ({plural(messages, 'message')})" if fate in _HEADINGS else ""
        yield EntryRun(fate, heading, fate in _OPEN, context.level, _views(entries, context))


def table_of_contents(context: RenderContext) -> Iterator[Prompt]:
    """Yield a line for each prompt."""
    for number, entry in _numbered(context):
        words = prompt_words(entry)
        if words is not None:
            text = show_control_chars(one_line(words[:_PROMPT])) or "(nothing)"
            yield Prompt(f"{context.prefix}{number}", text, _fate_of((number, entry)))


def _numbered(context: RenderContext) -> Iterator[Numbered]:
    """Yield entries with the numbers of messages, from 1 whatever is shown; or with places, for a part of a session."""
    if context.first is not None:
        yield from enumerate(context.export.session.timeline, context.first)
        return
    number = 0
    for entry in context.export.session.timeline:
        number += isinstance(entry, Message)
        yield number, entry


def _fate_of(numbered: Numbered) -> str:
    entry = numbered[1]
    return "copied" if entry.fate == "live" and not entry.own else entry.fate


def _views(entries: Sequence[Numbered], context: RenderContext) -> Iterator[EntryView]:
    before: tuple[str | None, ...] = (None,)
    for number, entry in entries:
        now = speaker(entry)
        yield entry_view(entry, number, context, goes_on=now == before != (None,))
        before = now


_ENDS = {
    "success": "with an answer",
    "failure": "with a tool that failed",
    "interrupted": "before an answer came",
}


class Fact(NamedTuple):
    """The name and the value of a fact."""

    name: str
    value: str


def session_facts(session: Session, *, has_zone: bool = True) -> Iterator[Fact]:
    """Yield the known facts of a session; times are local."""
    counts, usage = session.counts, session.usage
    failed = f", {counts.tool_errors:,} failed" if counts.tool_errors else ""
    if session.started_at is not None:
        when = format_period(session.started_at, session.ended_at, has_zone=has_zone)
    else:
        when = f"until {format_period(session.ended_at, None, has_zone=has_zone)}" if session.ended_at else ""
    facts = {
        "Agent": session.agent,
        "Model": ", ".join(session.models),
        "Project": _project(session),
        "When": when,
        "Took": _took(session),
        "Prompts": format_count(counts.prompts),
        "Tool calls": f"{counts.tool_calls:,}{failed}",
        "Tokens": f"{usage.total:,}{' (estimated)' if usage.estimated else ''}"
        if usage.total is not None
        else "",
        "Cost": format_usd(session.cost_usd) if session.cost_usd is not None else "",
        "Tags": ", ".join(session.tags),
        "Ended": _ENDS[session.status],
        "Session": session.key,
    }
    yield from (Fact(name, value) for name, value in facts.items() if value)


def _took(session: Session) -> str:
    if session.started_at is None or session.ended_at is None or session.are_times_derived:
        return ""
    seconds = (session.ended_at - session.started_at).total_seconds()
    return format_duration(seconds) if seconds > 0 else ""


def _project(session: Session) -> str:
    project = session.project
    if project.root is None:
        return project.native_key or (project.hash or "")[:8]
    return f"{project.root} (guessed)" if project.evidence == "guessed" else project.root


_OPTIONS = {"thought": "--thoughts", "tool call": "--tools full", "notice": "--notices"}


def left_out_note(context: RenderContext) -> str:
    """Return what the page does not show and the command that shows it; empty if it shows everything."""
    numbers = Counter(_left_out(context.export.session, context.options))
    kinds = [kind for kind in _OPTIONS if numbers[kind]]
    if not kinds:
        return ""
    counts = {kind: plural(numbers[kind], kind) for kind in kinds}
    if "tool call" in counts and context.options.tools == "names":
        counts["tool call"] = f"the details of {counts['tool call']}"
    options = " ".join(_OPTIONS[kind] for kind in kinds)
    return f"Left out here: {', '.join(counts.values())}. All of it: retold show {context.key} {options}"


def _left_out(session: Session, options: ExportOptions) -> Iterator[str]:
    """Yield the kind of each part that is not shown, or shown by its name alone."""
    for entry in session.timeline:
        if isinstance(entry, Message):
            for part in entry.parts:
                kind = _kind(part)
                is_full = kind != "tool call" or options.tools == "full"
                if kind and not (is_part_shown(part, options) and is_full):
                    yield kind
        elif (entry.text or entry.opaque) and not is_shown(entry, options):
            yield "notice"


def _kind(part: object) -> str | None:
    match part:
        case Thinking():
            return "thought"
        case ToolCall():
            return "tool call"
        case Opaque():
            return "notice"
        case _:
            text = getattr(part, "text", None)
            return "notice" if text and text.strip() else None


TEMPLATES = Path(__file__).parent / "templates"


class PageTemplates:
    """Templates that escape all values, with a policy under which a browser runs nothing and loads nothing."""

    def __init__(self, folder: Path | None) -> None:
        loaders: list[BaseLoader] = [FileSystemLoader(folder)] if folder else []
        # A template may be foreign: in a sandbox it sees its values and nothing of the machine.
        self._templates = ImmutableSandboxedEnvironment(
            loader=ChoiceLoader([*loaders, FileSystemLoader(TEMPLATES)]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=escape_value,
        )
        style = self._templates.get_template("style.css").render().replace("</", "<\\/")
        digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
        self._templates.globals |= {
            "policy": f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'",
            "left_out": left_out_note,
            "runs": entry_runs,
            "style": Markup(style),  # noqa: S704 - built in, or the user's own
        }

    def render_pieces(self, name: str, **values: Any) -> Iterator[bytes]:
        """Yield a page in pieces. The values are read while the pieces are."""
        return _join_pieces(self._templates.get_template(name).generate(**values))


@lru_cache(maxsize=4)
def page_templates(folder: Path | None) -> PageTemplates:
    """Return the templates of a folder, or the built-in ones; they are compiled once for many pages."""
    return PageTemplates(folder)


def escape_value(value: Any) -> Any:
    """Return a value with hidden characters written out. Every value of every template passes through it."""
    return show_control_chars(value) if type(value) is str else value


def _join_pieces(texts: Iterable[str]) -> Iterator[bytes]:
    waiting: list[str] = []
    size = 0
    for text in texts:
        waiting.append(text)
        size += len(text)
        if size >= PIECE_LENGTH:
            yield "".join(waiting).encode()
            waiting, size = [], 0
    yield "".join(waiting).encode()


UNTITLED = "A conversation without a title"


class PageView(msgspec.Struct, frozen=True):
    """A page as templates get it; docs/exports.md lists its fields."""

    title: str
    facts: tuple[Fact, ...]
    problems: str
    contents: tuple[Prompt, ...]
    """The prompts, a line each."""
    runs: Iterator[EntryRun]
    """The conversation, which can be iterated once."""
    left_out: str
    is_redacted: bool
    zone: str
    """The name of the time zone."""


def encode_sessions(exports: Iterable[ExportSession], options: ExportOptions) -> Iterator[bytes]:
    """Yield the page of each conversation; a file holds one."""
    for export in exports:
        yield from page_templates(options.templates).render_pieces("page.html", page=_page(export, options))


def _page(export: ExportSession, options: ExportOptions) -> PageView:
    session, context = export.session, RenderContext(export, options)
    return PageView(
        title=session.title or UNTITLED,
        facts=tuple(session_facts(session)),
        problems=problem_summary(session),
        contents=tuple(table_of_contents(context)),
        runs=entry_runs(context),
        left_out=left_out_note(context),
        is_redacted=options.is_redacted,
        zone=zone_names(),
    )


_NOWHERE = "no project known"
_BEGINNING = datetime.min.replace(tzinfo=UTC)


class IndexRow(msgspec.Struct, frozen=True):
    """A conversation in the index."""

    href: str
    title: str
    agent: str
    at: datetime | None
    prompts: str
    cost: str


class IndexPage(msgspec.Struct, frozen=True):
    """The conversations of one project in the index, the newest first."""

    name: str
    root: str
    rows: tuple[IndexRow, ...]


def encode_index(entries: Iterable[tuple[str, Session]], options: ExportOptions) -> Iterator[bytes]:
    """Yield a page with links to conversations, whose paths are relative to it; timelines are not used."""
    rows: dict[str, list[IndexRow]] = {}
    for path, session in entries:
        root = session.project.root or session.project.hash or session.project.native_key or ""
        rows.setdefault(root, []).append(_row(path, session))
    total = plural(sum(map(len, rows.values())), "conversation")
    values = {
        "shelves": tuple(_projects(rows)),
        "told": f"{total} in {plural(sum(map(bool, rows)), 'project')}",
        "is_redacted": options.is_redacted,
        "zone": zone_names(),
    }
    yield from page_templates(options.templates).render_pieces("index.html", **values)


def _row(path: str, session: Session) -> IndexRow:
    at = session.ended_at or session.started_at
    return IndexRow(
        href=f"./{quote(path, errors='replace')}",  # `./` keeps a colon in the name from making a scheme
        title=session.title or UNTITLED,
        agent=session.agent,
        at=at and to_local(at),
        prompts=plural(session.counts.prompts, "prompt"),
        cost=format_usd(session.cost_usd),
    )


def _projects(rows: dict[str, list[IndexRow]]) -> Iterator[IndexPage]:
    """Yield the projects, the one with the newest conversation first."""
    names = project_names(root for root in rows if root)
    ordered = {root: tuple(sorted(of_root, key=_time, reverse=True)) for root, of_root in rows.items()}
    for root in sorted(ordered, key=lambda root: _time(ordered[root][0]), reverse=True):
        yield IndexPage(clean_name(names[root]) if root else _NOWHERE, root, ordered[root])


def _time(row: IndexRow) -> datetime:
    return row.at or _BEGINNING
