"""The views that can be asked in SQL: which there are, and what their columns mean."""

from __future__ import annotations

from retold.archive.sql import VIEWS, columns_of, doc_of
from retold.model.tables import BOOL, FILES, INT, LONG, MONEY, STRING, STRINGS, TIME

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

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
