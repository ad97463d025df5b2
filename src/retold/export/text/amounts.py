"""Amounts as text: money, shares, durations and counts, bars of them, and rows of them that fit a width.

An amount that is unknown is shown as unknown, never as zero.
"""

from __future__ import annotations

from retold.export.text.formatting import clean_name, fit_width, shorten, shorten_path, text_width
from retold.model.report import PICOS, format_dollars

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from decimal import Decimal

    from retold.export.text.formatting import StyledLine


UNKNOWN = "-"
_CENT = PICOS // 100
_TEN_THOUSANDTH = PICOS // 10_000
_MILLION = 10**6
_TENTH, _TEN, _MINUTE, _HOUR = 0.1, 10, 60, 3600


def format_money(picos: int | None) -> str:
    """Return an amount to the cent, or to four places if it is less than a cent."""
    if picos is None:
        return UNKNOWN
    if picos == 0 or picos >= _CENT:
        return "$" + _to_places(picos, 2)
    return "$" + _to_places(picos, 4) if picos >= _TEN_THOUSANDTH else "<$0.0001"


def format_usd(dollars: Decimal | None) -> str:
    """Return an amount of dollars as `format_money` does."""
    return format_money(None if dollars is None else int(dollars * PICOS))


def format_rate(picos_per_token: int) -> str:
    """Return the price of a million tokens: `$1.25/M`."""
    return f"${format_dollars(picos_per_token * _MILLION)}/M"


def format_share(part: int | None, whole: int | None) -> str:
    """Return a percentage; 0 % and 100 % mean none and all."""
    if part is None or not whole:
        return UNKNOWN
    if 0 < part * 100 < whole:
        return "<1%"
    return ">99%" if whole * 99 < part * 100 < whole * 100 else f"{round(part * 100 / whole)}%"


def format_duration(seconds: float | None) -> str:
    """Return a duration: `20ms`, `0.8s`, `45s`, `12m`, `3h 07m`."""
    if seconds is None:
        return UNKNOWN
    if 0 < seconds < _TENTH:
        return f"{round(seconds * 1000)}ms" if seconds >= _TENTH / 100 else "<1ms"
    if 0 < seconds < _TEN:
        return f"{seconds:.1f}s"
    if round(seconds) < _MINUTE:
        return f"{round(seconds)}s"
    minutes = round(seconds / _MINUTE)
    if minutes < _HOUR // _MINUTE:
        return f"{minutes}m"
    return f"{minutes // 60:,}h {minutes % 60:02d}m"


def format_count(number: int | None) -> str:
    """Return a whole number with thousands separators."""
    return UNKNOWN if number is None else f"{number:,}"


def _to_places(picos: int, places: int) -> str:
    unit = PICOS // 10**places
    whole, rest = divmod(_divide_rounded(picos, unit), 10**places)
    return f"{whole:,}.{rest:0{places}d}"


def _divide_rounded(number: int, divisor: int) -> int:
    """Divide whole numbers of any size, to the nearest."""
    return (2 * number + divisor) // (2 * divisor)


EIGHTHS = " ▏▎▍▌▋▊▉█"
HEIGHTS = "▁▂▃▄▅▆▇█"
UNKNOWN_BAR = "?"


def draw_bar(value: int | None, largest: int, width: int) -> str:
    """Return a bar as long as `value` is to `largest`, which fills `width`; any value above zero is visible."""
    if not value or value < 0 or largest <= 0 or width <= 0:
        return ""
    whole, rest = divmod(max(1, _divide_rounded(min(value, largest) * width * 8, largest)), 8)
    return EIGHTHS[-1] * whole + (EIGHTHS[rest] if rest else "")


def draw_sparkline(values: Sequence[int | None]) -> str:
    """Return a column for each value, the largest the highest; only zero has the lowest."""
    largest = max((value for value in values if value is not None), default=0)
    return "".join([_spark_column(value, largest) for value in values])


