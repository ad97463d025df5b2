"""Numbers as lengths, beside the numbers themselves: only for whoever sees them."""

from collections.abc import Mapping

from markupsafe import Markup

from retold.export.svg.drawing import SPACE, rect

_WIDTH, _LENGTH_HEIGHT = 100, 8
_LEAST_LENGTH = 0.5


def length(value: int | None, largest: int) -> Markup:
    """Return a bar as long as `value` is to `largest`; whatever is more than nothing is seen."""
    long = max(_LEAST_LENGTH, _WIDTH * min(value, largest) / largest) if value and largest > 0 else 0
    return _drawn("length", rect("column", 0, 0, long, _LENGTH_HEIGHT))


def shares(parts: Mapping[str, int]) -> Markup:
    """Return one bar in which each part has its share; the class of a part is its name."""
    whole = sum(parts.values())
    done, marks = 0, Markup("")
    for name, value in parts.items():
        if value > 0:
            marks += rect(f"part {name}", _WIDTH * done / whole, 0, _WIDTH * value / whole, _LENGTH_HEIGHT)
            done += value
    return _drawn("shares", marks)


def _drawn(kind: str, marks: Markup) -> Markup:
    return Markup(
        '<svg xmlns="{}" class="chart {}" viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true">{}</svg>'
    ).format(SPACE, kind, _WIDTH, _LENGTH_HEIGHT, marks)
