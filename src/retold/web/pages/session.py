"""The page of a session and its pieces: entries, outline, calls, subagents, search, ledger, resume and export."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import Any

import msgspec

from retold.archive.database import IndexDamagedError, RetoldError
from retold.archive.store import Store
from retold.export.files import file_name
from retold.export.formats.registry import FORMATS, ExportOptions, ExportSession
from retold.export.html.blocks import HEAD, TAIL, RenderContext
from retold.export.html.entries import Block, entry_view
from retold.export.html.page import UNTITLED, entry_runs, session_facts
from retold.export.html.tool_calls import CallView
from retold.export.text.formatting import clean_name
from retold.export.text.report_table import price_terms, request_spend
from retold.export.transcript import TranscriptOptions, format_transcript, problem_summary
from retold.maintenance.restore import format_full_command, is_endangered, plan_resume
from retold.model.report import Spend
from retold.model.session import View
from retold.redaction import Redactor
from retold.reports.stats import explain_session_requests
from retold.search.pages import MOST_HITS, find_in_session
from retold.search.query import QuerySyntaxError
from retold.search.related import find_related, load_state
from retold.sessions.slices import TimelineSlice, load_slice, load_turns
from retold.web.background import run_export
from retold.web.charts import LENGTH, minimap_paths, turn_kind
from retold.web.templating import Answer, Download, NotFound, PageRequest, PageRoute, TemplatePage
from retold.web.url_state import TOGGLES, TOOLS, parse_display_options

PAGE = 40
"""Entries that are sent at a time."""
FIRST = 12
"""Entries of the first part, which the visitor waits for."""
BEFORE = 6
"""Entries before the requested one."""
LONG = 2_000
"""Characters of a call that is sent only when it is unfolded."""
CLIPPED = HEAD + TAIL
FARTHEST = 10**9
ALL = ExportOptions(thoughts=True, tokens=True, notices=True, is_redacted=False)
"""Everything is sent, and CSS hides what is not shown: toggling takes no request."""


def view_of(request: PageRequest) -> View:
    """Return the requested view."""
    return "active" if request.get("view") == "active" else "full"


def load_part_at(store: Store, key: str, at: int, view: View) -> TimelineSlice:
    """Return the part of a session around a place; raises NotFound if there is no session."""
    part = load_part(store, key, max(0, at - BEFORE), view, FIRST)
    if part.first + len(part.session.timeline) <= at < part.total:  # large entries before it fill the part
        part = load_part(store, key, at, view, FIRST)
    return part


def load_part(store: Store, key: str, first: int, view: View, count: int = PAGE) -> TimelineSlice:
    """Return the part of a session from a place on; raises NotFound if there is no session."""
    part = load_slice(store, key, first, count, view)
    if part is None:
        raise NotFound(f"There is no session {key} in the archive.")
    return part


def load_part_before(store: Store, key: str, end: int, view: View) -> TimelineSlice:
    """Return the part of a session before a place, with fewer entries if they are large."""
    count = min(PAGE, end)
    while True:
        part = load_part(store, key, end - count, view, count)
        if len(part.session.timeline) >= count or count <= 1:
            return part
        count //= 2


def part_values(
    request: PageRequest, part: TimelineSlice, prefix: str = "e", level: int = 2, depth: int = 0
) -> dict[str, Any]:
    """Return the values for the templates of a part."""
    context = RenderContext(ExportSession(part.session), ALL, prefix, level, depth, part.first)
    end = part.first + len(part.session.timeline)
    return {
        "frame": context,
        "runs": entry_runs(context),
        "first": part.first,
        "end": end,
        "total": part.total,
        "earlier": max(0, part.first - FIRST + BEFORE) if part.first else None,
        "later": end if end < part.total else None,
        "view": part.session.view,
        "shows": parse_display_options(request),
        "show": request.get("show"),
        "long": LONG,
        "clipped": CLIPPED,
        "grouped": group_calls,
    }


def piece_page(request: PageRequest, template: str, values: Mapping[str, Any]) -> TemplatePage:
    """Return a piece of the session page; a page of its own if no script requested it."""
    values = {"key": request.get("key"), **values}
    if request.get("piece"):
        return TemplatePage(template, values)
    return TemplatePage("session_alone.html", {**values, "template": template})


def group_calls(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Yield the blocks of an entry; consecutive calls are one group."""
    for is_call, group in groupby(blocks, key=lambda block: isinstance(block, CallView)):
        if is_call:
            yield list(group)
        else:
            yield from ([block] for block in group)


