"""Charts of the report pages, and the minimap of a session, with labels and links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple

import msgspec
from markupsafe import Markup

from retold.export.svg import Datum, draw_calendar, draw_columns, draw_length
from retold.export.text.amounts import format_count, format_money
from retold.export.text.formatting import project_names
from retold.export.text.report_overview import parse_date
from retold.export.text.report_table import format_cost
from retold.model.report import Line
from retold.reports.selection import Period
from retold.sessions.timelines import SessionTurn
from retold.web.url_state import ReportUrl

MEASURES = {"cost": "Cost", "tokens": "Tokens", "sessions": "Sessions"}
_YEAR = 364
"""Days of a calendar before its last one."""


class Chart(NamedTuple):
    """A drawing, and the same as rows of a name, a text and a link."""

    picture: Markup
    rows: Sequence[tuple[str, str, str]]
    most: str = ""
    first: str = ""
    last: str = ""


class ChartRow(NamedTuple):
    """A line of a report with its bar and its links."""

    name: str
    of: str
    line: Line
    bar: Markup
    link: str
    ledger: str


def measure_line(line: Line, measure: str) -> int | None:
    """Return the amount of a measure in a line; None if it is unknown."""
    if measure == "cost":
        return line.measured.picos if line.measured.requests else 0
    return (line.sessions or 0) if measure == "sessions" else (line.measured.figures["total"] or 0)


def describe_line(line: Line, measure: str) -> str:
    """Return the amount of a measure in a line as text."""
    if measure == "cost":
        return format_cost(line.measured)
    amount = measure_line(line, measure)
    return f"{format_count(amount)} {measure if amount != 1 else measure[:-1]}"


def calendar_year(url: ReportUrl) -> Period:
    """Return the year up to today, or up to the end of the report's period."""
    until = max(url.today, url.period.until or url.today)
    return Period(until - timedelta(days=_YEAR), until)


def day_chart(lines: Iterable[Line], url: ReportUrl, measure: str) -> Chart:
    """Return a calendar of days."""
    year = calendar_year(url)
    data, rows = {}, []
    for line in lines:
        day = parse_date(line.of)
        if day is not None:
            link = url.address("/spend", Period(day, day), show=measure)
            data[day] = Datum(measure_line(line, measure), f"{day}: {describe_line(line, measure)}", link)
            rows.append((line.of, describe_line(line, measure), link))
    title = f"{MEASURES[measure]} by day"
    picture = draw_calendar(data, year.since or url.today, year.until or url.today, "days", title)
    return Chart(picture, sorted(rows, reverse=True))


def cost_chart(lines: Sequence[tuple[Period, Line]], by: str, url: ReportUrl) -> Chart:
    """Return a column for the cost of each period."""
    data = [
        Datum(
            line.measured.picos or 0, f"{line.of}: {format_cost(line.measured)}", url.address("/spend", part)
        )
        for part, line in lines
    ]
    rows = [
        (line.of, format_cost(line.measured), datum.link)
        for (_, line), datum in zip(lines, data, strict=True)
    ]
    most = max((line.measured.picos or 0 for _, line in lines), default=0)
    picture = draw_columns(data, "time", f"Cost by {by}")
    return Chart(picture, rows, format_money(most), *_ends(rows))


class PeriodCalls(NamedTuple):
    """The tool calls of a period, and how many of them failed."""

    name: str
    period: Period
    calls: int
    errors: int


def failure_chart(periods: Sequence[PeriodCalls], by: str, url: ReportUrl) -> Chart:
    """Return a column for the failed calls of each period."""
    shares = [f"{format_count(one.errors)} of {format_count(one.calls)}" for one in periods]
    data = [
        Datum(one.errors, f"{one.name}: {share} calls failed", url.address("/tools", one.period))
        for one, share in zip(periods, shares, strict=True)
    ]
    rows = [(one.name, share, datum.link) for one, share, datum in zip(periods, shares, data, strict=True)]
    most = format_count(max((one.errors for one in periods), default=0))
    return Chart(draw_columns(data, "failures", f"Failed calls by {by}"), rows, most, *_ends(rows))


def rank_lines(lines: Sequence[Line], by: str, url: ReportUrl) -> list[ChartRow]:
    """Return lines by cost, each with a bar, a link to its own report and a link to its requests."""
    order = sorted(lines, key=lambda line: (-(line.measured.picos or 0), -_tokens(line), line.of))
    is_cost = any(line.measured.picos for line in order)
    weights = [(line.measured.picos or 0) if is_cost else _tokens(line) for line in order]
    names = project_names(line.of for line in order) if by == "project" else {}
    return [
        ChartRow(
            names.get(line.of, line.of),
            line.of,
            line,
            draw_length(weight, max(weights)),
            url.address("/spend", **{by: line.of}),
            url.address("/spend/ledger", **{by: line.of}),
        )
        for line, weight in zip(order, weights, strict=True)
    ]


def _ends(rows: Sequence[tuple[str, str, str]]) -> tuple[str, str]:
    return (rows[0][0], rows[-1][0]) if rows else ("", "")


def _tokens(line: Line) -> int:
    return line.measured.figures["total"] or 0


WIDTH, LENGTH = 10, 1000
"""Size of the minimap."""
MOST = 200
"""Blocks of a minimap; in a longer session a block stands for several turns."""
_KINDS = ("turn", "compacted", "failed", "taken")
"""Kinds of blocks; a block of several turns has the last kind of theirs."""


class MinimapBlock(msgspec.Struct, frozen=True):
    """A block of the minimap: one or several turns."""

    begin: float
    length: float
    kind: str
    """`turn`, `compacted`, `failed` (a call failed) or `taken` (rewound or replaced)."""


def minimap_paths(turns: Sequence[SessionTurn], total: int) -> tuple[tuple[str, str], ...]:
    """Return the minimap of a session with `total` entries: an SVG path for each kind of blocks."""
    paths: dict[str, list[str]] = defaultdict(list)
    for block in minimap_blocks(turns, total):
        paths[block.kind].append(f"M0 {block.begin:g}h{WIDTH}v{block.length:g}h-{WIDTH}z")
    return tuple((kind, "".join(paths[kind])) for kind in _KINDS if kind in paths)


def minimap_blocks(turns: Sequence[SessionTurn], total: int) -> Iterator[MinimapBlock]:
    """Yield the blocks of a session with `total` entries."""
    step = -(-len(turns) // MOST) or 1
    for place in range(0, len(turns), step):
        group = turns[place : place + step]
        end = turns[place + step].seq if place + step < len(turns) else total
        kind = max(map(turn_kind, group), key=_KINDS.index)
        yield MinimapBlock(group[0].seq * LENGTH / total, (end - group[0].seq) * LENGTH / total, kind)


def turn_kind(turn: SessionTurn) -> str:
    """Return the kind of block for a turn."""
    if turn.fate in ("rewound", "superseded"):
        return "taken"
    if turn.errors:
        return "failed"
    return "compacted" if turn.fate == "compacted" else "turn"
