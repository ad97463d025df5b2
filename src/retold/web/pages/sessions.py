"""The list of sessions, the results of a search, and the palette."""

from __future__ import annotations

from retold.archive.database import IndexDamagedError
from retold.archive.queries.listing import count_sessions
from retold.archive.store import Store
from retold.export.text.formatting import format_short_number, project_name
from retold.export.text.search_results import FATES, hit_speaker, split_highlights
from retold.search.listing import unknown_name_messages
from retold.search.pages import COUNTED_UP_TO as SOUGHT
from retold.search.pages import (
    PageBounds,
    ResultPage,
    SearchRequest,
    load_list_page,
    load_scan_page,
    load_search_page,
)
from retold.search.query import QuerySyntaxError, parse_query
from retold.search.quick_find import QuickFind, quick_find
from retold.search.scan_job import TIME_LIMIT, ScanJob, ScanResult
from retold.web.templating import NAVIGATION, Answer, PageRequest, PageRoute, TemplatePage
from retold.web.url_state import LONGEST, MODES, ORDERS, ListUrl, as_sentence, parse_list_url, session_address

LISTED, FOUND = 50, 8
"""Rows of a page. Few for results, since a snippet takes a millisecond."""
MOST_LISTED, MOST_FOUND, COUNTED = 500, 100, 100
"""Rows that are shown at once to a visitor who returns to a long list."""
FEW = 8
"""Values of a facet that are shown before the rest is unfolded."""
_PIECES = {"found": "sessions_found.html", "rows": "sessions_rows.html"}
_EMPTY = ResultPage((), 0, is_last=True)
_ENDS = {
    "stopped": f"This took longer than {TIME_LIMIT:.0f} seconds and was stopped: below is what was found until then."
    " Choose a project or a time, or write it more plainly.",
    "broken": "The search broke off: below is what was found until then. Try `retold search` in a terminal.",
    "busy": "Two others are being looked for right now: try again in a moment.",
}

_UNREAD = "Not all texts were read, because that takes longer: `retold search --limit 1000` in a terminal reads them."


def scan(request: PageRequest) -> ScanJob | None:
    """Return the scan that a search for letters or a pattern needs."""
    url = parse_list_url(request)
    if not url.is_scan:
        return None
    bounds = _bounds(request, url)
    return ScanJob(url.text, url.mode == "regex", url.filters, _limit(bounds))


def sessions(request: PageRequest, store: Store) -> Answer:
    """Answer with the list or a piece of it."""
    url = parse_list_url(request)
    bounds = _bounds(request, url)
    results, notes = _load_results(store, url, bounds, request.scan_result)
    further = {"from": bounds.first + bounds.most}
    values = {
        "url": url,
        "results": results,
        "notes": [*url.notes, *notes],
        "more": None if results.is_last else url.address(**further),
        "is_first": bounds.first == 0,
        "is_new": not results.rows and not count_sessions(store),
        "modes": MODES,
        "orders": ORDERS,
        "few": FEW,
        "fates": FATES,
        "marked": split_highlights,
        "speaker": hit_speaker,
        "project_name": project_name,
        "session_address": session_address,
        "short": format_short_number,
    }
    return TemplatePage(_PIECES.get(request.get("piece"), "sessions.html"), values)


def _limit(bounds: PageBounds) -> int:
    """Return how many results are needed: more than are shown, so that they can be counted."""
    return max(bounds.first + bounds.most + 1, COUNTED)


def _bounds(request: PageRequest, url: ListUrl) -> PageBounds:
    usual, most = (FOUND, MOST_FOUND) if url.text else (LISTED, MOST_LISTED)
    many = max(usual, request.number("many", usual, most))
    return PageBounds(url.first, many, only_rows=request.get("piece") == "rows")


def _load_results(
    store: Store, url: ListUrl, bounds: PageBounds, scan_result: ScanResult | None
) -> tuple[ResultPage, list[str]]:
    """Return the rows and the notes about them."""
    if not url.text:
        results = load_list_page(store, url.filters, bounds)
        return results, [] if results.rows or bounds.first else [*map(as_sentence, _unknown(store, url))]
    if scan_result is not None:
        notes = [_ENDS[scan_result.end]] if scan_result.end in _ENDS else []
        if scan_result.end == "unclear":
            notes = [as_sentence(scan_result.message.partition(";")[0])]
        is_exact = scan_result.end == "done" and len(scan_result.items) < _limit(bounds)
        return load_scan_page(store, scan_result.items, bounds, is_exact=is_exact), notes
    sought = SearchRequest(url.text, url.filters, newest_first=url.order == "newest")
    try:
        results = load_search_page(store, sought, bounds)
    except QuerySyntaxError as unclear:
        return _EMPTY, [as_sentence(unclear.message)]
    except IndexDamagedError:
        note = "The text index is missing or damaged: `retold sync --reindex` rebuilds it from the archive."
        return _EMPTY, [note]
    unread = [_UNREAD] if not results.is_exact and results.count + results.related < SOUGHT else []
    if not results.rows and bounds.first == 0:
        return results, [*map(as_sentence, _unknown(store, url)), *unread]
    hint = f"Nobody said “{results.prefix}” as a word: these begin so."
    return results, [*([hint] if results.prefix and results.rows else []), *unread]


def _unknown(store: Store, url: ListUrl) -> list[str]:
    """Return messages about names in filters and query that the archive does not know."""
    fields = [] if url.is_scan or not url.text else parse_query(url.text).fields
    typed = [(field.name, field.value) for field in fields if not field.is_negated]
    return unknown_name_messages(store, [*url.filters.items(), *typed])


def palette(request: PageRequest, store: Store) -> Answer:
    """Answer with suggestions for the text that was typed so far."""
    text = request.get("q").strip()[:LONGEST]
    try:
        offered = quick_find(store, text)
    except IndexDamagedError:
        offered = QuickFind()
    words = text.casefold()
    values = {
        "text": text,
        "offered": offered,
        "places": [
            (item.path, item.name)
            for item in NAVIGATION
            if words and words in f"{item.name.casefold()} {item.also}"
        ],
        "marked": split_highlights,
        "speaker": hit_speaker,
        "project_name": project_name,
        "session_address": session_address,
    }
    return TemplatePage("palette.html", values)


PAGES = (PageRoute("/", sessions, scan=scan), PageRoute("/palette", palette))
