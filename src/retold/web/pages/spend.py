"""The spending of a period, and the ledger of requests behind every figure."""

from __future__ import annotations

from typing import NamedTuple

from retold.archive.store import Store
from retold.export.svg import draw_hours, hour_name
from retold.export.text.amounts import format_count, format_duration
from retold.export.text.formatting import format_short_number, plural, zone_name
from retold.export.text.report_table import (
    format_basis_notes,
    format_cost,
    format_price_notes,
    price_terms,
    request_spend,
)
from retold.model.report import Line, sum_spends
from retold.reports.dashboards import (
    report_busy_hours,
    report_costly_sessions,
    report_over_time,
    report_total,
)
from retold.reports.stats import (
    ReportQuery,
    explain_requests,
    report_basis,
    report_brief_lines,
    report_lines,
    session_labels,
)
from retold.web import charts
from retold.web.templating import Answer, PageRequest, PageRoute, TemplatePage
from retold.web.url_state import PAGE, PERIODS, ReportUrl, parse_page_number, parse_report_url

_DEAREST = 10
_WIDE = 10_000
"""Columns of a note: the browser breaks its lines."""


class SpendCard(NamedTuple):
    """A figure, the same of the period before, and the link to its ledger."""

    name: str
    amount: str
    before: str
    link: str


def spend(request: PageRequest, store: Store) -> Answer:
    """Answer with the overview of a period."""
    url = parse_report_url(request, store)
    query = url.query(store)
    measure = request.get("show") if request.get("show") in charts.MEASURES else "cost"
    whole = report_total(query)
    year = url.query(store, charts.calendar_year(url))
    by_day = report_lines if measure == "sessions" else report_brief_lines
    by, parts = report_over_time(query, url.period, request.get("by"))
    busy = report_busy_hours(query)
    values = {
        "url": url,
        "periods": PERIODS,
        "measures": charts.MEASURES,
        "measure": measure,
        "total": whole,
        "cards": _cards(whole, _before(url, store), url),
        "days": charts.day_chart(by_day(year, "day"), url, measure),
        "by": by,
        "time": charts.cost_chart(parts, by, url),
        "ranks": [
            (name, charts.rank_lines(report_brief_lines(query, name), name, url))
            for name in ("model", "project", "agent")
        ],
        "dearest": report_costly_sessions(query, _DEAREST),
        "hours": draw_hours(
            busy, "hours", "Requests by weekday and hour", lambda number: plural(number, "request")
        ),
        "busy": [
            (hour_name(*at), number) for at, number in sorted(busy.items(), key=lambda one: -one[1]) if number
        ],
        "notes": _notes(query, whole),
    }
    return TemplatePage("spend.html", values)


def ledger(request: PageRequest, store: Store) -> Answer:
    """Answer with a page of the requests behind a figure."""
    url, page = parse_report_url(request, store), parse_page_number(request)
    query = url.query(store)
    found = [billed for _, billed in explain_requests(query, "all", (PAGE + 1, page * PAGE))]
    shown = found[:PAGE]
    whole = report_total(query)
    sums = [
        sum_spends(request_spend(one) for one in shown if one.estimated == guessed)
        for guessed in (False, True)
    ]
    values = {
        "url": url,
        "periods": PERIODS,
        "total": whole,
        "here": "/spend",
        "requests": [(one, " ".join(price_terms(one))) for one in shown],
        "titles": session_labels(query, {one.session for one in shown}),
        "sums": sums,
        "page": page,
        "turned": lambda to: url.address("/spend/ledger", page=to),
        "has_more": len(found) > PAGE,
        "is_whole": page == 0 and len(found) <= PAGE,
        "notes": _notes(query, whole),
    }
    return TemplatePage("ledger.html", values)


def _before(url: ReportUrl, store: Store) -> Line | None:
    before = url.period.before()
    total = None if before is None else report_total(url.query(store, before))
    return total if total and total.sessions else None


def _cards(now: Line, before: Line | None, url: ReportUrl) -> list[SpendCard]:
    ledger = url.address("/spend/ledger")
    return [
        SpendCard(name, amount, "" if before is None else earlier, ledger if is_of_requests else "")
        for (name, amount, is_of_requests), (_, earlier, _) in zip(
            _figures(now), _figures(before or now), strict=True
        )
    ]


def _figures(line: Line) -> list[tuple[str, str, bool]]:
    spent = line.measured
    return [
        ("Cost", format_cost(spent), True),
        ("Tokens", format_short_number(spent.figures["total"]), True),
        ("Requests", format_count(spent.requests), True),
        ("Sessions", format_count(line.sessions or 0), False),
        ("Prompts", format_count(line.prompts), False),
        ("Active time", format_duration(line.active_seconds), False),
    ]


def _notes(query: ReportQuery, whole: Line) -> list[str]:
    """Return the notes about prices, estimates and missing figures."""
    basis = report_basis(query, zone_name(is_utc=False))
    lines = [
        *format_price_notes(whole.measured, basis, _WIDE),
        *format_basis_notes(basis, whole.estimated, _WIDE),
    ]
    return ["".join(text for _, text in line) for line in lines]


PAGES = (PageRoute("/spend", spend), PageRoute("/spend/ledger", ledger))
