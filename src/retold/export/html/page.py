"""A conversation as a page of its own."""

import hashlib
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
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
from retold.export.text.numbers import count, money, span
from retold.export.text.table import clean, project_names
from retold.export.text.times import period, zone_names
from retold.export.transcript import one_line, plural
from retold.model.report import PICOS
from retold.model.session import Entry, Message, Opaque, Session, Thinking, ToolCall, words_of
from retold.search.dates import local

_HEADINGS = {
    "rewound": "Taken back: the conversation went on as if this had not been said",
    "compacted": "Before the compression: the agent itself kept only a summary of this",
    "superseded": "Replaced: this was said again in another way",
    "copied": "Copied from an earlier session",
}
_OPEN = ("live", "compacted", "copied")
"""What happened all the same; the rest is a side branch, behind its heading until somebody asks."""
_PROMPT = 1_000

Numbered = tuple[int, Entry]


class EntryRun(msgspec.Struct, frozen=True):
    """Entries that follow each other and had the same fate."""

    fate: str
    """`live`, `rewound`, `compacted`, `superseded`, or `copied`."""
    heading: str
    """What became of them; nothing for those that still hold."""
    is_open: bool
    level: int
    entries: Iterator[EntryView]


class Prompt(msgspec.Struct, frozen=True):
    """A line of the table of contents."""

    anchor: str
    text: str
    fate: str


def runs(frame: RenderContext) -> Iterator[EntryRun]:
    """Yield the pieces of a conversation, each made when it is asked for."""
    shown = [(number, entry) for number, entry in _numbered(frame) if is_shown(entry, frame.choice)]
    for fate, group in groupby(shown, key=_fate_of):
        entries = list(group)
        messages = sum(isinstance(entry, Message) for _, entry in entries)
        heading = f"{_HEADINGS[fate]} ({plural(messages, 'message')})" if fate in _HEADINGS else ""
        yield EntryRun(fate, heading, fate in _OPEN, frame.level, _views(entries, frame))


def contents(frame: RenderContext) -> Iterator[Prompt]:
    """Yield what people said, a line each."""
    for number, entry in _numbered(frame):
        words = words_of(entry)
        if words is not None:
            text = show_control_chars(one_line(words[:_PROMPT])) or "(nothing)"
            yield Prompt(f"{frame.prefix}{number}", text, _fate_of((number, entry)))


def _numbered(frame: RenderContext) -> Iterator[Numbered]:
    """Number the messages from 1: the same ones have the same numbers, whatever else is shown; or all by their places."""
    if frame.first is not None:
        yield from enumerate(frame.telling.session.timeline, frame.first)
        return
    number = 0
    for entry in frame.telling.session.timeline:
        number += isinstance(entry, Message)
        yield number, entry


def _fate_of(numbered: Numbered) -> str:
    entry = numbered[1]
    return "copied" if entry.fate == "live" and not entry.own else entry.fate


def _views(entries: Sequence[Numbered], frame: RenderContext) -> Iterator[EntryView]:
    before: tuple[str | None, ...] = (None,)
    for number, entry in entries:
        now = speaker(entry)
        yield entry_view(entry, number, frame, goes_on=now == before != (None,))
        before = now


_ENDS = {
    "success": "with an answer",
    "failure": "with a tool that failed",
    "interrupted": "before an answer came",
}


class Fact(NamedTuple):
    """A name and what it is here."""

    name: str
    value: str


def facts(session: Session, *, has_zone: bool = True) -> Iterator[Fact]:
    """Yield the known facts of a session. Times are local."""
    counts, usage = session.counts, session.usage
    failed = f", {counts.tool_errors:,} failed" if counts.tool_errors else ""
    told = {
        "Agent": session.agent,
        "Model": ", ".join(session.models),
        "Project": _project(session),
        "When": _when(session.started_at, session.ended_at, has_zone=has_zone),
        "Took": _took(session),
        "Prompts": count(counts.prompts),
        "Tool calls": f"{counts.tool_calls:,}{failed}",
        "Tokens": f"{usage.total:,}{' (estimated)' if usage.estimated else ''}"
        if usage.total is not None
        else "",
        "Cost": cost(session.cost_usd) if session.cost_usd is not None else "",
        "Tags": ", ".join(session.tags),
        "Ended": _ENDS[session.status],
        "Session": session.key,
    }
    yield from (Fact(name, value) for name, value in told.items() if value)


