"""Figures as pictures that lead on: each day, column and row with its words and its address."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import NamedTuple

import msgspec
from markupsafe import Markup

from retold.export.svg import Datum, calendar, columns, length
from retold.export.text.numbers import count, money
from retold.export.text.report_table import cost
from retold.export.text.table import project_names
from retold.model.report import Line
from retold.reports.selection import Period
from retold.sessions.pages import SessionTurn
from retold.web.url_state import ReportUrl

MEASURES = {"cost": "Cost", "tokens": "Tokens", "sessions": "Sessions"}
_YEAR = 364
"""Days before the last one of a calendar."""


class Chart(NamedTuple):
    """A picture, and the same as rows: what it is called, what it is, where it leads."""

    picture: Markup
    rows: Sequence[tuple[str, str, str]]
    most: str = ""
    first: str = ""
    last: str = ""


class ChartRow(NamedTuple):
    """A line of a report beside others."""

    name: str
    of: str
    line: Line
    bar: Markup
    link: str
    ledger: str


def measured(line: Line, measure: str) -> int | None:
    """Return how much of something a line has; None where nobody knows."""
    if measure == "cost":
        return line.measured.picos if line.measured.requests else 0
    return (line.sessions or 0) if measure == "sessions" else (line.measured.figures["total"] or 0)


def told(line: Line, measure: str) -> str:
    """Return the same in words."""
    if measure == "cost":
        return cost(line.measured)
    amount = measured(line, measure)
    return f"{count(amount)} {measure if amount != 1 else measure[:-1]}"


def year_of(chosen: ReportUrl) -> Period:
    """Return the days of a calendar: a year, up to today, or to the end of what was chosen."""
    until = max(chosen.today, chosen.period.until or chosen.today)
    return Period(until - timedelta(days=_YEAR), until)


def days(found: Iterable[Line], chosen: ReportUrl, measure: str) -> Chart:
    """Return a calendar of days."""
    year = year_of(chosen)
    data, rows = {}, []
    for line in found:
        day = _day(line.of)
        if day is not None:
            link = chosen.address("/spend", Period(day, day), show=measure)
            data[day] = Datum(measured(line, measure), f"{day}: {told(line, measure)}", link)
            rows.append((line.of, told(line, measure), link))
    title = f"{MEASURES[measure]} by day"
    picture = calendar(data, year.since or chosen.today, year.until or chosen.today, "days", title)
    return Chart(picture, sorted(rows, reverse=True))


def over_time(found: Sequence[tuple[Period, Line]], by: str, chosen: ReportUrl) -> Chart:
    """Return columns of what was spent."""
    data = [
        Datum(line.measured.picos or 0, f"{line.of}: {cost(line.measured)}", chosen.address("/spend", part))
        for part, line in found
    ]
    rows = [(line.of, cost(line.measured), datum.link) for (_, line), datum in zip(found, data, strict=True)]
    most = max((line.measured.picos or 0 for _, line in found), default=0)
    picture = columns(data, "time", f"Cost by {by}")
    return Chart(picture, rows, money(most), *_ends(rows))


def failures(found: Sequence[tuple[str, Period, int, int]], by: str, chosen: ReportUrl) -> Chart:
    """Return columns of calls that failed; each of what, when, calls, failures."""
    data = [
        Datum(
            errors,
            f"{of}: {count(errors)} of {count(calls)} calls failed",
            chosen.address("/tools", part),
        )
        for of, part, calls, errors in found
    ]
    rows = [
        (of, f"{count(errors)} of {count(calls)}", datum.link)
        for (of, _, calls, errors), datum in zip(found, data, strict=True)
    ]
    most = max((errors for *_, errors in found), default=0)
    return Chart(columns(data, "failures", f"Failed calls by {by}"), rows, count(most), *_ends(rows))


def ranked(found: Sequence[Line], by: str, chosen: ReportUrl) -> list[ChartRow]:
    """Return lines by what they cost, each with its bar, what it narrows to, and what it is made of."""
    order = sorted(found, key=lambda line: (-(line.measured.picos or 0), -_tokens(line), line.of))
    is_cost = any(line.measured.picos for line in order)
    weights = [(line.measured.picos or 0) if is_cost else _tokens(line) for line in order]
    names = project_names(line.of for line in order) if by == "project" else {}
    return [
        ChartRow(
            names.get(line.of, line.of),
            line.of,
            line,
            length(weight, max(weights)),
            chosen.address("/spend", **{by: line.of}),
            chosen.address("/spend/ledger", **{by: line.of}),
        )
        for line, weight in zip(order, weights, strict=True)
    ]


def _ends(rows: Sequence[tuple[str, str, str]]) -> tuple[str, str]:
    return (rows[0][0], rows[-1][0]) if rows else ("", "")


def _tokens(line: Line) -> int:
    return line.measured.figures["total"] or 0


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


WIDTH, LENGTH = 10, 1000
"""Of the strip."""
MOST = 200
"""Blocks: of a session with more turns, some are told in one."""
_KINDS = ("turn", "compacted", "failed", "taken")
"""The later ones win where several turns are one block."""


class MinimapBlock(msgspec.Struct, frozen=True):
    """One or several turns."""

    begin: float
    length: float
    kind: str
    """`turn`, `compacted`, `failed` for one in which a call failed, `taken` for one that was taken back or replaced."""


def paths(turns: Sequence[SessionTurn], total: int) -> tuple[tuple[str, str], ...]:
    """Return the strip of a session with so many entries: for each kind of blocks, all of them as one SVG path."""
    drawn: dict[str, list[str]] = defaultdict(list)
    for block in blocks(turns, total):
        drawn[block.kind].append(f"M0 {block.begin:g}h{WIDTH}v{block.length:g}h-{WIDTH}z")
    return tuple((kind, "".join(drawn[kind])) for kind in _KINDS if kind in drawn)


def blocks(turns: Sequence[SessionTurn], total: int) -> Iterator[MinimapBlock]:
    """Yield the blocks of a session with so many entries."""
    step = -(-len(turns) // MOST) or 1
    for place in range(0, len(turns), step):
        held = turns[place : place + step]
        end = turns[place + step].place if place + step < len(turns) else total
        kind = max(map(kind_of, held), key=_KINDS.index)
        yield MinimapBlock(held[0].place * LENGTH / total, (end - held[0].place) * LENGTH / total, kind)


def kind_of(turn: SessionTurn) -> str:
    """Return what became of a turn."""
    if turn.fate in ("rewound", "superseded"):
        return "taken"
    if turn.errors:
        return "failed"
    return "compacted" if turn.fate == "compacted" else "turn"
