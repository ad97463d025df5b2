"""The hours of a week: the more in one, the darker it is."""

from collections.abc import Callable, Iterator, Mapping

from markupsafe import Markup

from retold.export.heatmap import level
from retold.export.svg.drawing import Datum, DrawingFrame, framed, mark, rect, text

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_HOUR_STEP, _HOUR_CELL = 18, 15
_HOURS_LEFT, _HOURS_TOP = 32, 16
_HOURS = 24
_NAMED = 3
"""Every third hour has its name."""

Amounts = Mapping[tuple[int, int], int]
"""By weekday, from 0 for Monday, and hour."""


def hours(amounts: Amounts, name: str, title: str, told: Callable[[int], str]) -> Markup:
    """Return a week by its hours."""
    frame = DrawingFrame(
        "hours",
        name,
        title,
        _hours_summary(amounts, told),
        _HOURS_LEFT + _HOURS * _HOUR_STEP,
        _HOURS_TOP + 7 * _HOUR_STEP,
    )
    return framed(frame, [*_hour_names(), *_cells(amounts, told)], is_linked=False)


def hour_name(weekday: int, hour: int) -> str:
    """Return what an hour is called."""
    return f"{WEEKDAYS[weekday]} {hour:02}:00"


def _hour_names() -> Iterator[Markup]:
    for hour in range(0, _HOURS, _NAMED):
        yield text("axis", _HOURS_LEFT + hour * _HOUR_STEP, _HOURS_TOP - 5, f"{hour:02}")
    for weekday, name in enumerate(WEEKDAYS):
        yield text("axis", 0, _HOURS_TOP + weekday * _HOUR_STEP + _HOUR_CELL - 3, name[:3])


def _cells(amounts: Amounts, told: Callable[[int], str]) -> Iterator[Markup]:
    known = sorted(amount for amount in amounts.values() if amount)
    for weekday in range(len(WEEKDAYS)):
        for hour in range(_HOURS):
            amount = amounts.get((weekday, hour), 0)
            shape = rect(
                f"heat-{level(amount, known)}",
                _HOURS_LEFT + hour * _HOUR_STEP,
                _HOURS_TOP + weekday * _HOUR_STEP,
                _HOUR_CELL,
                _HOUR_CELL,
            )
            yield mark(Datum(amount, f"{hour_name(weekday, hour)}: {told(amount)}"), shape)


def _hours_summary(amounts: Amounts, told: Callable[[int], str]) -> str:
    if not any(amounts.values()):
        return "nothing at any hour"
    most = max(amounts, key=lambda place: amounts[place])
    return f"the most on {hour_name(*most)}: {told(amounts[most])}"
