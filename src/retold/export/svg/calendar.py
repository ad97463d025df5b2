"""Days as a calendar: weeks in columns, the newest at the right, and the more on a day, the darker it is."""

from collections.abc import Iterator, Mapping
from datetime import date

from markupsafe import Markup

from retold.export.heatmap import MONTHS, MOST_WEEKS, level, monday
from retold.export.svg.drawing import Datum, DrawingFrame, framed, mark, rect, text

_STEP, _CELL = 14, 11
_LEFT, _TOP = 30, 18
_WEEK = 7
_WEEKDAYS = ((0, "Mon"), (2, "Wed"), (4, "Fri"))


def calendar(data: Mapping[date, Datum], since: date, until: date, name: str, title: str) -> Markup:
    """Return the days up to `until`, at most a year of them; a day that is not in `data` is one without work."""
    last = monday(until.toordinal())
    first = max(monday(since.toordinal()), last - _WEEK * (MOST_WEEKS - 1))
    shown = range(max(first, since.toordinal()), until.toordinal() + 1)
    known = {day.toordinal(): datum for day, datum in data.items() if day.toordinal() in shown}
    weeks = (last - first) // _WEEK + 1
    frame = DrawingFrame(
        "calendar",
        name,
        title,
        _calendar_summary(known, shown),
        _LEFT + max(weeks, _WEEK) * _STEP,
        _TOP + _WEEK * _STEP,
    )
    marks = [*_calendar_names(first, last), *_days(known, shown, first)]
    return framed(frame, marks, is_linked=any(datum.link for datum in known.values()))


def _days(known: Mapping[int, Datum], shown: range, first: int) -> Iterator[Markup]:
    amounts = sorted(datum.value for datum in known.values() if datum.value)
    latest = max((day for day, datum in known.items() if datum.link), default=None)
    for day in shown:
        week, weekday = divmod(day - first, _WEEK)
        datum = known.get(day) or Datum(0, f"{date.fromordinal(day)}: nothing")
        kind = "heat-unknown" if datum.value is None else f"heat-{level(datum.value, amounts)}"
        shape = rect(kind, _LEFT + week * _STEP, _TOP + weekday * _STEP, _CELL, _CELL)
        yield mark(datum, shape, is_first=day == latest)


def _calendar_names(first: int, last: int) -> Iterator[Markup]:
    """Yield the names of weekdays, and of months above the week in which their first day is."""
    for weekday, name in _WEEKDAYS:
        yield text("axis", 0, _TOP + weekday * _STEP + _CELL - 1, name)
    for begin in range(first, last - _WEEK + 1, _WEEK):
        days = [date.fromordinal(day) for day in range(begin, begin + _WEEK)]
        month = next((day.month for day in days if day.day == 1), None)
        if month:
            yield text("axis", _LEFT + (begin - first) // _WEEK * _STEP, _TOP - 6, MONTHS[month - 1])


def _calendar_summary(known: Mapping[int, Datum], shown: range) -> str:
    worked = [datum for datum in known.values() if datum.value or datum.value is None]
    span = f"{date.fromordinal(shown[0])} to {date.fromordinal(shown[-1])}" if shown else ""
    if not worked:
        return f"{span}: nothing on any day"
    most = max(worked, key=lambda datum: datum.value or 0)
    return f"{span}: work on {len(worked)} of {len(shown)} days; the most on {most.told}"
