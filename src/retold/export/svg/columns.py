"""Amounts over time as columns; the words below and beside them are the page's own, which fits them to its width."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from retold.export.svg.drawing import Datum, DrawingFrame, framed, mark, rect

_COLUMN_STEP, _COLUMN_GAP, _COLUMNS_HEIGHT = 10, 2, 100
_LEAST_COLUMN = 1.5
"""Whatever is more than nothing is seen."""


def columns(data: Sequence[Datum], name: str, title: str) -> Markup:
    """Return a column for each number, the largest the highest; the picture takes any width."""
    largest = max((datum.value or 0 for datum in data), default=0)
    frame = DrawingFrame(
        "columns", name, title, _columns_summary(data), max(1, len(data)) * _COLUMN_STEP, _COLUMNS_HEIGHT
    )
    marks = _columns(data, largest)
    return framed(frame, marks, is_linked=any(datum.link for datum in data), is_stretched=True)


def _columns(data: Sequence[Datum], largest: int) -> Iterator[Markup]:
    last = max((place for place, datum in enumerate(data) if datum.link), default=None)
    for place, datum in enumerate(data):
        height = max(_LEAST_COLUMN, _COLUMNS_HEIGHT * datum.value / largest) if datum.value else 0
        x, width = place * _COLUMN_STEP + _COLUMN_GAP / 2, _COLUMN_STEP - _COLUMN_GAP
        # The whole height can be pointed at: nobody finds a column that is a line thin.
        shape = rect("room", place * _COLUMN_STEP, 0, _COLUMN_STEP, _COLUMNS_HEIGHT) + rect(
            "column", x, _COLUMNS_HEIGHT - height, width, height
        )
        yield mark(datum, shape, is_first=place == last)


def _columns_summary(data: Sequence[Datum]) -> str:
    known = [datum for datum in data if datum.value]
    if not known:
        return "nothing"
    most = max(known, key=lambda datum: datum.value or 0)
    return f"{len(data)} columns; the most in {most.told}; the last is {data[-1].told}"
