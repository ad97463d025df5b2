"""What a page of a conversation asks for when somebody opens it: each is a page of its own as well."""

from __future__ import annotations

import re
from itertools import islice

import msgspec

from retold.archive.database import IndexDamagedError
from retold.archive.store import Store
from retold.export.html.entries import entry_view
from retold.export.text.report_table import spend_of, terms
from retold.export.text.table import clean
from retold.export.transcript import TranscriptOptions, transcript
from retold.model.report import Spend
from retold.reports.requests import requests_of
from retold.search.pages import MOST, found_inside
from retold.search.query import QuerySyntaxError
from retold.search.related import elsewhere, state
from retold.sessions.pages import TimelineSlice
from retold.web.answer import Answer, Download, NotFound, PageRequest, PageRoute
from retold.web.parts import FARTHEST, part_from, piece, told, view_of

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
