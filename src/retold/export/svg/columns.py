"""Amounts over time as columns; the words below and beside them are the page's own, which fits them to its width."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from retold.export.svg.drawing import Datum, Frame, framed, mark, rect

_STEP, _GAP, _HEIGHT = 10, 2, 100
_LEAST = 1.5
"""Whatever is more than nothing is seen."""


def columns(data: Sequence[Datum], name: str, title: str) -> Markup:
    """Return a column for each number, the largest the highest; the picture takes any width."""
    largest = max((datum.value or 0 for datum in data), default=0)
    frame = Frame("columns", name, title, _summary(data), max(1, len(data)) * _STEP, _HEIGHT)
    marks = _columns(data, largest)
    return framed(frame, marks, is_linked=any(datum.link for datum in data), is_stretched=True)


def _columns(data: Sequence[Datum], largest: int) -> Iterator[Markup]:
    last = max((place for place, datum in enumerate(data) if datum.link), default=None)
    for place, datum in enumerate(data):
        height = max(_LEAST, _HEIGHT * datum.value / largest) if datum.value else 0
        x, width = place * _STEP + _GAP / 2, _STEP - _GAP
        # The whole height can be pointed at: nobody finds a column that is a line thin.
        shape = rect("room", place * _STEP, 0, _STEP, _HEIGHT) + rect(
            "column", x, _HEIGHT - height, width, height
        )
        yield mark(datum, shape, is_first=place == last)


def _summary(data: Sequence[Datum]) -> str:
    known = [datum for datum in data if datum.value]
    if not known:
        return "nothing"
    most = max(known, key=lambda datum: datum.value or 0)
    return f"{len(data)} columns; the most in {most.told}; the last is {data[-1].told}"
