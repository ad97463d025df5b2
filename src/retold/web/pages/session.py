"""One conversation: a part of it, its outline, and all that can be asked about it from there."""

from __future__ import annotations

import os
import re
from itertools import islice
from typing import Any

import msgspec

from retold.archive.database import IndexDamagedError, RetoldError
from retold.archive.store import Store
from retold.export.files import file_name
from retold.export.formats.registry import FORMATS
from retold.export.html.entries import entry_view
from retold.export.html.page import UNTITLED, facts, problems
from retold.export.text.report_table import spend_of, terms
from retold.export.text.table import clean
from retold.export.transcript import TranscriptOptions, transcript
from retold.maintenance.restore import endangered, way_on, whole_line
from retold.model.report import Spend
from retold.redaction import Redactor
from retold.reports.requests import requests_of
from retold.search.pages import MOST, found_inside
from retold.search.query import QuerySyntaxError
from retold.search.related import elsewhere, state
from retold.sessions.pages import TimelineSlice, turns
from retold.web.background import exported
from retold.web.charts import LENGTH, kind_of, paths
from retold.web.page import Answer, Download, NotFound, PageRequest, PageRoute, TemplatePage
from retold.web.session_parts import FARTHEST, part_at, part_from, part_until, piece, told, view_of
from retold.web.url_state import TOGGLES, TOOLS

FIRST_TURNS, MOST_TURNS = 40, 2_000
"""Lines of the outline at first, and when it is asked for; of a session with more, those around the place."""
_ABOVE = ("Agent", "Tags")
"""Facts that stand above the title."""
_LEDGER = ("Tokens", "Cost")
"""Facts behind which there is a ledger."""


def session(asked: PageRequest, record: Store) -> Answer:
    """Answer with a conversation, from its beginning or from a place on."""
    at = asked.number("at", 0, FARTHEST)
    part = part_at(record, asked.get("key"), at, view_of(asked))
    return TemplatePage(
        "session.html",
        {**told(asked, part), **_about(record, part), **_outline(record, part, at, FIRST_TURNS)},
    )


def part(asked: PageRequest, record: Store) -> Answer:
    """Answer with further entries: from a place on, or those before one."""
    key, view = asked.get("key"), view_of(asked)
    until = asked.number("until", 0, FARTHEST)
    if until:
        found = part_until(record, key, until, view)
    elif asked.get("at"):
        found = part_at(record, key, asked.number("at", 0, FARTHEST), view)
    else:
        found = part_from(record, key, asked.number("first", 0, FARTHEST), view)
    return TemplatePage("session_part.html", told(asked, found))


def outline(asked: PageRequest, record: Store) -> Answer:
    """Answer with the outline alone."""
    at = asked.number("at", 0, FARTHEST)
    found = part_from(record, asked.get("key"), at, view_of(asked), 0)
    return TemplatePage(
        "session_outline.html", {**told(asked, found), **_outline(record, found, at, MOST_TURNS)}
    )


def _about(record: Store, part: TimelineSlice) -> dict[str, Any]:
    session = part.session
    now = state(record, session.key)
    states = [source.state for source in session.sources]
    return {
        "session": session,
        "title": session.title or UNTITLED,
        "facts": [
            (fact, fact.name in _LEDGER) for fact in facts(session, has_zone=False) if fact.name not in _ABOVE
        ],
        "problems": problems(session),
        "fates": {} if now is None else now.fates,
        "copied": 0 if now is None else now.copied,
        "stamp": "" if now is None else now.stamp,
        "is_gone": bool(states) and "present" not in states,
        "homes": sorted({source.home for source in session.sources if source.home}),
        "formats": [(name, form.told) for name, form in FORMATS.items()],
        "toggles": TOGGLES,
        "tools": TOOLS,
    }


