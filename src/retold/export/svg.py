"""Draws charts as SVG: calendars, columns, hours of a week, bars and sparklines, each with a text for screen readers."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date

import msgspec
from markupsafe import Markup, escape

from retold.export.html.blocks import show_control_chars
from retold.export.text.report_overview import MONTHS, MOST_WEEKS, monday_of, shade_level

SPACE = "http://www.w3.org/2000/svg"


class Datum(msgspec.Struct, frozen=True):
    """A value of a chart, its label and its link."""

    value: int | None
    """None for an unknown amount."""
    label: str
    """For example `2026-01-27: $1.23`."""
    link: str = ""


class DrawingFrame(msgspec.Struct, frozen=True):
    """The names, the description and the size of a drawing."""

    kind: str
    """The CSS class."""
    name: str
    """An id that is unique on the page; it consists of letters."""
    title: str
    description: str
    width: int
    height: int


def draw_frame(
    frame: DrawingFrame, marks: Iterable[Markup], *, is_linked: bool, is_stretched: bool = False
) -> Markup:
    """Return a drawing. With links in it its role is `group`, since the inside of an `img` cannot be reached."""
    size = (
        ' preserveAspectRatio="none"' if is_stretched else f' width="{frame.width}" height="{frame.height}"'
    )
    return Markup(
        '<svg xmlns="{}" class="chart {}" viewBox="0 0 {} {}"{} role="{}" aria-labelledby="{}-title"'
        ' aria-describedby="{}-told"><title id="{}-title">{}</title><desc id="{}-told">{}</desc>{}</svg>'
    ).format(
        SPACE, frame.kind, frame.width, frame.height, Markup(size), "group" if is_linked else "img",  # noqa: S704 - ours
        *[frame.name] * 3, show_control_chars(frame.title), frame.name, show_control_chars(frame.description), Markup("").join(marks),
    )  # fmt: skip


def draw_mark(datum: Datum, shape: Markup, *, is_first: bool = False) -> Markup:
    """Return a shape with its label and link. Only the first link of a drawing is reached with Tab."""
    label = escape(show_control_chars(datum.label))
    inside = f"<title>{label}</title>{escape(shape)}"  # no `Markup.format`: a page has hundreds of them
    if not datum.link:
        return Markup(f"<g>{inside}</g>")  # noqa: S704 - escaped above
    place = f'href="{escape(datum.link)}" tabindex="{0 if is_first else -1}"'
    return Markup(f'<a {place} aria-label="{label}">{inside}</a>')  # noqa: S704 - escaped above


def draw_rect(kind: str, x: float, y: float, width: float, height: float) -> Markup:
    """Return a rectangle; `kind` is its CSS class."""
    sides = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    return Markup(f'<rect class="{escape(kind)}" {sides}/>')  # noqa: S704 - numbers and escaped text


def draw_text(kind: str, x: float, y: float, words: str) -> Markup:
    """Return text that screen readers skip; the description of the drawing says the same."""
    place = Markup(f'x="{x:g}" y="{y:g}"')  # noqa: S704 - numbers
    return Markup('<text class="{}" {} aria-hidden="true">{}</text>').format(
        kind, place, show_control_chars(words)
    )


_STEP, _CELL = 14, 11
_LEFT, _TOP = 30, 18
_WEEK = 7
_WEEKDAYS = ((0, "Mon"), (2, "Wed"), (4, "Fri"))


def draw_calendar(data: Mapping[date, Datum], since: date, until: date, name: str, title: str) -> Markup:
    """Return a calendar up to `until`, of at most a year; a day that is not in `data` has no work."""
    last = monday_of(until.toordinal())
    first = max(monday_of(since.toordinal()), last - _WEEK * (MOST_WEEKS - 1))
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
    return draw_frame(frame, marks, is_linked=any(datum.link for datum in known.values()))


def _days(known: Mapping[int, Datum], shown: range, first: int) -> Iterator[Markup]:
    amounts = sorted(datum.value for datum in known.values() if datum.value)
    latest = max((day for day, datum in known.items() if datum.link), default=None)
    for day in shown:
        week, weekday = divmod(day - first, _WEEK)
        datum = known.get(day) or Datum(0, f"{date.fromordinal(day)}: nothing")
        kind = "heat-unknown" if datum.value is None else f"heat-{shade_level(datum.value, amounts)}"
        shape = draw_rect(kind, _LEFT + week * _STEP, _TOP + weekday * _STEP, _CELL, _CELL)
        yield draw_mark(datum, shape, is_first=day == latest)


def _calendar_names(first: int, last: int) -> Iterator[Markup]:
    """Yield the names of weekdays, and of months above the week of their first day."""
    for weekday, name in _WEEKDAYS:
        yield draw_text("axis", 0, _TOP + weekday * _STEP + _CELL - 1, name)
    for begin in range(first, last - _WEEK + 1, _WEEK):
        days = [date.fromordinal(day) for day in range(begin, begin + _WEEK)]
        month = next((day.month for day in days if day.day == 1), None)
        if month:
            yield draw_text("axis", _LEFT + (begin - first) // _WEEK * _STEP, _TOP - 6, MONTHS[month - 1])


def _calendar_summary(known: Mapping[int, Datum], shown: range) -> str:
    worked = [datum for datum in known.values() if datum.value or datum.value is None]
    span = f"{date.fromordinal(shown[0])} to {date.fromordinal(shown[-1])}" if shown else ""
    if not worked:
        return f"{span}: nothing on any day"
    most = max(worked, key=lambda datum: datum.value or 0)
    return f"{span}: work on {len(worked)} of {len(shown)} days; the most on {most.label}"


_COLUMN_STEP, _COLUMN_GAP, _COLUMNS_HEIGHT = 10, 2, 100
_LEAST_COLUMN = 1.5
"""Height of the lowest column: any value above zero is visible."""


def draw_columns(data: Sequence[Datum], name: str, title: str) -> Markup:
    """Return a column for each value; the drawing stretches to any width."""
    largest = max((datum.value or 0 for datum in data), default=0)
    frame = DrawingFrame(
        "columns", name, title, _columns_summary(data), max(1, len(data)) * _COLUMN_STEP, _COLUMNS_HEIGHT
    )
    marks = _columns(data, largest)
    return draw_frame(frame, marks, is_linked=any(datum.link for datum in data), is_stretched=True)


def _columns(data: Sequence[Datum], largest: int) -> Iterator[Markup]:
    last = max((place for place, datum in enumerate(data) if datum.link), default=None)
    for place, datum in enumerate(data):
        height = max(_LEAST_COLUMN, _COLUMNS_HEIGHT * datum.value / largest) if datum.value else 0
        x, width = place * _COLUMN_STEP + _COLUMN_GAP / 2, _COLUMN_STEP - _COLUMN_GAP
        # The whole height reacts to the pointer, since a low column is hard to hit.
        shape = draw_rect("room", place * _COLUMN_STEP, 0, _COLUMN_STEP, _COLUMNS_HEIGHT) + draw_rect(
            "column", x, _COLUMNS_HEIGHT - height, width, height
        )
        yield draw_mark(datum, shape, is_first=place == last)


def _columns_summary(data: Sequence[Datum]) -> str:
    known = [datum for datum in data if datum.value]
    if not known:
        return "nothing"
    most = max(known, key=lambda datum: datum.value or 0)
    return f"{len(data)} columns; the most in {most.label}; the last is {data[-1].label}"


WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_HOUR_STEP, _HOUR_CELL = 18, 15
_HOURS_LEFT, _HOURS_TOP = 32, 16
_HOURS = 24
_LABELLED = 3
"""Every third hour is labelled."""

HourAmounts = Mapping[tuple[int, int], int]
"""Amounts by weekday, 0 for Monday, and hour."""


def draw_hours(amounts: HourAmounts, name: str, title: str, label: Callable[[int], str]) -> Markup:
    """Return a grid of weekdays and hours, shaded by their amounts."""
    frame = DrawingFrame(
        "hours",
        name,
        title,
        _hours_summary(amounts, label),
        _HOURS_LEFT + _HOURS * _HOUR_STEP,
        _HOURS_TOP + 7 * _HOUR_STEP,
    )
    return draw_frame(frame, [*_hour_names(), *_cells(amounts, label)], is_linked=False)


def hour_name(weekday: int, hour: int) -> str:
    """Return the name of an hour: `Monday 09:00`."""
    return f"{WEEKDAYS[weekday]} {hour:02}:00"


def _hour_names() -> Iterator[Markup]:
    for hour in range(0, _HOURS, _LABELLED):
        yield draw_text("axis", _HOURS_LEFT + hour * _HOUR_STEP, _HOURS_TOP - 5, f"{hour:02}")
    for weekday, name in enumerate(WEEKDAYS):
        yield draw_text("axis", 0, _HOURS_TOP + weekday * _HOUR_STEP + _HOUR_CELL - 3, name[:3])


def _cells(amounts: HourAmounts, label: Callable[[int], str]) -> Iterator[Markup]:
    known = sorted(amount for amount in amounts.values() if amount)
    for weekday in range(len(WEEKDAYS)):
        for hour in range(_HOURS):
            amount = amounts.get((weekday, hour), 0)
            shape = draw_rect(
                f"heat-{shade_level(amount, known)}",
                _HOURS_LEFT + hour * _HOUR_STEP,
                _HOURS_TOP + weekday * _HOUR_STEP,
                _HOUR_CELL,
                _HOUR_CELL,
            )
            yield draw_mark(Datum(amount, f"{hour_name(weekday, hour)}: {label(amount)}"), shape)


def _hours_summary(amounts: HourAmounts, label: Callable[[int], str]) -> str:
    if not any(amounts.values()):
        return "nothing at any hour"
    most = max(amounts, key=lambda place: amounts[place])
    return f"the most on {hour_name(*most)}: {label(amounts[most])}"


_WIDTH, _LENGTH_HEIGHT = 100, 8
_LEAST_LENGTH = 0.5


def draw_length(value: int | None, largest: int) -> Markup:
    """Return a bar as long as `value` is to `largest`; any value above zero is visible."""
    long = max(_LEAST_LENGTH, _WIDTH * min(value, largest) / largest) if value and largest > 0 else 0
    return _draw_bar("length", draw_rect("column", 0, 0, long, _LENGTH_HEIGHT))


def draw_shares(parts: Mapping[str, int]) -> Markup:
    """Return a bar that is divided into the shares of its parts; their names are CSS classes."""
    whole = sum(parts.values())
    done, marks = 0, Markup("")
    for name, value in parts.items():
        if value > 0:
            marks += draw_rect(
                f"part {name}", _WIDTH * done / whole, 0, _WIDTH * value / whole, _LENGTH_HEIGHT
            )
            done += value
    return _draw_bar("shares", marks)


def _draw_bar(kind: str, marks: Markup) -> Markup:
    return Markup(
        '<svg xmlns="{}" class="chart {}" viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true">{}</svg>'
    ).format(SPACE, kind, _WIDTH, _LENGTH_HEIGHT, marks)


_SPARK_STEP, _SPARK_GAP, _SPARK_HEIGHT = 4, 1, 20
_LEAST_SPARK = 2
_NOTHING = 1


def draw_sparkline(values: Sequence[int], label: str) -> Markup:
    """Return a column for each value, the largest the highest; only zero has the lowest."""
    return Markup(
        '<svg xmlns="{}" class="chart sparkline" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">{}</svg>'
    ).format(
        SPACE, *[max(1, len(values)) * _SPARK_STEP, _SPARK_HEIGHT] * 2, show_control_chars(label), Markup("").join(_spark_columns(values))
    )  # fmt: skip


def _spark_columns(values: Sequence[int]) -> Iterator[Markup]:
    largest = max(values, default=0)
    for place, value in enumerate(values):
        height = max(_LEAST_SPARK, _SPARK_HEIGHT * value / largest) if value > 0 else _NOTHING
        kind = "column" if value > 0 else "nothing"
        yield draw_rect(kind, place * _SPARK_STEP, _SPARK_HEIGHT - height, _SPARK_STEP - _SPARK_GAP, height)
