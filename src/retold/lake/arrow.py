"""Schemas and batches of the tables in Arrow."""

from collections.abc import Iterable, Sequence
from functools import cache

import pyarrow as pa

from retold.model.report import PICOS
from retold.model.tables import (
    BOOL,
    FILES,
    INT,
    LONG,
    MONEY,
    STRING,
    STRINGS,
    TABLES,
    TIME,
    VERSION,
    Column,
)

MONEY_DIGITS, MONEY_SCALE = 24, len(str(PICOS)) - 1
"""Digits of an amount in dollars: all of them, and those after the point."""
FILE = pa.struct(
    [
        pa.field("home", pa.string()),
        pa.field("path", pa.string(), nullable=False),
        pa.field("format", pa.string(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
    ]
)
"""A file that a session was read from."""
TYPES: dict[str, pa.DataType] = {
    STRING: pa.string(),
    INT: pa.int32(),
    LONG: pa.int64(),
    BOOL: pa.bool_(),
    TIME: pa.timestamp("us", tz="UTC"),
    MONEY: pa.decimal128(MONEY_DIGITS, MONEY_SCALE),
    STRINGS: pa.list_(pa.string()),
    FILES: pa.list_(FILE),
}


@cache
def schema_of(table: str, names: tuple[str, ...] | None = None) -> pa.Schema:
    """Return the schema of a table: all of its columns, or those in `names`, in that order."""
    columns = {column.name: column for column in TABLES[table].columns}
    chosen = columns if names is None else names
    about = {"retold.table": table, "retold.version": str(VERSION), "comment": TABLES[table].doc}
    return pa.schema([_field(columns[name]) for name in chosen], metadata=about)


def _field(column: Column) -> pa.Field:
    return pa.field(column.name, TYPES[column.type], column.is_nullable, {"comment": column.doc})


def make_batch(schema: pa.Schema, rows: Sequence[Sequence[object]]) -> pa.RecordBatch:
    """Return rows, with values in the order of the schema, as one batch."""
    columns: Iterable[Sequence[object]] = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [_array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # a transcript may contain half of a surrogate pair, which is no text
        return pa.array([_as_text(value) for value in values], kind)


def _as_text(value: object) -> object:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case list() | tuple():
            return [_as_text(one) for one in value]
        case dict():
            return {name: _as_text(one) for name, one in value.items()}
    return value