def _outline(record: Store, part: TimelineSlice, at: int, most: int) -> dict[str, Any]:
    found = turns(record, part.session.key, part.session.view)
    here = sum(turn.place <= at for turn in found)
    begin = max(0, min(here - most // 2, len(found) - most))
    return {
        "turns": [(turn, kind_of(turn)) for turn in found[begin : begin + most]],
        "begin": begin,
        "all_turns": len(found),
        "strip": paths(found, part.total),
        "strip_length": LENGTH,
    }


PAGES = (
    PageRoute("/session", session),
    PageRoute("/session/part", part),
    PageRoute("/session/outline", outline),
)


LEDGER = 100
"""Requests on a page of the ledger."""
_EVERYTHING = TranscriptOptions("full", thoughts=True, tokens=True, notices=True)
_ANCHOR = re.compile(r"(?:e[0-9]{1,9}-[0-9]{1,9}-){1,8}")
"""What anchors inside of a call begin with."""


def _entry(asked: PageRequest, record: Store) -> TimelineSlice:
    at = asked.number("at", 0, FARTHEST)
    part = part_from(record, asked.get("key"), at, view_of(asked), 1)
    if part.first != at or not part.session.timeline:
        raise NotFound("There is nothing at this place of the session.")
    return part


def call(asked: PageRequest, record: Store) -> Answer:
    """Answer with what a call was given and what came back."""
    part = _entry(asked, record)
    values = told(asked, part)
    entry = entry_view(part.session.timeline[0], part.first, values["frame"], goes_on=True)
    number = asked.number("call", 0, FARTHEST)
    calls = (block for block in entry.blocks if getattr(block, "number", None) == number)
    found = next(calls, None)
    if found is None:
        raise NotFound("There is no such call at this place of the session.")
    return piece(asked, "session_call.html", {**values, "entry": entry, "call": found})


def inside(asked: PageRequest, record: Store) -> Answer:
    """Answer with what a subagent said and did, to be told inside its call."""
    prefix = asked.get("within")
    if not _ANCHOR.fullmatch(prefix):
        prefix = "e0-0-"
    part = part_from(record, asked.get("key"), asked.number("first", 0, FARTHEST), "full")
    values = told(asked, part, f"{prefix}e", level=5, depth=1)
    return piece(asked, "session_inside.html", {**values, "session": part.session, "within": prefix})


def text(asked: PageRequest, record: Store) -> Answer:
    """Answer with an entry as text, with all that is in it."""
    part = _entry(asked, record)
    lines = list(islice(transcript(part.session, _EVERYTHING), 2, None))
    content = (f"{line.text}\n".encode("utf-8", "replace") for line in lines)
    return Download(f"entry-{part.first}.txt", "text/plain; charset=utf-8", content)


def find(asked: PageRequest, record: Store) -> Answer:
    """Answer with the places in a session where something is said."""
    query, key = asked.get("q"), asked.get("key")
    unclear = ""
    try:
        hits = found_inside(record, key, query)
    except QuerySyntaxError as error:
        hits, unclear = [], error.message
    except IndexDamagedError:
        hits, unclear = [], "the text index is being made, or has to be: retold sync does it"
    values = {"q": query, "hits": hits, "unclear": unclear, "most": MOST}
    return piece(asked, "session_find.html", values)


def ledger(asked: PageRequest, record: Store) -> Answer:
    """Answer with the requests behind the tokens and the cost of a session."""
    first = asked.number("first", 0, FARTHEST)
    measured, estimated = Spend(), Spend()
    rows = []
    for place, request in enumerate(requests_of(record, asked.get("key"))):
        spend = spend_of(request)
        if request.estimated:
            estimated += spend
        else:
            measured += spend
        if first <= place < first + LEDGER:
            rows.append((request, clean(request.model or "no model recorded"), " ".join(terms(request))))
    count = measured.requests + estimated.requests
    values = {"rows": rows, "first": first, "count": count, "measured": measured, "estimated": estimated}
    further = first + LEDGER if first + LEDGER < count else None
    return piece(asked, "session_ledger.html", {**values, "further": further})


def others(asked: PageRequest, record: Store) -> Answer:
    """Answer with the sessions that have something to do with one."""
    return piece(asked, "session_elsewhere.html", {"others": elsewhere(record, asked.get("key"))})


def now(asked: PageRequest, record: Store) -> Answer:
    """Answer with how a session stands, for a page that shows it."""
    found = state(record, asked.get("key"))
    if found is None:
        raise NotFound("There is no such session in the archive.")
    return Download("state.json", "application/json", (msgspec.json.encode(found),))


PIECE_PAGES = (
    PageRoute("/session/call", call),
    PageRoute("/session/inside", inside),
    PageRoute("/session/text", text),
    PageRoute("/session/find", find),
    PageRoute("/session/ledger", ledger),
    PageRoute("/session/elsewhere", others),
    PageRoute("/session/state", now),
)


_BINARY = "application/octet-stream"
_TYPES = {
    ".md": "text/markdown; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
}


def resume(asked: PageRequest, record: Store) -> Answer:
    """Answer with the command that goes on with a session; it is never run from here."""
    key = asked.get("key")
    values = {"line": "", "why": "", "is_missing": False, "is_endangered": False}
    try:
        plan = way_on(record, key, os.environ)
    except RetoldError as stopped:
        values["why"] = str(stopped)
    else:
        values["line"] = whole_line(plan, key)
        values["is_missing"] = bool(plan.additions)
        values["is_endangered"] = not plan.additions and endangered(plan)
    return piece(asked, "session_resume.html", values)


def export(asked: PageRequest, record: Store) -> Answer:
    """Answer with a session as a file: without its secrets, unless they are to stay."""
    name = asked.get("format", "md")
    form = FORMATS.get(name)
    if form is None:
        raise NotFound("There is no such form of a document.")
    session = part_from(record, asked.get("key"), 0, "full", 0).session
    options = ["--format", name, "--view", view_of(asked)]
    options += ["--thoughts"] if asked.get("thoughts") else []
    if asked.get("secrets") == "keep":
        options.append("--no-redact")
    else:
        session = Redactor(home=os.path.expanduser("~")).redacted(
            session
        )  # a title goes into the file's name
    pieces = exported(record.folder, asked.get("key"), options)
    return Download(file_name(session, form.suffix), _TYPES.get(form.suffix, _BINARY), pieces)


EXPORT_PAGES = (PageRoute("/session/resume", resume), PageRoute("/session/export", export))
