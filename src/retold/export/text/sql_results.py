"""Results of `retold sql` as tables, JSON lines and CSV, and the list of views and columns."""

from __future__ import annotations

from itertools import chain, islice

from retold.archive.sql import VIEWS, view_columns, view_doc
from retold.export.text.formatting import (
    LONGEST_NAME,
    PIECE_LENGTH,
    clean_name,
    csv_cell,
    csv_cell_pieces,
    escape_formula,
    fit_width,
    split_text,
    text_width,
)
from retold.model.tables import BOOL, FILES, INT, LONG, MONEY, STRING, STRINGS, TIME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from retold.export.text.formatting import StyledLine

    Value = int | float | str | bytes | None
    Row = Sequence[Value]


SAMPLE = 200
"""Rows that decide the widths of columns, before the first is written; the rows behind them must fit."""
ROOM = 4 << 20
"""Characters of the sample, at most; one row may have more."""
GAP = 2
NARROWEST = 8
"""Least width of a text column: if not all columns have it, each row is written on several lines."""
NULL = "NULL"
_TEXTS, _NUMBERS = (str, bytes), (int, float)
_BYTES = 200
"""Bytes of a blob that are shown."""


def unique_names(names: Sequence[str]) -> list[str]:
    """Return column names with the repeated ones numbered: `total`, `total_2`."""
    unique: dict[str, None] = {}
    for name in names:
        one, number = name, 1
        while one in unique:
            number += 1
            one = f"{name}_{number}"
        unique[one] = None
    return list(unique)


def json_line(names: Sequence[str], row: Row) -> bytes:
    """Return a row as a JSON object; bytes are in hex, and an infinity, which JSON cannot express, is null."""
    return _json({name: _plain(value) for name, value in zip(names, row, strict=True)})


def json_pieces(names: Sequence[str], row: Row) -> Iterator[bytes]:
    """Yield a row as a JSON object, a long row in pieces: escaped, it takes six times as much."""
    if not _is_long(row):
        yield json_line(names, row)
        return
    sign = b"{"
    for name, value in zip(names, row, strict=True):
        yield sign + _json(name) + b":"
        sign = b","
        plain = _plain(value)
        if isinstance(plain, str):
            yield b'"'
            yield from (_json(piece)[1:-1] for piece in split_text(plain))
            yield b'"'
        else:
            yield _json(plain)
    yield b"}"


def _json(value: object) -> bytes:
    import json  # noqa: PLC0415 - tables do without

    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _is_long(row: Row) -> bool:
    for value in row:  # noqa: SIM110 - called for each of millions of rows, where `any` takes twice as long
        if isinstance(value, _TEXTS) and len(value) > PIECE_LENGTH:
            return True
    return False


def _plain(value: Value) -> Value:
    if isinstance(value, bytes):
        return value.hex()
    return None if isinstance(value, float) and value - value != 0 else value


def csv_line(row: Row) -> str:
    """Return a row as CSV, without its end: NULL is empty, bytes are in hex, and no text is a formula."""
    return ",".join(csv_cell(_csv_value(value)) for value in row) or '""'  # an empty line would be no row


def csv_pieces(row: Row) -> Iterator[str]:
    """Yield a row as CSV, a long row in pieces."""
    if not _is_long(row):
        yield csv_line(row)
        return
    for place, value in enumerate(row):
        if place:
            yield ","
        safe = _csv_value(value)
        yield from csv_cell_pieces(safe) if isinstance(safe, str) else [csv_cell(safe)]


def _csv_value(value: Value) -> Value:
    return escape_formula(value) if isinstance(value, str) else _plain(value)


def format_rows(names: Sequence[str], rows: Iterable[Row], width: int) -> Iterator[StyledLine]:
    """Yield the headings and a line for each row, as the rows come; text cells are cut to fit."""
    rows = iter(rows)
    sample = _read_sample(rows)
    columns = [ResultColumn(name, [row[place] for row in sample]) for place, name in enumerate(names)]
    every = chain(sample, map(_clip_row, rows))
    if not _fit_columns(columns, width - GAP * (len(columns) - 1)):
        yield from _in_lines(columns, every, width)
        return
    yield [("faint", "".join(_join_cells([column.heading() for column in columns])))]
    for row in every:
        cells = _join_cells([column.format_cell(value) for column, value in zip(columns, row, strict=True)])
        yield [
            ("plain" if value is not None else "faint", cell) for cell, value in zip(cells, row, strict=True)
        ]


def _clip_row(row: Row) -> Row:
    """Return a row with its values as far as they are ever shown, since sampled rows stay in memory."""
    if not _is_long(row):
        return row
    return [value[: LONGEST_NAME + 1] if isinstance(value, str | bytes) else value for value in row]


