"""What it cost: a period at a glance, and the requests behind every figure."""

from __future__ import annotations

from typing import NamedTuple

from retold.archive.store import Store
from retold.export.svg import hour_name, hours
from retold.export.text.numbers import count, span
from retold.export.text.report_table import basis_notes, cost, price_notes, spend_of, terms
from retold.export.text.table import short_number
from retold.export.text.times import zone_name
from retold.model.report import Line, summed
from retold.reports.dashboards import busy_hours, dearest, over_time, total
from retold.reports.requests import explained
from retold.reports.stats import basis, brief_lines, lines, titles
from retold.search.report_query import ReportQuery
from retold.web import charts
from retold.web.page import Answer, PageRequest, PageRoute, TemplatePage
from retold.web.url_state import PAGE, PERIODS, ReportUrl, chosen_in, page_of

_DEAREST = 10
_WIDE = 10_000
"""Columns: sentences are broken by the browser."""


class SpendCard(NamedTuple):
    """A figure, and the same of the time before."""

    name: str
    told: str
    before: str
    link: str


def spend(asked: PageRequest, record: Store) -> Answer:
    """Answer with a period at a glance."""
    chosen = chosen_in(asked, record)
    question = chosen.question(record)
    measure = asked.get("show") if asked.get("show") in charts.MEASURES else "cost"
    whole = total(question)
    by, parts = over_time(question, chosen.period, asked.get("by"))
    busy = busy_hours(question)
    values = {
        "chosen": chosen,
        "periods": PERIODS,
        "measures": charts.MEASURES,
        "measure": measure,
        "total": whole,
        "cards": _cards(whole, _before(chosen, record), chosen),
        "days": charts.days(_days(chosen, record, measure), chosen, measure),
        "by": by,
        "time": charts.over_time(parts, by, chosen),
        "ranks": [
            (name, charts.ranked(brief_lines(question, name), name, chosen))
            for name in ("model", "project", "agent")
        ],
        "dearest": dearest(question, _DEAREST),
        "hours": hours(busy, "hours", "Requests by weekday and hour", _requests),
        "busy": [
            (hour_name(*at), number) for at, number in sorted(busy.items(), key=lambda one: -one[1]) if number
        ],
        "notes": _notes(question, whole),
    }
    return TemplatePage("spend.html", values)


def ledger(asked: PageRequest, record: Store) -> Answer:
    """Answer with the requests that a figure is made of, a page at a time."""
    chosen, page = chosen_in(asked, record), page_of(asked)
    question = chosen.question(record)
    found = [request for _, request in explained(question, "all", (PAGE + 1, page * PAGE))]
    shown = found[:PAGE]
    whole = total(question)
    sums = [summed(spend_of(one) for one in shown if one.estimated == guessed) for guessed in (False, True)]
    values = {
        "chosen": chosen,
        "periods": PERIODS,
        "total": whole,
        "here": "/spend",
        "requests": [(one, " ".join(terms(one))) for one in shown],
        "titles": titles(question, {one.session for one in shown}),
        "sums": sums,
        "page": page,
        "turned": lambda to: chosen.address("/spend/ledger", page=to),
        "has_more": len(found) > PAGE,
        "is_whole": page == 0 and len(found) <= PAGE,
        "notes": _notes(question, whole),
    }
    return TemplatePage("ledger.html", values)


def _days(chosen: ReportUrl, record: Store, measure: str) -> list[Line]:
    question = chosen.question(record, charts.year_of(chosen))
    return lines(question, "day") if measure == "sessions" else brief_lines(question, "day")


def _before(chosen: ReportUrl, record: Store) -> Line | None:
    before = chosen.period.before()
    told = None if before is None else total(chosen.question(record, before))
    return told if told and told.sessions else None


def _cards(now: Line, before: Line | None, chosen: ReportUrl) -> list[SpendCard]:
    made_of = chosen.address("/spend/ledger")
    return [
        SpendCard(name, told, "" if before is None else earlier, made_of if is_of_requests else "")
        for (name, told, is_of_requests), (_, earlier, _) in zip(
            _figures(now), _figures(before or now), strict=True
        )
    ]


def _figures(line: Line) -> list[tuple[str, str, bool]]:
    spent = line.measured
    return [
        ("Cost", cost(spent), True),
        ("Tokens", short_number(spent.figures["total"]), True),
        ("Requests", count(spent.requests), True),
        ("Sessions", count(line.sessions or 0), False),
        ("Prompts", count(line.prompts), False),
        ("Active time", span(line.active_seconds), False),
    ]


def _requests(number: int) -> str:
    return f"{count(number)} request{'' if number == 1 else 's'}"


def _notes(question: ReportQuery, whole: Line) -> list[str]:
    """Return what the figures rest on, and what is not in them."""
    rests_on = basis(question, zone_name(is_utc=False))
    pieces = [
        *price_notes(whole.measured, rests_on, _WIDE),
        *basis_notes(rests_on, whole.estimated, _WIDE),
    ]
    return ["".join(text for _, text in line) for line in pieces]


PAGES = (PageRoute("/spend", spend), PageRoute("/spend/ledger", ledger))
