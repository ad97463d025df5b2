"""Rows that a query gives, as people, programs and spreadsheets get them."""

from __future__ import annotations

from itertools import chain, islice

from retold.archive.sql import VIEWS, columns_of, doc_of
from retold.export.text.escape import PIECE, cell, cell_pieces, harmless, pieces_of
from retold.export.text.table import LONGEST, clean, fitted, width_of
from retold.model.tables import BOOL, FILES, INT, LONG, MONEY, STRING, STRINGS, TIME

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from retold.export.text.grid import Pieces

    Value = int | float | str | bytes | None
    Row = Sequence[Value]


SAMPLE = 200
"""Rows that are looked at before the first is shown, to know how wide columns are; those behind them must fit in."""
ROOM = 4 << 20
"""Characters of them that are looked at, at most; one row may have more."""
GAP = 2
NARROWEST = 8
"""What a column of text is given at least: where not all have that, each row is told on lines of its own."""
NULL = "NULL"
_TEXTS, _NUMBERS = (str, bytes), (int, float)
_BYTES = 200
"""How much of a blob is shown."""


def unique_names(names: Sequence[str]) -> list[str]:
    """Return the names of columns, of which a query may give several the same: `total`, `total_2`."""
    told: dict[str, None] = {}
    for name in names:
        one, number = name, 1
        while one in told:
            number += 1
            one = f"{name}_{number}"
        told[one] = None
    return list(told)


def json_line(names: Sequence[str], row: Row) -> bytes:
    """Return a row as an object; bytes are told in hex, and an infinity, which JSON has none of, is null."""
    return _json({name: _plain(value) for name, value in zip(names, row, strict=True)})


def json_pieces(names: Sequence[str], row: Row) -> Iterator[bytes]:
    """Yield a row as an object, a long one bit by bit: escaped, it takes six times as much."""
    if not _is_long(row):
        yield json_line(names, row)
        return
    sign = b"{"
    for name, value in zip(names, row, strict=True):
        yield sign + _json(name) + b":"
        sign = b","
        told = _plain(value)
        if isinstance(told, str):
            yield b'"'
            yield from (_json(piece)[1:-1] for piece in pieces_of(told))
            yield b'"'
        else:
            yield _json(told)
    yield b"}"


def _json(value: object) -> bytes:
    import json  # noqa: PLC0415 - tables do without

    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _is_long(row: Row) -> bool:
    for value in row:  # noqa: SIM110 - each of millions of rows is asked, which takes `any` twice as long
        if isinstance(value, _TEXTS) and len(value) > PIECE:
            return True
    return False


def _plain(value: Value) -> Value:
    if isinstance(value, bytes):
        return value.hex()
    return None if isinstance(value, float) and value - value != 0 else value


def csv_line(row: Row) -> str:
    """Return a row as CSV, without its end: NULL is empty, bytes are told in hex, and no text is a formula."""
    return ",".join(cell(_unformed(value)) for value in row) or '""'  # an empty line would be no row


def csv_pieces(row: Row) -> Iterator[str]:
    """Yield a row as CSV, a long one bit by bit."""
    if not _is_long(row):
        yield csv_line(row)
        return
    for place, value in enumerate(row):
        if place:
            yield ","
        told = _unformed(value)
        yield from cell_pieces(told) if isinstance(told, str) else [cell(told)]


def _unformed(value: Value) -> Value:
    return harmless(value) if isinstance(value, str) else _plain(value)


def table(names: Sequence[str], rows: Iterable[Row], width: int) -> Iterator[Pieces]:
    """Yield the headings and a line for each row, as they come; cells of text are cut to fit."""
    coming = iter(rows)
    first = _sampled(coming)
    columns = [ResultColumn(name, [row[place] for row in first]) for place, name in enumerate(names)]
    every = chain(first, map(_begun, coming))
    if not _narrowed(columns, width - GAP * (len(columns) - 1)):
        yield from _apart(columns, every, width)
        return
    yield [("faint", "".join(_line([column.heading() for column in columns])))]
    for row in every:
        told = _line([column.placed(value) for column, value in zip(columns, row, strict=True)])
        yield [
            ("plain" if value is not None else "faint", piece) for piece, value in zip(told, row, strict=True)
        ]


def _begun(row: Row) -> Row:
    """Return a row with as much of its values as is ever shown: rows are held, and may be long."""
    if not _is_long(row):
        return row
    return [value[: LONGEST + 1] if isinstance(value, str | bytes) else value for value in row]


def _sampled(rows: Iterator[Row]) -> list[Row]:
    """Return the first rows: not many, and not much."""
    found: list[Row] = []
    size = 0
    for row in islice(rows, SAMPLE):
        found.append(_begun(row))
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if size > ROOM:
            break
    return found