FIRST_TURNS, MOST_TURNS = 40, 2_000
"""Lines of the outline at first and at most; of a longer session those around the place."""
_ABOVE = ("Agent", "Tags")
"""Facts above the title."""
_LEDGER = ("Tokens", "Cost")
"""Facts that link to the ledger."""


def session(request: PageRequest, store: Store) -> Answer:
    """Answer with the page of a session, from its beginning or around a place."""
    at = request.number("at", 0, FARTHEST)
    part = load_part_at(store, request.get("key"), at, view_of(request))
    return TemplatePage(
        "session.html",
        {**part_values(request, part), **_about(store, part), **_outline(store, part, at, FIRST_TURNS)},
    )


def part(request: PageRequest, store: Store) -> Answer:
    """Answer with further entries: around a place, from it on, or before it."""
    key, view = request.get("key"), view_of(request)
    until = request.number("until", 0, FARTHEST)
    if until:
        found = load_part_before(store, key, until, view)
    elif request.get("at"):
        found = load_part_at(store, key, request.number("at", 0, FARTHEST), view)
    else:
        found = load_part(store, key, request.number("first", 0, FARTHEST), view)
    return TemplatePage("session_part.html", part_values(request, found))


def outline(request: PageRequest, store: Store) -> Answer:
    """Answer with the outline."""
    at = request.number("at", 0, FARTHEST)
    found = load_part(store, request.get("key"), at, view_of(request), 0)
    return TemplatePage(
        "session_outline.html", {**part_values(request, found), **_outline(store, found, at, MOST_TURNS)}
    )


def _about(store: Store, part: TimelineSlice) -> dict[str, Any]:
    session = part.session
    state = load_state(store, session.key)
    states = [source.state for source in session.sources]
    return {
        "session": session,
        "title": session.title or UNTITLED,
        "facts": [
            (fact, fact.name in _LEDGER)
            for fact in session_facts(session, has_zone=False)
            if fact.name not in _ABOVE
        ],
        "problems": problem_summary(session),
        "fates": {} if state is None else state.fates,
        "copied": 0 if state is None else state.copied,
        "stamp": "" if state is None else state.stamp,
        "is_gone": bool(states) and "present" not in states,
        "homes": sorted({source.home for source in session.sources if source.home}),
        "formats": [(name, form.description) for name, form in FORMATS.items()],
        "toggles": TOGGLES,
        "tools": TOOLS,
    }