def cost(dollars: Decimal | None) -> str:
    """Return money as a person reads it."""
    return money(None if dollars is None else int(dollars * PICOS))


def _when(started_at: datetime | None, ended_at: datetime | None, *, has_zone: bool) -> str:
    if started_at is None:
        return f"until {period(ended_at, None, has_zone=has_zone)}" if ended_at else ""
    return period(started_at, ended_at, has_zone=has_zone)


def _took(session: Session) -> str:
    if session.started_at is None or session.ended_at is None or session.are_times_derived:
        return ""
    seconds = (session.ended_at - session.started_at).total_seconds()
    return span(seconds) if seconds > 0 else ""


def _project(session: Session) -> str:
    project = session.project
    if project.root is None:
        return project.native_key or (project.hash or "")[:8]
    return f"{project.root} (guessed)" if project.evidence == "guessed" else project.root


def problems(session: Session) -> str:
    """Return what went wrong while the session was read."""
    codes = [problem.code for problem in session.problems if problem.severity != "note"]
    return f"{plural(len(codes), 'problem')} while reading: {', '.join(sorted(set(codes)))}" if codes else ""


_OPTIONS = {"thought": "--thoughts", "tool call": "--tools full", "notice": "--notices"}


def left_out(frame: RenderContext) -> str:
    """Return what a page does not show because nobody asked for it, and how to see it; nothing if it shows all."""
    numbers = Counter(_left_out(frame.telling.session, frame.choice))
    kinds = [kind for kind in _OPTIONS if numbers[kind]]
    if not kinds:
        return ""
    told = {kind: plural(numbers[kind], kind) for kind in kinds}
    if "tool call" in told and frame.choice.tools == "names":
        told["tool call"] = f"the details of {told['tool call']}"
    options = " ".join(_OPTIONS[kind] for kind in kinds)
    return f"Left out here: {', '.join(told.values())}. All of it: retold show {frame.key} {options}"


def _left_out(session: Session, choice: ExportOptions) -> Iterator[str]:
    """Yield the kind of each thing that is not shown, or of which only the name is."""
    for entry in session.timeline:
        if isinstance(entry, Message):
            kinds = ((_kind(part), is_part_shown(part, choice)) for part in entry.parts)
            yield from (kind for kind, is_told in kinds if kind and not (is_told and _is_full(kind, choice)))
        elif (entry.text or entry.opaque) and not is_shown(entry, choice):
            yield "notice"


def _is_full(kind: str, choice: ExportOptions) -> bool:
    """Tell whether what is shown is shown with everything in it."""
    return kind != "tool call" or choice.tools == "full"


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


OURS = Path(__file__).parent / "templates"
PIECE = 65_536
"""How many characters are written at a time."""