def _read_sample(rows: Iterator[Row]) -> list[Row]:
    sample: list[Row] = []
    size = 0
    for row in islice(rows, SAMPLE):
        sample.append(_clip_row(row))
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if size > ROOM:
            break
    return sample


class ResultColumn:
    """A column of a table: its width, and the side on which its cells stand."""

    __slots__ = ("is_number", "least", "name", "width")

    def __init__(self, name: str, sample: Sequence[Value]) -> None:
        self.name = clean_name(name)
        known = [value for value in sample if value is not None]
        self.is_number = bool(known) and all(isinstance(value, int | float) for value in known)
        self.width = max([text_width(self.name), *(text_width(format_value(value)) for value in sample)])
        numbers = [len(format_value(value)) for value in known if isinstance(value, _NUMBERS)]
        self.least = self.width if self.is_number else max(numbers, default=0)

    def heading(self) -> str:
        """Return the name, aligned as the cells are."""
        return self._align(fit_width(self.name, self.width).rstrip())

    def format_cell(self, value: Value) -> str:
        """Return a cell, aligned; a number is never cut."""
        if not self.is_number and isinstance(value, _TEXTS):
            return fit_width(format_value(value), self.width)
        return self._align(_cut(value, self.width))

    def _align(self, text: str) -> str:
        room = " " * (self.width - text_width(text))
        return room + text if self.is_number else text + room


def _cut(value: Value, width: int) -> str:
    text = format_value(value)
    return fit_width(text, width).rstrip() if isinstance(value, _TEXTS) else text


def format_value(value: Value) -> str:
    """Return a value on one line."""
    match value:
        case None:
            return NULL
        case str():
            return clean_name(value) if value and not value.isspace() else ""
        case bytes():
            return f"x'{value[:_BYTES].hex()}'"
        case float():
            return f"{value:.15g}" if value - value != 0 or value % 1 else str(value)
    return str(value)


def _fit_columns(columns: Sequence[ResultColumn], room: int) -> bool:
    """Narrow the widest text columns until all columns fit; return False if they cannot fit."""
    most = max(column.width for column in columns)
    while sum(column.width for column in columns) > room:
        most -= 1
        if most < NARROWEST:
            return False
        for column in columns:
            column.width = max(column.least, min(column.width, most))
    return True


def _join_cells(cells: Sequence[str]) -> list[str]:
    *others, last = cells
    return [*(cell + " " * GAP for cell in others), last.rstrip()]


def _in_lines(columns: Sequence[ResultColumn], rows: Iterable[Row], width: int) -> Iterator[StyledLine]:
    """Yield each row as several lines, with a name and a value on each."""
    widest = min(max(text_width(column.name) for column in columns), width // 2)
    room = max(NARROWEST, width - widest - GAP)
    for place, row in enumerate(rows):
        if place:
            yield [("plain", "")]
        for column, value in zip(columns, row, strict=True):
            name = fit_width(column.name, widest) + " " * GAP
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
"""Types in SQLite. Times are text such as `2026-01-27T15:21:00.000Z`, and lists are JSON text."""
_INDENT = 2


def view_rows() -> Iterator[Sequence[Any]]:
    """Yield the headings, and a row for each view."""
    yield ("view", "row")
    yield from ((view, view_doc(view)) for view in VIEWS)


def column_rows(view: str) -> Iterator[Sequence[Any]]:
    """Yield the headings, and a row for each column of a view."""
    yield ("view", "column", "type", "nullable", "meaning")
    for column in view_columns(view):
        yield (view, column.name, KINDS[column.type], int(column.is_nullable), column.doc)


def view_lines(width: int) -> Iterator[str]:
    """Yield the views, each with what a row of it is."""
    return _definitions([(view, view_doc(view)) for view in VIEWS], width)


def column_lines(view: str, width: int) -> Iterator[str]:
    """Yield the meaning of a view, and of each of its columns."""
    from textwrap import wrap  # noqa: PLC0415 - a query does without

    yield from wrap(view_doc(view), max(20, width))
    yield ""
    columns = [(column.name, f"{KINDS[column.type]}: {column.doc}") for column in view_columns(view)]
    yield from _definitions(columns, width)


def _definitions(rows: list[tuple[str, str]], width: int) -> Iterator[str]:
    from textwrap import wrap  # noqa: PLC0415 - a query does without

    widest = max(len(name) for name, _ in rows) + _INDENT
    for name, text in rows:
        first, *others = wrap(text, max(20, width - widest))
        yield name.ljust(widest) + first
        yield from (" " * widest + line for line in others)
