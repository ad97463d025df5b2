"""The overview of `retold stats`: totals of a period, a calendar of days, and the largest models, projects, tools and files."""

from __future__ import annotations

from bisect import bisect_right
from datetime import date

from retold.export.text.amounts import (
    GridColumn,
    GridRow,
    draw_sparkline,
    format_count,
    format_duration,
    format_grid,
    format_money,
    format_share,
)
from retold.export.text.formatting import (
    SEPARATOR,
    clean_name,
    format_short_number,
    plural,
    shorten,
    wrap_words,
)
from retold.export.text.report_table import (
    bar_weight,
    format_basis_notes,
    format_cost,
    format_errors,
    format_note,
    format_price_notes,
    has_cost,
    line_names,
)
from retold.model.report import Line, Spend, add_known, sum_spends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from retold.export.text.formatting import StyledLine
    from retold.model.report import Overview, ToolFigures, TouchedFile


SHADES = "·░▒▓█"
UNKNOWN = "?"
MOST_WEEKS = 53
_WEEKDAYS = ("Mon", "", "Wed", "", "Fri", "", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
MARGIN = 6
"""Columns of the weekdays' names."""
_WEEK = 7
_LAST_DAY = date.max.toordinal()


def format_heat_map(
    days: Mapping[date, int | None],
    since: date,
    until: date,
    width: int,
    format_amount: Callable[[int], str] = str,
) -> Iterator[StyledLine]:
    """Yield a calendar of as many weeks up to `until` as fit, and a legend of its shades.

    A day that is not in `days` is one without work. None is work of an unknown amount.
    """
    last = monday_of(until.toordinal())
    weeks = min((last - monday_of(since.toordinal())) // _WEEK + 1, MOST_WEEKS, max(1, width - MARGIN))
    cell = 2 if MARGIN + 2 * weeks <= width else 1
    mondays = range(last - _WEEK * (weeks - 1), last + 1, _WEEK)
    shown = range(max(mondays[0], since.toordinal()), until.toordinal() + 1)
    known = {day.toordinal(): value for day, value in days.items() if day.toordinal() in shown}
    amounts = sorted(value for value in known.values() if value)
    yield [("faint", " " * MARGIN + _month_names(mondays, cell).rstrip())]
    for weekday, name in enumerate(_WEEKDAYS):
        cells = [_cell(monday + weekday, shown, known, amounts) for monday in mondays]
        yield [("faint", f"{name:<{MARGIN}}"), *_styled_cells(cells, cell)]
    yield from _legend(known, amounts, width, format_amount)


def shade_level(value: int, amounts: Sequence[int]) -> int:
    """Return the shade of a day, 0 to 4, by its rank among all days: so one huge day does not hide the others."""
    if value <= 0:
        return 0
    steps = len(SHADES) - 1
    return -(-steps * bisect_right(amounts, value) // len(amounts))


def _cell(day: int, shown: range, known: Mapping[int, int | None], amounts: Sequence[int]) -> str:
    if day not in shown:
        return " "
    value = known.get(day, 0)
    return UNKNOWN if value is None else SHADES[shade_level(value, amounts)]


def _styled_cells(cells: Sequence[str], cell: int) -> Iterator[tuple[str, str]]:
    """Yield the cells of a weekday; neighbours of one style are one piece."""
    style, text = "", ""
    for character in "".join(cells).rstrip():
        now = "bar" if character in SHADES[1:] else "faint"
        if now != style and text:
            yield style, text
            text = ""
        style, text = now, text + character * cell
    if text:
        yield style, text


def _month_names(mondays: range, cell: int) -> str:
    """Return the names of the months, each above the week of its first day."""
    line = ""
    for place, monday in enumerate(mondays):
        firsts = [date.fromordinal(day) for day in range(monday, min(monday + _WEEK, _LAST_DAY + 1))]
        month = next((day.month for day in firsts if day.day == 1), None)
        start = place * cell
        if month and start + 3 <= max(3, len(mondays) * cell):
            line = line.ljust(start) + MONTHS[month - 1]
    return line


def _legend(
    known: Mapping[int, int | None], amounts: Sequence[int], width: int, format_amount: Callable[[int], str]
) -> Iterator[StyledLine]:
    words = [f"less {SHADES} more"]
    if amounts:
        most = max(day for day, value in known.items() if value == amounts[-1])
        words.append(f"most {format_amount(amounts[-1])} on {date.fromordinal(most)}")
    if None in known.values():
        words.append(f"{UNKNOWN} unknown")
    for line in wrap_words(words, width - MARGIN, "   "):
        yield [("faint", " " * MARGIN + line)]


def monday_of(day: int) -> int:
    """Return the Monday of a day's week; both are ordinals."""
    return day - (day - 1) % _WEEK


MOST_LISTED_WEEKS = 26
_LABEL = "weeks"
_GAP = "   "


def format_weeks(
    days: Mapping[date, int | None], since: date, until: date, width: int, format_amount: Callable[[int], str]
) -> Iterator[StyledLine]:
    """Yield a sparkline of as many weeks up to that of `until` as fit, with the last and the largest amount."""
    last = _week(until)
    number = min(MOST_LISTED_WEEKS, last - _week(since) + 1, width - MARGIN)
    sums = sum_weeks(days, last, number)
    if not sums:
        return
    known = [value for value in sums if value is not None]
    words = [] if sums[-1] is None else [f"the last {format_amount(sums[-1])}"]
    words += [f"the most {format_amount(max(known))}"] if known else []
    picture = [("faint", f"{_LABEL:<{MARGIN}}"), ("bar", draw_sparkline(sums))]
    text = SEPARATOR.join(words)
    if MARGIN + number + len(_GAP) + len(text) <= width:
        yield [*picture, ("faint", f"{_GAP}{text}".rstrip())]
        return
    yield picture
    for line in wrap_words(words, width - MARGIN, SEPARATOR):
        yield [("faint", " " * MARGIN + line)]


def sum_weeks(days: Mapping[date, int | None], last: int, number: int) -> list[int | None]:
    """Return the sum of each week: 0 for a week without work, None for one with unknown amounts alone."""
    sums: dict[int, int | None] = {}
    for day, value in days.items():
        week = _week(day)
        sums[week] = add_known(sums.get(week), value)
    return [sums.get(week, 0) for week in range(last - number + 1, last + 1)]


def _week(day: date) -> int:
    """Return the number of a week that begins on Monday."""
    return (day.toordinal() - 1) // 7


MODELS, PROJECTS, TOOLS, FILES = 8, 5, 8, 5
"""Rows of each table."""
FEW_DAYS = 14
"""Periods shorter than this are shown as bars: a calendar of them would be almost empty."""
_NAME = 24
_SHARES = (GridColumn("requests", 3), GridColumn("tokens", 1), GridColumn("cost", 0))
_USED = (GridColumn("calls", 0), GridColumn("errors", 1), GridColumn("retries", 4), GridColumn("slowest", 3))
_TOUCHED = (GridColumn("times", 0), GridColumn("sessions", 3))


def format_overview(report: Overview, columns: int) -> Iterator[StyledLine]:
    """Yield the overview; no line is wider than `columns`."""
    of_cost = has_cost([report.total.measured])
    days = {day: line for line in report.days if (day := parse_date(line.of)) is not None}
    yield from _head(report, days, columns)
    for block in (
        _days(report, days, columns, of_cost=of_cost),
        _shares("model", report.models, MODELS, columns, of_cost=of_cost),
        _shares("project", report.projects, PROJECTS, columns, of_cost=of_cost),
        _tools(report.tools, columns),
        _files(report.files, columns),
        _health(report.total, report.tools, columns),
        _footnotes(report, columns),
    ):
        lines = list(block)
        if lines:
            yield []
            yield from lines


def _head(report: Overview, days: dict[date, Line], columns: int) -> Iterator[StyledLine]:
    total, spend = report.total, report.total.measured
    since = report.since or (min(days).isoformat() if days else None)
    until = report.until or (max(days).isoformat() if days else None)
    period = since if since == until else f"{since or 'the beginning'} to {until or 'today'}"
    for line in wrap_words((period or "no day is known",), columns):
        yield [("title", line)]
    facts = [
        format_cost(spend) if spend.picos is not None else "no price",
        f"{format_short_number(spend.figures['total'])} tokens" if spend.requests else "no tokens",
        plural(spend.requests, "request"),
        *([plural(total.sessions, "session")] if total.sessions is not None else []),
        *([plural(total.prompts, "prompt")] if total.prompts is not None else []),
        *([f"{format_duration(total.active_seconds)} active"] if total.active_seconds is not None else []),
    ]
    for line in wrap_words(facts, columns, SEPARATOR):
        yield [("plain", line)]
    for line in wrap_words(_token_kinds(spend), columns, SEPARATOR):
        yield [("faint", line)]
    for line in wrap_words(_estimates(total.estimated), columns, SEPARATOR):
        yield [("faint", line)]


def _token_kinds(spend: Spend) -> Iterator[str]:
    """Yield the recorded tokens of each kind."""
    for name, label in (
        ("input", "input"),
        ("cached", "of it cached"),
        ("cache_write", "written to the cache"),
        ("output", "output"),
        ("reasoning", "reasoning"),
        ("tool", "for tools"),
    ):
        figure = spend.figures[name]
        if figure is not None and (figure or name in ("input", "output")):
            yield f"{label} {format_short_number(figure)}"


def _estimates(spend: Spend) -> Iterator[str]:
    if spend.requests:
        yield f"estimated besides: ~{format_short_number(spend.figures['total'])} tokens"
        if spend.picos is not None:
            yield f"~{format_cost(spend)}"
        yield plural(spend.requests, "request")


def _days(report: Overview, days: dict[date, Line], columns: int, *, of_cost: bool) -> Iterator[StyledLine]:
    if not days:
        return
    since = parse_date(report.since) or min(days)
    until = parse_date(report.until) or max(days)
    if (until - since).days < FEW_DAYS:
        rows = [_share_row(line.of, line.measured, of_cost=of_cost) for _, line in sorted(days.items())]
        yield from format_grid("day", _SHARES, rows, columns)
        return
    # A day without requests weighs 0; one whose requests have no known amount weighs None.
    weights = {
        day: bar_weight(line.measured, of_cost=of_cost) if line.measured.requests else 0
        for day, line in days.items()
    }
    format_amount = format_money if of_cost else format_short_number
    yield from format_heat_map(weights, since, until, columns, format_amount)
    yield from format_weeks(weights, since, until, columns, format_amount)


def _shares(
    by: str, lines: Sequence[Line], most: int, columns: int, *, of_cost: bool
) -> Iterator[StyledLine]:
    """Yield the largest with their bars, and the others as one row."""
    names = line_names(lines, by, {})
    order = sorted(lines, key=lambda line: -(bar_weight(line.measured, of_cost=of_cost) or 0))
    shown = [line for line in order if line.measured.requests]
    rows = [_share_row(names[line.of], line.measured, of_cost=of_cost) for line in shown[:most]]
    if shown[most:]:
        rest = sum_spends(line.measured for line in shown[most:])
        rows.append(_share_row(f"{len(shown) - most} others", rest, of_cost=of_cost))
    if rows:
        yield from format_grid(by, _SHARES, rows, columns)


def _share_row(name: str, spend: Spend, *, of_cost: bool) -> GridRow:
    cells = (format_count(spend.requests), format_short_number(spend.figures["total"]), format_cost(spend))
    return GridRow(name, cells, bar_weight(spend, of_cost=of_cost))


def _tools(tools: Sequence[ToolFigures], columns: int) -> Iterator[StyledLine]:
    order = sorted(tools, key=lambda tool: -tool.calls)[:TOOLS]
    rows = [
        GridRow(
            tool.name,
            (
                format_count(tool.calls),
                format_errors(tool.errors, tool.calls),
                format_count(tool.retries),
                format_duration(tool.slowest_seconds),
            ),
            tool.calls,
        )
        for tool in order
    ]
    if rows:
        yield from format_grid("tool", _USED, rows, columns)


def _files(files: Sequence[TouchedFile], columns: int) -> Iterator[StyledLine]:
    order = sorted(files, key=lambda file: -file.times)[:FILES]
    rows = [
        GridRow(file.path, (format_count(file.times), format_count(file.sessions)), file.times, is_path=True)
        for file in order
    ]
    if rows:
        yield from format_grid("file", _TOUCHED, rows, columns)


def _health(total: Line, tools: Sequence[ToolFigures], columns: int) -> Iterator[StyledLine]:
    words = []
    if total.tool_calls:
        words.append(plural(total.tool_calls, "tool call"))
        if total.tool_errors is not None:
            words.append(f"{format_share(total.tool_errors, total.tool_calls)} failed")
        if total.tool_retries is not None:
            words.append(f"{format_share(total.tool_retries, total.tool_calls)} tried again")
    if total.compactions is not None:
        words.append(plural(total.compactions, "compaction"))
    slowest = max(tools, key=lambda tool: tool.slowest_seconds or 0, default=None)
    if slowest and slowest.slowest_seconds:
        words.append(
            f"the slowest took {format_duration(slowest.slowest_seconds)} ({shorten(clean_name(slowest.name), _NAME)})"
        )
    for line in wrap_words(words, columns, SEPARATOR):
        yield [("plain", line)]


def _footnotes(report: Overview, columns: int) -> Iterator[StyledLine]:
    yield from format_price_notes(report.total.measured, report.basis, columns)
    undated = [line.measured for line in report.days if parse_date(line.of) is None]
    if undated:
        requests = plural(sum_spends(undated).requests, "request")
        yield from format_note(f"on no day, for want of a time: {requests}", columns)
    yield from format_basis_notes(report.basis, report.total.estimated, columns)


def parse_date(text: str | None) -> date | None:
    """Return the day that a text names; None if it names none."""
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None