class Looks:
    """How pages look: templates that escape by themselves, and a policy under which a browser runs and loads nothing."""

    def __init__(self, folder: Path | None) -> None:
        loaders: list[BaseLoader] = [FileSystemLoader(folder)] if folder else []
        # Somebody may use a look that another made: a template can tell everything, and reach nothing else.
        self._templates = ImmutableSandboxedEnvironment(
            loader=ChoiceLoader([*loaders, FileSystemLoader(OURS)]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=seen,
        )
        style = self._templates.get_template("style.css").render().replace("</", "<\\/")
        digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
        self._templates.globals |= {
            "policy": f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'",
            "left_out": left_out,
            "runs": runs,
            "style": Markup(style),  # noqa: S704 - ours, or the user's own
        }

    def pieces(self, name: str, **given: Any) -> Iterator[bytes]:
        """Yield a page as it comes into being: what it is told is asked for only then."""
        return _encoded(self._templates.get_template(name).generate(**given))


@lru_cache(maxsize=4)
def looks(folder: Path | None) -> Looks:
    """Return the looks of a folder, or ours: templates are made ready once for many pages."""
    return Looks(folder)


def seen(value: Any) -> Any:
    """Let no text into a page with characters that hide, whatever template it goes through."""
    return show_control_chars(value) if type(value) is str else value


def _encoded(texts: Iterable[str]) -> Iterator[bytes]:
    held: list[str] = []
    size = 0
    for text in texts:
        held.append(text)
        size += len(text)
        if size >= PIECE:
            yield "".join(held).encode()
            held, size = [], 0
    yield "".join(held).encode()


UNTITLED = "A conversation without a title"


class PageView(msgspec.Struct, frozen=True):
    """A page, as templates get it."""

    title: str
    facts: tuple[Fact, ...]
    problems: str
    contents: tuple[Prompt, ...]
    """What people said, a line each."""
    runs: Iterator[EntryRun]
    """The conversation, piece by piece: it can be gone through once."""
    left_out: str
    is_redacted: bool
    zone: str
    """Name of the time zone of the times."""


def pieces(tellings: Iterable[ExportSession], choice: ExportOptions) -> Iterator[bytes]:
    """Yield the page of each conversation; a file holds one."""
    for telling in tellings:
        yield from looks(choice.templates).pieces("page.html", page=_page(telling, choice))


def _page(telling: ExportSession, choice: ExportOptions) -> PageView:
    session, frame = telling.session, RenderContext(telling, choice)
    return PageView(
        title=session.title or UNTITLED,
        facts=tuple(facts(session)),
        problems=problems(session),
        contents=tuple(contents(frame)),
        runs=runs(frame),
        left_out=left_out(frame),
        is_redacted=choice.is_redacted,
        zone=zone_names(),
    )


_NOWHERE = "no project known"
_BEGINNING = datetime.min.replace(tzinfo=UTC)


class IndexRow(msgspec.Struct, frozen=True):
    """A conversation in the list."""

    href: str
    title: str
    agent: str
    at: datetime | None
    prompts: str
    cost: str


class IndexPage(msgspec.Struct, frozen=True):
    """The conversations of one project, the newest first."""

    name: str
    root: str
    rows: tuple[IndexRow, ...]


def index_pieces(entries: Iterable[tuple[str, Session]], choice: ExportOptions) -> Iterator[bytes]:
    """Yield a page with a link to each conversation; paths are relative to the page, timelines are not looked at."""
    rows: dict[str, list[IndexRow]] = {}
    for path, session in entries:
        root = session.project.root or session.project.hash or session.project.native_key or ""
        rows.setdefault(root, []).append(_row(path, session))
    shelves = tuple(_shelves(rows))
    told = (
        f"{plural(sum(map(len, rows.values())), 'conversation')} in {plural(sum(map(bool, rows)), 'project')}"
    )
    yield from looks(choice.templates).pieces(
        "index.html", shelves=shelves, told=told, is_redacted=choice.is_redacted, zone=zone_names()
    )


def _row(path: str, session: Session) -> IndexRow:
    at = session.ended_at or session.started_at
    return IndexRow(
        href=f"./{quote(path, errors='replace')}",  # in a path that begins so no colon makes a scheme
        title=session.title or UNTITLED,
        agent=session.agent,
        at=at and local(at),
        prompts=plural(session.counts.prompts, "prompt"),
        cost=cost(session.cost_usd),
    )


def _shelves(rows: dict[str, list[IndexRow]]) -> Iterator[IndexPage]:
    """Yield the projects, that with the newest conversation first."""
    names = project_names(root for root in rows if root)
    ordered = {root: tuple(sorted(held, key=_time, reverse=True)) for root, held in rows.items()}
    for root in sorted(ordered, key=lambda root: _time(ordered[root][0]), reverse=True):
        yield IndexPage(clean(names[root]) if root else _NOWHERE, root, ordered[root])


def _time(row: IndexRow) -> datetime:
    return row.at or _BEGINNING