class ResultColumn:
    """A column of a table: how wide it is, and on which side its cells stand."""

    __slots__ = ("is_number", "least", "name", "width")

    def __init__(self, name: str, sample: Sequence[Value]) -> None:
        self.name = clean(name)
        known = [value for value in sample if value is not None]
        self.is_number = bool(known) and all(isinstance(value, int | float) for value in known)
        self.width = max([width_of(self.name), *(width_of(shown(value)) for value in sample)])
        numbers = [len(shown(value)) for value in known if isinstance(value, _NUMBERS)]
        self.least = self.width if self.is_number else max(numbers, default=0)

    def heading(self) -> str:
        """Return the name, on the side of the cells."""
        return self._aside(fitted(self.name, self.width).rstrip())

    def placed(self, value: Value) -> str:
        """Return a cell, on its side of the column; a number is never cut, wherever it stands."""
        if not self.is_number and isinstance(value, _TEXTS):
            return fitted(shown(value), self.width)
        return self._aside(_cut(value, self.width))

    def _aside(self, text: str) -> str:
        room = " " * (self.width - width_of(text))
        return room + text if self.is_number else text + room


def _cut(value: Value, width: int) -> str:
    told = shown(value)
    return fitted(told, width).rstrip() if isinstance(value, _TEXTS) else told


def shown(value: Value) -> str:
    """Return a value on one line."""
    match value:
        case None:
            return NULL
        case str():
            return clean(value) if value and not value.isspace() else ""
        case bytes():
            return f"x'{value[:_BYTES].hex()}'"
        case float():
            return f"{value:.15g}" if value - value != 0 or value % 1 else str(value)
    return str(value)


def _narrowed(columns: Sequence[ResultColumn], room: int) -> bool:
    """Take from the widest columns of text until all fit; False if they cannot."""
    most = max(column.width for column in columns)
    while sum(column.width for column in columns) > room:
        most -= 1
        if most < NARROWEST:
            return False
        for column in columns:
            column.width = max(column.least, min(column.width, most))
    return True


def _line(cells: Sequence[str]) -> list[str]:
    *others, last = cells
    return [*(one + " " * GAP for one in others), last.rstrip()]


def _apart(columns: Sequence[ResultColumn], rows: Iterable[Row], width: int) -> Iterator[Pieces]:
    """Yield each row as lines of a name and a value."""
    widest = min(max(width_of(column.name) for column in columns), width // 2)
    room = max(NARROWEST, width - widest - GAP)
    for place, row in enumerate(rows):
        if place:
            yield [("plain", "")]
        for column, value in zip(columns, row, strict=True):
            name = fitted(column.name, widest) + " " * GAP
            yield [("faint", name), ("plain" if value is not None else "faint", _cut(value, room))]


KINDS = {
    STRING: "text",
    INT: "integer",
    LONG: "integer",
    BOOL: "0 or 1",
    TIME: "time",
    MONEY: "real",
    STRINGS: "JSON",
    FILES: "JSON",
}
"""What SQLite holds for the types of tables: times are text, such as `2026-01-27T15:21:00.000Z`, and so are lists."""
_INDENT = 2


def view_rows() -> Iterator[Sequence[Any]]:
    """Yield headings, and a row for each view."""
    yield ("view", "row")
    yield from ((view, doc_of(view)) for view in VIEWS)


def column_rows(view: str) -> Iterator[Sequence[Any]]:
    """Yield headings, and a row for each column of a view."""
    yield ("view", "column", "type", "nullable", "meaning")
    for column in columns_of(view):
        yield (view, column.name, KINDS[column.type], int(column.is_nullable), column.doc)


def view_lines(width: int) -> Iterator[str]:
    """Yield the views, and what a row of each is."""
    return _listed([(view, doc_of(view)) for view in VIEWS], width)


def column_lines(view: str, width: int) -> Iterator[str]:
    """Yield the columns of a view, and what each means."""
    from textwrap import wrap  # noqa: PLC0415 - a query does without

    yield from wrap(doc_of(view), max(20, width))
    yield ""
    told = [(column.name, f"{KINDS[column.type]}: {column.doc}") for column in columns_of(view)]
    yield from _listed(told, width)


def _listed(rows: list[tuple[str, str]], width: int) -> Iterator[str]:
    from textwrap import wrap  # noqa: PLC0415 - a query does without

    widest = max(len(name) for name, _ in rows) + _INDENT
    for name, told in rows:
        first, *others = wrap(told, max(20, width - widest))
        yield name.ljust(widest) + first
        yield from _indented(others, widest)


def _indented(lines: Iterable[str], by: int) -> Iterator[str]:
    return (" " * by + line for line in lines)