def _spark_column(value: int | None, largest: int) -> str:
    if value is None:
        return UNKNOWN_BAR
    if value <= 0:
        return HEIGHTS[0]
    return HEIGHTS[max(1, _divide_rounded(value * (len(HEIGHTS) - 1), largest))]


GAP = 2
NAME, WIDEST_NAME = 16, 48
"""Width of the names: before any but the most important column is placed, and at most."""
NARROWEST_BAR, BAR, WIDEST_BAR = 4, 8, 24
BAR_RANK = 2
_EMPTY = ("", UNKNOWN)
_ZERO = (*_EMPTY, "0", "~0")


class GridColumn:
    """A column of numbers. The columns with the highest ranks are left out first.

    A column that has only empty cells is left out; so is one with zeros alone, if it is for rare events.
    """

    __slots__ = ("empty", "heading", "rank")

    def __init__(self, heading: str, rank: int, *, is_rare: bool = False) -> None:
        self.heading = heading
        self.rank = rank
        self.empty = _ZERO if is_rare else _EMPTY


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
        self.name = clean_name(name)
        self.cells = tuple(cells)
        """One for each column; none for a line of text between rows."""
        self.weight = weight
        """Length of the bar, relative to those of other rows; None for no bar."""
        self.style = style
        self.is_path = is_path


class GridLayout:
    """The columns that fit a width, and their widths."""

    __slots__ = ("bar", "hangs", "name", "places", "widths")

    def __init__(self, columns: Sequence[GridColumn], rows: Sequence[GridRow], width: int, name: int) -> None:
        cells = [[row.cells[place] for row in rows] for place in range(len(columns))]
        self.hangs = [any(cell.endswith("+") for cell in column) for column in cells]
        """Whether a + stands outside its column, so that the numbers above and below it stay in line."""
        self.widths = [
            max([len(column.heading), *[len(_pad_for_plus(cell, hangs=hangs)) for cell in column_cells]])
            for column, column_cells, hangs in zip(columns, cells, self.hangs, strict=True)
        ]
        self.places: list[int] = []
        """Indexes of the columns that are shown."""
        self.bar = 0
        longest = max([name, *[text_width(row.name) for row in rows]])
        narrow = min(longest, NAME)
        room = width - narrow
        for place in _by_importance(columns, rows):
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


def _by_importance(columns: Sequence[GridColumn], rows: Sequence[GridRow]) -> list[int]:
    """Return the indexes of the columns that are not empty, the most important first; the bar has -1."""
    ranks = [
        (column.rank, place)
        for place, column in enumerate(columns)
        if any(row.cells[place] not in column.empty for row in rows)
    ]
    bars = [(BAR_RANK, -1)] if any(row.weight for row in rows) else []
    return [place for _, place in sorted([*ranks, *bars])]


def format_grid(
    heading: str, columns: Sequence[GridColumn], rows: Sequence[GridRow], width: int
) -> Iterator[StyledLine]:
    """Yield the headings and a line for each row; none is wider than `width`."""
    numbered = [row for row in rows if row.cells]
    layout = GridLayout(columns, numbered, width, len(heading))
    largest = max([row.weight or 0 for row in rows], default=0)
    headings = _grid_line(heading, [column.heading for column in columns], layout)
    yield [("faint", shorten(headings.rstrip(), width))]
    for row in rows:
        if not row.cells:
            yield [(row.style, shorten(row.name, width))]
            continue
        name = shorten_path(row.name, layout.name) if row.is_path else row.name
        line = _grid_line(name, row.cells, layout)
        bar = draw_bar(row.weight, largest, layout.bar)
        yield [(row.style, line + " " * GAP), ("bar", bar)] if bar else [(row.style, line.rstrip())]


def _grid_line(name: str, cells: Sequence[str], layout: GridLayout) -> str:
    numbers = [
        f"{_pad_for_plus(cells[place], hangs=layout.hangs[place]):>{GAP + layout.widths[place]}}"
        for place in layout.places
    ]
    return fit_width(name, layout.name) + "".join(numbers)


def _pad_for_plus(cell: str, *, hangs: bool) -> str:
    return f"{cell} " if hangs and not cell.endswith("+") else cell
