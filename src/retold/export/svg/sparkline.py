"""How something went up and down, no larger than a word."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from retold.export.html.signs import show_control_chars
from retold.export.svg.drawing import SPACE, rect

_SPARK_STEP, _SPARK_GAP, _SPARK_HEIGHT = 4, 1, 20
_LEAST_SPARK = 2
_NOTHING = 1


def sparkline(values: Sequence[int], told: str) -> Markup:
    """Return a column for each value, the largest the highest; only nothing is as low as nothing."""
    return Markup(
        '<svg xmlns="{}" class="chart sparkline" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">{}</svg>'
    ).format(
        SPACE, *[max(1, len(values)) * _SPARK_STEP, _SPARK_HEIGHT] * 2, show_control_chars(told), Markup("").join(_spark_columns(values))
    )  # fmt: skip


def _spark_columns(values: Sequence[int]) -> Iterator[Markup]:
    largest = max(values, default=0)
    for place, value in enumerate(values):
        height = max(_LEAST_SPARK, _SPARK_HEIGHT * value / largest) if value > 0 else _NOTHING
        kind = "column" if value > 0 else "nothing"
        yield rect(kind, place * _SPARK_STEP, _SPARK_HEIGHT - height, _SPARK_STEP - _SPARK_GAP, height)
