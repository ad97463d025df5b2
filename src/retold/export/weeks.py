"""The last weeks as a line that goes up and down."""

from __future__ import annotations

from retold.export.bars import sparkline
from retold.export.flow import JOINT, flowed
from retold.export.heatmap import MARGIN
from retold.model.report import plus

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import date

    from retold.export.grid import Pieces

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
