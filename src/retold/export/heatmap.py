"""Days as a calendar: weeks in columns, the newest at the right, and the more on a day, the darker it is."""

from __future__ import annotations

from bisect import bisect_right
from datetime import date

from retold.export.flow import flowed

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from retold.export.grid import Pieces

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