def _outline(store: Store, part: TimelineSlice, at: int, most: int) -> dict[str, Any]:
    turns = load_turns(store, part.session.key, part.session.view)
    here = sum(turn.seq <= at for turn in turns)
    begin = max(0, min(here - most // 2, len(turns) - most))
    return {
        "turns": [(turn, turn_kind(turn)) for turn in turns[begin : begin + most]],
        "begin": begin,
        "all_turns": len(turns),
        "strip": minimap_paths(turns, part.total),
        "strip_length": LENGTH,
    }


LEDGER = 100
"""Requests on a page of the ledger."""
_EVERYTHING = TranscriptOptions("full", thoughts=True, tokens=True, notices=True)
_ANCHOR = re.compile(r"(?:e[0-9]{1,9}-[0-9]{1,9}-){1,8}")
"""Start of the anchors inside a call."""


def _entry(request: PageRequest, store: Store) -> TimelineSlice:
    at = request.number("at", 0, FARTHEST)
    part = load_part(store, request.get("key"), at, view_of(request), 1)
    if part.first != at or not part.session.timeline:
        raise NotFound("There is nothing at this place of the session.")
    return part


def call(request: PageRequest, store: Store) -> Answer:
    """Answer with the arguments and results of a call."""
    part = _entry(request, store)
    values = part_values(request, part)
    entry = entry_view(part.session.timeline[0], part.first, values["frame"], goes_on=True)
    number = request.number("call", 0, FARTHEST)
    calls = (block for block in entry.blocks if getattr(block, "number", None) == number)
    found = next(calls, None)
    if found is None:
        raise NotFound("There is no such call at this place of the session.")
    return piece_page(request, "session_call.html", {**values, "entry": entry, "call": found})


def subagent_part(request: PageRequest, store: Store) -> Answer:
    """Answer with a subagent's entries, which are shown inside its call."""
    prefix = request.get("within")
    if not _ANCHOR.fullmatch(prefix):
        prefix = "e0-0-"
    part = load_part(store, request.get("key"), request.number("first", 0, FARTHEST), "full")
    values = part_values(request, part, f"{prefix}e", level=5, depth=1)
    return piece_page(request, "session_inside.html", {**values, "session": part.session, "within": prefix})


def text(request: PageRequest, store: Store) -> Answer:
    """Answer with an entry as plain text, complete."""
    part = _entry(request, store)
    lines = list(islice(format_transcript(part.session, _EVERYTHING), 2, None))
    content = (f"{line.text}\n".encode("utf-8", "replace") for line in lines)
    return Download(f"entry-{part.first}.txt", "text/plain; charset=utf-8", content)


def find(request: PageRequest, store: Store) -> Answer:
    """Answer with the places in a session that match a query."""
    query, key = request.get("q"), request.get("key")
    error = ""
    try:
        hits = find_in_session(store, key, query)
    except QuerySyntaxError as unclear:
        hits, error = [], unclear.message
    except IndexDamagedError:
        hits, error = [], "the text index is being made, or has to be: retold sync does it"
    values = {"q": query, "hits": hits, "unclear": error, "most": MOST_HITS}
    return piece_page(request, "session_find.html", values)


def ledger(request: PageRequest, store: Store) -> Answer:
    """Answer with the requests behind the tokens and the cost of a session."""
    first = request.number("first", 0, FARTHEST)
    measured, estimated = Spend(), Spend()
    rows = []
    for place, billed in enumerate(explain_session_requests(store, request.get("key"))):
        spend = request_spend(billed)
        if billed.estimated:
            estimated += spend
        else:
            measured += spend
        if first <= place < first + LEDGER:
            rows.append(
                (billed, clean_name(billed.model or "no model recorded"), " ".join(price_terms(billed)))
            )
    count = measured.requests + estimated.requests
    values = {"rows": rows, "first": first, "count": count, "measured": measured, "estimated": estimated}
    further = first + LEDGER if first + LEDGER < count else None
    return piece_page(request, "session_ledger.html", {**values, "further": further})


def related_sessions(request: PageRequest, store: Store) -> Answer:
    """Answer with the sessions that are related to one."""
    return piece_page(request, "session_elsewhere.html", {"others": find_related(store, request.get("key"))})


def current_state(request: PageRequest, store: Store) -> Answer:
    """Answer with the state of a session, for a page that shows it."""
    state = load_state(store, request.get("key"))
    if state is None:
        raise NotFound("There is no such session in the archive.")
    return Download("state.json", "application/json", (msgspec.json.encode(state),))


_BINARY = "application/octet-stream"
_TYPES = {
    ".md": "text/markdown; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
}


def resume(request: PageRequest, store: Store) -> Answer:
    """Answer with the command that resumes a session; it is never run from here."""
    key = request.get("key")
    values = {"line": "", "why": "", "is_missing": False, "is_endangered": False}
    try:
        plan = plan_resume(store, key, os.environ)
    except RetoldError as stopped:
        values["why"] = str(stopped)
    else:
        values["line"] = format_full_command(plan, key)
        values["is_missing"] = bool(plan.additions)
        values["is_endangered"] = not plan.additions and is_endangered(plan)
    return piece_page(request, "session_resume.html", values)


def export(request: PageRequest, store: Store) -> Answer:
    """Answer with a session as a file, redacted unless secrets are to stay."""
    name = request.get("format", "md")
    form = FORMATS.get(name)
    if form is None:
        raise NotFound("There is no such form of a document.")
    session = load_part(store, request.get("key"), 0, "full", 0).session
    options = ["--format", name, "--view", view_of(request)]
    options += ["--thoughts"] if request.get("thoughts") else []
    if request.get("secrets") == "keep":
        options.append("--no-redact")
    else:
        # The title becomes a part of the file's name.
        session = Redactor(home=os.path.expanduser("~")).redact(session)
    pieces = run_export(store.folder, request.get("key"), options)
    return Download(file_name(session, form.suffix), _TYPES.get(form.suffix, _BINARY), pieces)


PAGES = (
    PageRoute("/session", session),
    PageRoute("/session/part", part),
    PageRoute("/session/outline", outline),
    PageRoute("/session/call", call),
    PageRoute("/session/inside", subagent_part),
    PageRoute("/session/text", text),
    PageRoute("/session/find", find),
    PageRoute("/session/ledger", ledger),
    PageRoute("/session/elsewhere", related_sessions),
    PageRoute("/session/state", current_state),
    PageRoute("/session/resume", resume),
    PageRoute("/session/export", export),
)
