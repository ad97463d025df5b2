"""The files of one part: written beside those that are there, and put in their places when all are whole."""

import os
from collections.abc import Iterable
from contextlib import suppress
from io import BufferedWriter
from typing import Any

from pyarrow.parquet import ParquetWriter

from retold.lake.arrow import batch_of, schema_of
from retold.lake.folder import Folder, reach_disk
from retold.lake.manifest import Part
from retold.lake.rows import Row, rows_of
from retold.lake.told import RowSource, UnreadFile
from retold.model.tables import FILES, STRING, STRINGS, TABLES

IN_PATHS = 2
"""Columns that stand in the paths of files alone: agent and month."""
TEXT = 16 << 20
"""Bytes of files that are gathered for a row group, or characters of one that is larger."""
ROWS = 1 << 16
LEVEL = 2
"""Of zstd: 1 takes a fifth less time and a quarter more room, 3 a fifth more time and an eighth less room."""


UNIQUE = frozenset(("id", "call", "request", "message", "native_id", "parent", "child", "title", "summary", "first_prompt", "last_prompt"))  # fmt: skip
"""Texts that hardly ever occur twice, besides what was said: a dictionary of them would only take room."""


def write_part(folder: Folder, part: Part, told: Iterable[RowSource | UnreadFile]) -> dict[str, int]:
    """Write the files of a part, each whole before any takes its place; return their sizes, by table."""
    drafts = {table: PartDraft(folder, table, part) for table in TABLES}
    try:
        for one in told:
            for draft in drafts.values():
                draft.add(one)
        sizes = {table: draft.end() for table, draft in drafts.items()}
        for draft in drafts.values():
            draft.settle()
    except BaseException:  # Ctrl-C too
        for draft in drafts.values():
            draft.drop()
        raise
    return sizes


class PartDraft:
    """A table's file of a part, as far as it is written."""

    def __init__(self, folder: Folder, table: str, part: Part) -> None:
        self._folder, self._table, self._part = folder, table, part
        self._schema = schema_of(table, tuple(TABLES[table].names[IN_PATHS:]))
        self._rows: list[Row] = []
        self._size = 0
        self._path: str | None = None
        self._file: BufferedWriter | None = None
        self._writer: ParquetWriter | None = None

    def add(self, told: RowSource | UnreadFile) -> None:
        """Add the rows of a session."""
        rows = rows_of(self._table, told, IN_PATHS)
        size = _size(told)
        if size < TEXT and self._table != "tool_calls":
            self._size += size  # no table has more of it than its files, but for outputs that lie beside them
            self._rows += rows
            self._flush_if_full()
            return
        for row in rows:
            self._rows.append(row)
            self._size += sum(len(value) for value in row if isinstance(value, str))
            self._flush_if_full()

    def _flush_if_full(self) -> None:
        if self._rows and (self._size >= TEXT or len(self._rows) >= ROWS):
            self._flush()

    def _begun(self) -> tuple[str, BufferedWriter, ParquetWriter]:
        """Return where it is written, the file and who writes it; opened if they are not yet."""
        path = self._path = self._path or self._folder.draft(self._table, self._part)
        file = self._file = self._file or self._folder.opened(path)
        if self._writer is None:
            self._writer = ParquetWriter(file, self._schema, **_options(self._table))
        return path, file, self._writer

    def _flush(self) -> None:
        _, _, writer = self._begun()
        writer.write_batch(batch_of(self._schema, self._rows), row_group_size=len(self._rows))
        self._rows, self._size = [], 0

    def end(self) -> int:
        """Let it reach the disk; return its size. One without rows is there as well: whoever asks finds the columns."""
        if self._rows:
            self._flush()
        path, file, writer = self._begun()
        writer.close()
        reach_disk(file)
        file.close()
        return os.stat(path).st_size

    def settle(self) -> None:
        """Put it in its place."""
        if self._path is not None:
            self._folder.settle(self._path, self._part)
            self._path = None

    def drop(self) -> None:
        """Remove what was written, unless it is in its place."""
        if self._path is not None:
            for half in (self._writer, self._file):
                with suppress(OSError, ValueError):  # what it has left to write may not fit, either
                    if half is not None:
                        half.close()
            self._folder.discard(self._path)  # closed before: else Windows would keep it


def _size(told: RowSource | UnreadFile) -> int:
    """Return the bytes of the files that something was read from."""
    return 0 if isinstance(told, UnreadFile) else sum(source.bytes for source in told.session.sources)


def _options(table: str) -> dict[str, Any]:
    """Return how a table is written: dictionaries for what repeats, statistics for what is looked for."""
    columns = TABLES[table].columns[IN_PATHS:]
    repeated = [
        column.name
        for column in columns
        if column.type == STRING and not column.is_said and column.name not in UNIQUE
    ]
    sought = [column.name for column in columns if not column.is_said and column.type not in (STRINGS, FILES)]
    return {
        "compression": "zstd",
        "compression_level": LEVEL,
        "use_dictionary": repeated,
        "write_statistics": sought,
    }
