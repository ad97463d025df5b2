"""A period at a glance: what was spent, when, on what, and how it went."""

from __future__ import annotations

from bisect import bisect_right
from datetime import date

from retold.export.text.grid import GridColumn, GridRow, grid
from retold.export.text.numbers import count, money, share, span, sparkline
from retold.export.text.report_table import (
    basis_notes,
    cost,
    errors,
    names_of,
    note,
    price_notes,
    weighs_cost,
    weight,
)
from retold.export.text.table import JOINT, clean, flowed, short_number, shortened
from retold.model.report import Line, Spend, plus, summed

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from retold.export.text.grid import Pieces
    from retold.model.report import Overview, ToolFigures, Touched


SHADES = "·░▒▓█"
UNKNOWN = "?"
MOST_WEEKS = 53
_WEEKDAYS = ("Mon", "", "Wed", "", "Fri", "", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
MARGIN = 6
"""Where the names of weekdays stand."""
_WEEK = 7
_LAST_DAY = date.max.toordinal()


def heat_map(
    days: Mapping[date, int | None],
    since: date,
    until: date,
    width: int,
    told: Callable[[int], str] = str,
) -> Iterator[Pieces]:
    """Yield the lines of a calendar up to `until`, as many weeks as there are and fit, and what its shades mean.

    A day that is not in `days` is one without work; None is work of which it is not known how much.
    """
    last = monday(until.toordinal())
    weeks = min((last - monday(since.toordinal())) // _WEEK + 1, MOST_WEEKS, max(1, width - MARGIN))
    cell = 2 if MARGIN + 2 * weeks <= width else 1
    mondays = range(last - _WEEK * (weeks - 1), last + 1, _WEEK)
    shown = range(max(mondays[0], since.toordinal()), until.toordinal() + 1)
    known = {day.toordinal(): value for day, value in days.items() if day.toordinal() in shown}
    amounts = sorted(value for value in known.values() if value)
    yield [("faint", " " * MARGIN + _month_names(mondays, cell).rstrip())]
    for weekday, name in enumerate(_WEEKDAYS):
        cells = [_cell(monday + weekday, shown, known, amounts) for monday in mondays]
        yield [("faint", f"{name:<{MARGIN}}"), *_joined(cells, cell)]
    yield from _legend(known, amounts, width, told)


def shade(value: int, amounts: Sequence[int]) -> str:
    """Return how dark a day is."""
    return SHADES[level(value, amounts)]


def level(value: int, amounts: Sequence[int]) -> int:
    """Return how dark a day is, up to 4: by its rank among all, so that one huge day does not hide the others."""
    if value <= 0:
        return 0
    steps = len(SHADES) - 1
    return -(-steps * bisect_right(amounts, value) // len(amounts))


def _cell(day: int, shown: range, known: Mapping[int, int | None], amounts: Sequence[int]) -> str:
    if day not in shown:
        return " "
    value = known.get(day, 0)
    return UNKNOWN if value is None else shade(value, amounts)


def _joined(cells: Sequence[str], cell: int) -> Iterator[tuple[str, str]]:
    """Yield the cells of a weekday, neighbours of one style together."""
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
    """Return the names of the months, each above the week in which its first day is."""
    line = ""
    for place, monday in enumerate(mondays):
        firsts = [date.fromordinal(day) for day in range(monday, min(monday + _WEEK, _LAST_DAY + 1))]
        month = next((day.month for day in firsts if day.day == 1), None)
        start = place * cell
        if month and start + 3 <= max(3, len(mondays) * cell):
            line = line.ljust(start) + MONTHS[month - 1]
    return line


def _legend(
    known: Mapping[int, int | None],
    amounts: Sequence[int],
    width: int,
    told: Callable[[int], str],
) -> Iterator[Pieces]:
    words = [f"less {SHADES} more"]
    if amounts:
        most = max(day for day, value in known.items() if value == amounts[-1])
        words.append(f"most {told(amounts[-1])} on {date.fromordinal(most)}")
    if None in known.values():
        words.append(f"{UNKNOWN} unknown")
    for line in flowed(words, width - MARGIN, "   "):
        yield [("faint", " " * MARGIN + line)]


def monday(day: int) -> int:
    """Return the Monday of a day's week, both as ordinals."""
    return day - (day - 1) % _WEEK


MOST_LISTED_WEEKS = 26
_LABEL = "weeks"
_GAP = "   "


def week_line(
    days: Mapping[date, int | None], since: date, until: date, width: int, told: Callable[[int], str]
) -> Iterator[Pieces]:
    """Yield the weeks up to that of `until`, as many as there are and fit, and how much the largest of them is."""
    last = _week(until)
    number = min(MOST_LISTED_WEEKS, last - _week(since) + 1, width - MARGIN)
    sums = week_sums(days, last, number)
    if not sums:
        return
    known = [value for value in sums if value is not None]
    words = [] if sums[-1] is None else [f"the last {told(sums[-1])}"]
    words += [f"the most {told(max(known))}"] if known else []
    picture = [("faint", f"{_LABEL:<{MARGIN}}"), ("bar", sparkline(sums))]
    text = JOINT.join(words)
    if MARGIN + number + len(_GAP) + len(text) <= width:
        yield [*picture, ("faint", f"{_GAP}{text}".rstrip())]
        return
    yield picture
    for line in flowed(words, width - MARGIN, JOINT):
        yield [("faint", " " * MARGIN + line)]


def week_sums(days: Mapping[date, int | None], last: int, number: int) -> list[int | None]:
    """Return what each week had, 0 for one without work; None where of none of its days it is known."""
    sums: dict[int, int | None] = {}
    for day, value in days.items():
        week = _week(day)
        sums[week] = plus(sums.get(week), value)
    return [sums.get(week, 0) for week in range(last - number + 1, last + 1)]


def _week(day: date) -> int:
    """Return the number of a week, from Monday to Sunday."""
    return (day.toordinal() - 1) // 7


MODELS, PROJECTS, TOOLS, FILES = 8, 5, 8, 5
"""How many of each are shown."""
FEW_DAYS = 14
"""So many days are shown as bars: a calendar of them would be next to empty."""
_NAME = 24
_SHARES = (GridColumn("requests", 3), GridColumn("tokens", 1), GridColumn("cost", 0))
_USED = (GridColumn("calls", 0), GridColumn("errors", 1), GridColumn("retries", 4), GridColumn("slowest", 3))
_TOUCHED = (GridColumn("times", 0), GridColumn("sessions", 3))


def overview(told: Overview, columns: int) -> Iterator[Pieces]:
    """Yield all of it line by line, in pieces with their styles; no line is wider than `columns`."""
    of_cost = weighs_cost([told.total.measured])
    days = dict(_dated(told.days))
    yield from _head(told, days, columns)
    for block in (
        _days(told, days, columns, of_cost=of_cost),
        _shares("model", told.models, MODELS, columns, of_cost=of_cost),
        _shares("project", told.projects, PROJECTS, columns, of_cost=of_cost),
        _tools(told.tools, columns),
        _files(told.files, columns),
        _health(told.total, told.tools, columns),
        _footnotes(told, columns),
    ):
        lines = list(block)
        if lines:
            yield []
            yield from lines


def _head(told: Overview, days: dict[date, Line], columns: int) -> Iterator[Pieces]:
    total, spend = told.total, told.total.measured
    since = told.since or (min(days).isoformat() if days else None)
    until = told.until or (max(days).isoformat() if days else None)
    period = since if since == until else f"{since or 'the beginning'} to {until or 'today'}"
    for line in flowed((period or "no day is known",), columns):
        yield [("title", line)]
    known = [
        cost(spend) if spend.picos is not None else "no price",
        f"{short_number(spend.figures['total'])} tokens" if spend.requests else "no tokens",
        _counted(spend.requests, "request"),
        *([_counted(total.sessions, "session")] if total.sessions is not None else []),
        *([_counted(total.prompts, "prompt")] if total.prompts is not None else []),
        *([f"{span(total.active_seconds)} active"] if total.active_seconds is not None else []),
    ]
    for line in flowed(known, columns, JOINT):
        yield [("plain", line)]
    for line in flowed(_parts(spend), columns, JOINT):
        yield [("faint", line)]
    for line in flowed(_guessed(total.estimated), columns, JOINT):
        yield [("faint", line)]


def _parts(spend: Spend) -> Iterator[str]:
    """Yield what the tokens consist of, as far as it was recorded."""
    for name, told in (
        ("input", "input"),
        ("cached", "of it cached"),
        ("cache_write", "written to the cache"),
        ("output", "output"),
        ("reasoning", "reasoning"),
        ("tool", "for tools"),
    ):
        figure = spend.figures[name]
        if figure is not None and (figure or name in ("input", "output")):
            yield f"{told} {short_number(figure)}"


def _guessed(spend: Spend) -> Iterator[str]:
    if spend.requests:
        yield f"estimated besides: ~{short_number(spend.figures['total'])} tokens"
        if spend.picos is not None:
            yield f"~{cost(spend)}"
        yield _counted(spend.requests, "request")


def _days(told: Overview, days: dict[date, Line], columns: int, *, of_cost: bool) -> Iterator[Pieces]:
    if not days:
        return
    since = _date(told.since) or min(days)
    until = _date(told.until) or max(days)
    if (until - since).days < FEW_DAYS:
        rows = [_share_row(line.of, line.measured, of_cost=of_cost) for _, line in sorted(days.items())]
        yield from grid("day", _SHARES, rows, columns)
        return
    weights = {day: _day_weight(line.measured, of_cost=of_cost) for day, line in days.items()}
    yield from heat_map(weights, since, until, columns, _teller(of_cost=of_cost))
    yield from week_line(weights, since, until, columns, _teller(of_cost=of_cost))


def _shares(by: str, lines: Sequence[Line], most: int, columns: int, *, of_cost: bool) -> Iterator[Pieces]:
    """Yield the largest with their bars, and the others as one."""
    names = names_of(lines, by, {})
    order = sorted(lines, key=lambda line: -(weight(line.measured, of_cost=of_cost) or 0))
    shown = [line for line in order if line.measured.requests]
    rows = [_share_row(names[line.of], line.measured, of_cost=of_cost) for line in shown[:most]]
    if shown[most:]:
        rest = summed(line.measured for line in shown[most:])
        rows.append(_share_row(f"{len(shown) - most} others", rest, of_cost=of_cost))
    if rows:
        yield from grid(by, _SHARES, rows, columns)


def _share_row(name: str, spend: Spend, *, of_cost: bool) -> GridRow:
    cells = (count(spend.requests), short_number(spend.figures["total"]), cost(spend))
    return GridRow(name, cells, weight(spend, of_cost=of_cost))


def _tools(tools: Sequence[ToolFigures], columns: int) -> Iterator[Pieces]:
    order = sorted(tools, key=lambda tool: -tool.calls)[:TOOLS]
    rows = [
        GridRow(
            tool.name,
            (
                count(tool.calls),
                errors(tool.errors, tool.calls),
                count(tool.retries),
                span(tool.slowest_seconds),
            ),
            tool.calls,
        )
        for tool in order
    ]
    if rows:
        yield from grid("tool", _USED, rows, columns)


def _files(files: Sequence[Touched], columns: int) -> Iterator[Pieces]:
    order = sorted(files, key=lambda file: -file.times)[:FILES]
    rows = [
        GridRow(file.path, (count(file.times), count(file.sessions)), file.times, is_path=True)
        for file in order
    ]
    if rows:
        yield from grid("file", _TOUCHED, rows, columns)


def _health(total: Line, tools: Sequence[ToolFigures], columns: int) -> Iterator[Pieces]:
    words = []
    if total.tool_calls:
        words.append(_counted(total.tool_calls, "tool call"))
        if total.tool_errors is not None:
            words.append(f"{share(total.tool_errors, total.tool_calls)} failed")
        if total.tool_retries is not None:
            words.append(f"{share(total.tool_retries, total.tool_calls)} tried again")
    if total.compactions is not None:
        words.append(_counted(total.compactions, "compaction"))
    slowest = max(tools, key=lambda tool: tool.slowest_seconds or 0, default=None)
    if slowest and slowest.slowest_seconds:
        words.append(
            f"the slowest took {span(slowest.slowest_seconds)} ({shortened(clean(slowest.name), _NAME)})"
        )
    for line in flowed(words, columns, JOINT):
        yield [("plain", line)]


def _footnotes(told: Overview, columns: int) -> Iterator[Pieces]:
    yield from price_notes(told.total.measured, told.basis, columns)
    undated = [line.measured for line in told.days if _date(line.of) is None]
    if undated:
        yield from note(
            f"on no day, for want of a time: {_counted(summed(undated).requests, 'request')}", columns
        )
    yield from basis_notes(told.basis, told.total.estimated, columns)


def _dated(lines: Sequence[Line]) -> Iterator[tuple[date, Line]]:
    for line in lines:
        day = _date(line.of)
        if day is not None:
            yield day, line


def _date(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None


def _day_weight(spend: Spend, *, of_cost: bool) -> int | None:
    """Return what a day weighs; 0 where nothing was asked, None where it is not known what that was worth."""
    return weight(spend, of_cost=of_cost) if spend.requests else 0


def _teller(*, of_cost: bool) -> Callable[[int], str]:
    return money if of_cost else short_number


def _counted(number: int, noun: str) -> str:
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"
