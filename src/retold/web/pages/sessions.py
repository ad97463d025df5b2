"""All conversations, the newest first, or those in which something was said."""

from __future__ import annotations

from retold.archive.database import IndexDamagedError
from retold.archive.queries.listing import count_sessions
from retold.archive.store import Store
from retold.export.text.search_results import FATES, marked, speaker
from retold.export.text.table import project_name, short_number
from retold.search.listing import unknown_names
from retold.search.pages import COUNTED as SOUGHT
from retold.search.pages import (
    PageBounds,
    ResultPage,
    SearchRequest,
    found_shelf,
    listed_shelf,
    scanned_shelf,
)
from retold.search.query import QuerySyntaxError, parse
from retold.search.quick_find import QuickFind, leap
from retold.search.scan_job import BOUND, ScanJob, Scanned
from retold.web.page import Answer, PageRequest, PageRoute, TemplatePage
from retold.web.templating import WAYS
from retold.web.url_state import LONGEST, MODES, ORDERS, ListUrl, as_sentence, looking_of, session_address

LISTED, FOUND = 50, 8
"""Rows of a page: to show where something was said takes a millisecond each."""
MOST_LISTED, MOST_FOUND, COUNTED = 500, 100, 100
"""Rows that are shown at once to whoever comes back to a long list."""
FEW = 8
"""Values of a facet that are shown before the rest is asked for."""
_PIECES = {"found": "sessions_found.html", "rows": "sessions_rows.html"}
_EMPTY = ResultPage((), 0, is_all=True)
_ENDS = {
    "stopped": f"This took longer than {BOUND:.0f} seconds and was stopped: below is what was found until then."
    " Choose a project or a time, or write it more plainly.",
    "broken": "The search broke off: below is what was found until then. Try `retold search` in a terminal.",
    "busy": "Two others are being looked for right now: try again in a moment.",
}

_UNREAD = "Not all texts were read, because that takes longer: `retold search --limit 1000` in a terminal reads them."


def scan(asked: PageRequest) -> ScanJob | None:
    """Return what has to be looked for in all text."""
    looking = looking_of(asked)
    if not looking.is_scan:
        return None
    cut = _cut(asked, looking)
    return ScanJob(looking.text, looking.mode == "regex", looking.filters, _limit(cut))


def sessions(asked: PageRequest, record: Store) -> Answer:
    """Answer with the list, or a piece of it."""
    looking = looking_of(asked)
    cut = _cut(asked, looking)
    shelf, notes = _shelf(record, looking, cut, asked.scanned)
    further = {"from": cut.first + cut.most}
    values = {
        "looking": looking,
        "shelf": shelf,
        "notes": [*looking.notes, *notes],
        "more": None if shelf.is_all else looking.address(**further),
        "is_first": cut.first == 0,
        "is_new": not shelf.rows and not count_sessions(record),
        "modes": MODES,
        "orders": ORDERS,
        "few": FEW,
        "fates": FATES,
        "marked": marked,
        "speaker": speaker,
        "project_name": project_name,
        "session_address": session_address,
        "short": short_number,
    }
    return TemplatePage(_PIECES.get(asked.get("piece"), "sessions.html"), values)


def _limit(cut: PageBounds) -> int:
    """Return for how many conversations is looked: more than are shown, so that they can be counted."""
    return max(cut.first + cut.most + 1, COUNTED)


def _cut(asked: PageRequest, looking: ListUrl) -> PageBounds:
    usual, most = (FOUND, MOST_FOUND) if looking.text else (LISTED, MOST_LISTED)
    many = max(usual, asked.number("many", usual, most))
    return PageBounds(looking.first, many, is_bare=asked.get("piece") == "rows")


def _shelf(
    record: Store, looking: ListUrl, cut: PageBounds, scanned: Scanned | None
) -> tuple[ResultPage, list[str]]:
    """Return what is shown, and what has to be said about it."""
    if not looking.text:
        shelf = listed_shelf(record, looking.filters, cut)
        return shelf, [] if shelf.rows or cut.first else [*map(as_sentence, _unknown(record, looking))]
    if scanned is not None:
        notes = [_ENDS[scanned.end]] if scanned.end in _ENDS else []
        if scanned.end == "unclear":
            notes = [as_sentence(scanned.message.partition(";")[0])]
        is_exact = scanned.end == "done" and len(scanned.holdings) < _limit(cut)
        return scanned_shelf(record, scanned.holdings, cut, is_exact=is_exact), notes
    sought = SearchRequest(looking.text, looking.filters, is_newest=looking.order == "newest")
    try:
        shelf = found_shelf(record, sought, cut)
    except QuerySyntaxError as unclear:
        return _EMPTY, [as_sentence(unclear.message)]
    except IndexDamagedError:
        told = (
            "The text index is missing or damaged: `retold sync --reindex` makes it anew, from the archive."
        )
        return _EMPTY, [told]
    unread = [_UNREAD] if not shelf.is_exact and shelf.count + shelf.beside < SOUGHT else []
    if not shelf.rows and cut.first == 0:
        return shelf, [*map(as_sentence, _unknown(record, looking)), *unread]
    begun = f"Nobody said “{shelf.begun}” as a word: these begin so."
    return shelf, [*([begun] if shelf.begun and shelf.rows else []), *unread]


def _unknown(record: Store, looking: ListUrl) -> list[str]:
    """Return what the archive does not know of the names in the filters and in the query."""
    fields = [] if looking.is_scan or not looking.text else parse(looking.text).fields
    typed = [(field.name, field.value) for field in fields if not field.is_negated]
    return unknown_names(record, [*looking.filters.items(), *typed])


PAGES = (PageRoute("/", sessions, scan=scan),)


def palette(asked: PageRequest, record: Store) -> Answer:
    """Answer with what is offered for what was typed so far."""
    text = asked.get("q").strip()[:LONGEST]
    try:
        offered = leap(record, text)
    except IndexDamagedError:
        offered = QuickFind()
    words = text.casefold()
    values = {
        "text": text,
        "offered": offered,
        "places": [
            (way.path, way.name) for way in WAYS if words and words in f"{way.name.casefold()} {way.also}"
        ],
        "marked": marked,
        "speaker": speaker,
        "project_name": project_name,
        "session_address": session_address,
    }
    return TemplatePage("palette.html", values)


PALETTE_PAGES = (PageRoute("/palette", palette),)
