"""Rows of a name, numbers and a bar that fit the terminal: the least important columns are left out first."""

from __future__ import annotations

from retold.export.text.numbers import bar
from retold.export.text.table import clean, end_of, fitted, shortened, width_of

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Pieces = list[tuple[str, str]]


GAP = 2
NAME, WIDEST_NAME = 16, 48
"""What a name is given before any but the most important column, and what at most."""
NARROWEST_BAR, BAR, WIDEST_BAR = 4, 8, 24
BAR_RANK = 2
_UNKNOWN = ("", "-")
_NOTHING = (*_UNKNOWN, "0", "~0")


class GridColumn:
    """A column of numbers."""

    __slots__ = ("empty", "heading", "rank")

    def __init__(self, heading: str, rank: int, *, is_rare: bool = False) -> None:
        self.heading = heading
        self.rank = rank
        """Those with the highest are left out first."""
        self.empty = _NOTHING if is_rare else _UNKNOWN
        """What says so little that a column of it is left out; where a number is rare, 0 too."""


class GridRow:
    """A name with its numbers."""

    __slots__ = ("cells", "is_path", "name", "style", "weight")

    def __init__(
        self,
        name: str,
        cells: Iterable[str],
        weight: int | None = None,
        style: str = "plain",
        *,
        is_path: bool = False,
    ) -> None:
        self.name = clean(name)
        self.cells = tuple(cells)
        """One for each column; none at all for words that stand between rows."""
        self.weight = weight
        """How long the bar is, against those of other rows; None for no bar."""
        self.style = style
        self.is_path = is_path


class Layout:
    """What of a table fits a width."""

    __slots__ = ("bar", "hangs", "name", "places", "widths")

    def __init__(self, columns: Sequence[GridColumn], rows: Sequence[GridRow], width: int, name: int) -> None:
        cells = [[row.cells[place] for row in rows] for place in range(len(columns))]
        self.hangs = [any(cell.endswith("+") for cell in column) for column in cells]
        """Whether a + stands outside its column, so that the numbers above and below it stay in line."""
        self.widths = [
            max([len(column.heading), *[len(_hung(cell, hangs=hangs)) for cell in told]])
            for column, told, hangs in zip(columns, cells, self.hangs, strict=True)
        ]
        self.places: list[int] = []
        """Which columns are shown."""
        self.bar = 0
        longest = max([name, *[width_of(row.name) for row in rows]])
        narrow = min(longest, NAME)
        room = width - narrow
        for place in _order(columns, rows):
            needed = self.widths[place] if place >= 0 else min(BAR, max(NARROWEST_BAR, room - GAP))
            if GAP + needed > room:
                break
            room -= GAP + needed
            if place >= 0:
                self.places.append(place)
            else:
                self.bar = needed
        self.places.sort()
        self.name = max(1, min(longest, WIDEST_NAME, narrow + room))
        self.bar = min(WIDEST_BAR, self.bar + room - (self.name - narrow)) if self.bar else 0


def _order(columns: Sequence[GridColumn], rows: Sequence[GridRow]) -> list[int]:
    """Return the places of what there is to be shown, the most important first; that of the bar is -1."""
    known = [
        (column.rank, place)
        for place, column in enumerate(columns)
        if any(row.cells[place] not in column.empty for row in rows)
    ]
    bars = [(BAR_RANK, -1)] if any(row.weight for row in rows) else []
    return [place for _, place in sorted([*known, *bars])]


def grid(
    heading: str, columns: Sequence[GridColumn], rows: Sequence[GridRow], width: int
) -> Iterator[Pieces]:
    """Yield the headings and a line for each row, in pieces with their styles; none is wider than `width`."""
    numbered = [row for row in rows if row.cells]
    layout = Layout(columns, numbered, width, len(heading))
    largest = max([row.weight or 0 for row in rows], default=0)
    yield [
        ("faint", shortened(_line(heading, [column.heading for column in columns], layout).rstrip(), width))
    ]
    for row in rows:
        if not row.cells:
            yield [(row.style, shortened(row.name, width))]
            continue
        shown = end_of(row.name, layout.name) if row.is_path else row.name
        line = _line(shown, row.cells, layout)
        length = bar(row.weight, largest, layout.bar)
        yield [(row.style, line + " " * GAP), ("bar", length)] if length else [(row.style, line.rstrip())]


def _line(name: str, cells: Sequence[str], layout: Layout) -> str:
    numbers = [
        f"{_hung(cells[place], hangs=layout.hangs[place]):>{GAP + layout.widths[place]}}"
        for place in layout.places
    ]
    return fitted(name, layout.name) + "".join(numbers)


def _hung(cell: str, *, hangs: bool) -> str:
    return f"{cell} " if hangs and not cell.endswith("+") else cell
