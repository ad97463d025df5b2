"""How something went up and down, no larger than a word."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from retold.export.html.signs import visible
from retold.export.svg.drawing import SPACE, rect

_STEP, _GAP, _HEIGHT = 4, 1, 20
_LEAST = 2
_NOTHING = 1


def sparkline(values: Sequence[int], told: str) -> Markup:
    """Return a column for each value, the largest the highest; only nothing is as low as nothing."""
    return Markup(
        '<svg xmlns="{}" class="chart sparkline" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">{}</svg>'
    ).format(
        SPACE, *[max(1, len(values)) * _STEP, _HEIGHT] * 2, visible(told), Markup("").join(_columns(values))
    )  # fmt: skip


def _columns(values: Sequence[int]) -> Iterator[Markup]:
    largest = max(values, default=0)
    for place, value in enumerate(values):
        height = max(_LEAST, _HEIGHT * value / largest) if value > 0 else _NOTHING
        kind = "column" if value > 0 else "nothing"
        yield rect(kind, place * _STEP, _HEIGHT - height, _STEP - _GAP, height)
