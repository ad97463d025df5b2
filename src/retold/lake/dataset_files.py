"""The folder of a dataset: only ours is written and removed in it, for its owner alone, and no link leads out of it."""

import os
import re
import secrets
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from io import BufferedWriter
from types import TracebackType
from typing import Any, Self

import msgspec
from pyarrow.parquet import ParquetWriter

from retold.archive.database import RetoldError
from retold.lake.arrow import batch_of, schema_of
from retold.lake.dataset_items import DatasetItem
from retold.lake.rows import Row, rows_of
from retold.lake.session_rows import RowSource, UnreadFile
from retold.model.tables import FILES, STRING, STRINGS, TABLES, UNKNOWN, VERSION
from retold.synchronization.update import is_taken

NAME = "retold.json"
FORMAT = "retold-dataset"


class Part(msgspec.Struct, frozen=True):
    """A part of the sessions of one agent and month: a file for each table that has rows of it."""

    agent: str
    month: str = UNKNOWN
    number: int = 0
    marks: Mapping[str, str] = {}
    """What is in it, by name; no mark while it is written."""
    files: Mapping[str, int] = {}
    """The bytes of its files, by table."""

    @property
    def place(self) -> tuple[str, str, int]:
        """Where it lies."""
        return self.agent, self.month, self.number


class Manifest(msgspec.Struct, frozen=True):
    """All parts, and how they were written."""

    is_redacted: bool
    seal: str
    """Of all that rows of any session depend on: the version, the options, the secrets that were known."""
    parts: tuple[Part, ...] = ()
    names: str = ""
    """Of the key by which sessions are named: those that another has named cannot be compared."""
    is_complete: bool = False
    """False while parts are written, and where somebody was stopped at that."""
    format: str = FORMAT
    version: int = VERSION
    """Of the tables."""


class NotOurs(Exception):  # noqa: N818 - it says what happened
    """The folder is not one that we may write a dataset to."""


def encoded(manifest: Manifest) -> bytes:
    """Return a manifest as it is written."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def decoded(data: bytes, path: str) -> Manifest:
    """Return what was written; raises NotOurs."""
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotOurs(f"{path}: no manifest of a dataset ({error})") from error
    if manifest.format != FORMAT:
        raise NotOurs(f"{path}: no manifest of a dataset")
    return manifest


LOCK = ".retold.lock"
_DRAFT = re.compile(r"\.(?:part-\d{4,}\.parquet|retold\.json)\.[0-9a-f]{16}$")
_PART = re.compile(r"part-(\d{4,})\.parquet$")
_AGENT, _MONTH = re.compile(r"agent=([\w-]+)$"), re.compile(r"month=([\w-]+)$")
_NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)  # Windows lacks it
Place = tuple[str, str, str, int]
"""A file: table, agent, month and number."""


class Folder:
    """Held by one at a time."""

    def __init__(self, path: str) -> None:
        """Take a folder that need not be there yet; raises NotOurs where something else is in it."""
        self.path = os.path.realpath(path)
        if os.path.lexists(self.path) and not os.path.isdir(self.path):
            raise NotOurs(f"{path}: a file, and a dataset is a folder")
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        self.manifest = self._manifest(path)

    def __enter__(self) -> Self:
        flags = os.O_RDWR | os.O_CREAT | _NO_LINK
        self._lock = os.open(os.path.join(self.path, LOCK), flags, 0o600)
        if not is_taken(self._lock):
            os.close(self._lock)
            raise RetoldError(
                f"{self.path}: another retold is writing this dataset; try again when it is done"
            )
        try:
            self.manifest = self._manifest(self.path)  # the one before may have written another meanwhile
        except BaseException:  # Ctrl-C too
            os.close(self._lock)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._lock)

    def _manifest(self, shown: str) -> Manifest | None:
        try:
            with open(os.path.join(self.path, NAME), "rb") as file:
                return decoded(file.read(), os.path.join(shown, NAME))
        except FileNotFoundError:
            pass
        if any(name != LOCK and not _DRAFT.match(name) for name in os.listdir(self.path)):
            raise NotOurs(f"{shown}: a folder with other things in it, and no dataset: name another")
        return None

    def keep(self, told: Manifest) -> None:
        """Write the manifest anew."""
        if told != self.manifest:
            draft = os.path.join(self.path, f".{NAME}.{secrets.token_hex(8)}")
            try:
                with self.opened(draft) as file:
                    file.write(encoded(told))
                    reach_disk(file)
                os.replace(draft, os.path.join(self.path, NAME))
            except BaseException:
                self.discard(draft)
                raise
            self.manifest = told

    def draft(self, table: str, part: Part) -> str:
        """Return a path to which a part's file is written first, in its folder, which is made."""
        path = self.path
        for name in _way(table, part):
            path = os.path.join(path, name)
            with suppress(FileExistsError):
                os.mkdir(path, 0o700)
            if not stat.S_ISDIR(os.lstat(path).st_mode):  # a link may lead anywhere
                raise NotOurs(f"{path}: no folder, and one is needed there")
        return os.path.join(path, f".{file_name(part.number)}.{secrets.token_hex(8)}")

    def settle(self, draft: str, part: Part) -> None:
        """Put a file that is whole in its place."""
        os.replace(draft, os.path.join(os.path.dirname(draft), file_name(part.number)))

    @staticmethod
    def opened(draft: str) -> BufferedWriter:
        """Open a new file for its owner alone."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | getattr(os, "O_BINARY", 0)
        return open(os.open(draft, flags, 0o600), "wb")

    @staticmethod
    def discard(path: str) -> None:
        """Remove a file, if it is there."""
        with suppress(FileNotFoundError):
            os.unlink(path)

    def has(self, part: Part) -> bool:
        """Tell whether all files of a part are there, as large as they were."""
        return all(self._size(table, part) == size for table, size in part.files.items())

    def _size(self, table: str, part: Part) -> int | None:
        try:
            found = os.lstat(os.path.join(self.path, *_way(table, part), file_name(part.number)))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def sweep(self, kept: Collection[Place] | None) -> None:
        """Remove what runs that were stopped have left, and files of parts that are not to be kept."""
        for name in os.listdir(self.path):
            if _DRAFT.match(name):
                self.discard(os.path.join(self.path, name))
        for table in TABLES:
            for agent, one in _folders(os.path.join(self.path, table), _AGENT):
                for month, two in _folders(one, _MONTH):
                    self._sweep(two, (table, agent, month), kept)
                _remove_empty(one)
            _remove_empty(os.path.join(self.path, table))

    def _sweep(self, folder: str, place: tuple[str, str, str], kept: Collection[Place] | None) -> None:
        for name in os.listdir(folder):
            found = _PART.match(name)
            is_stray = found is not None and kept is not None and (*place, int(found[1])) not in kept
            if is_stray or _DRAFT.match(name):
                self.discard(os.path.join(folder, name))
        _remove_empty(folder)


def reach_disk(file: BufferedWriter) -> None:
    """Wait until a file is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def _way(table: str, part: Part) -> tuple[str, str, str]:
    """Return the folders on the way to a part's file."""
    return table, f"agent={part.agent}", f"month={part.month}"


def file_name(number: int) -> str:
    """Return how the files of a part are called."""
    return f"part-{number:04}.parquet"


def _folders(folder: str, name: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield the folders in one whose names are ours; links are not followed."""
    if os.path.islink(folder) or not os.path.isdir(folder):
        return
    for entry in list(os.scandir(folder)):
        found = name.match(entry.name)
        if found and entry.is_dir(follow_symlinks=False):
            yield found[1], entry.path


def _remove_empty(folder: str) -> None:
    if not os.path.islink(folder):
        with suppress(OSError):  # it is not there, or something is in it
            os.rmdir(folder)


ROOM = 64 << 20
"""Bytes of files behind which a new part begins: less has to be written anew when a session goes on."""


class PartPlan(msgspec.Struct, frozen=True):
    """A part as it is to be."""

    before: Part
    items: tuple[DatasetItem, ...]

    @property
    def is_changed(self) -> bool:
        """Whether other rows belong into it than are there."""
        return self.before.marks != {item.name: item.mark for item in self.items}

    @property
    def size(self) -> int:
        """The bytes of what goes into it."""
        return sum(item.size for item in self.items)

    def begun(self) -> Part:
        """Return the part while it is written: what is in it is known, and nothing can be relied on."""
        return msgspec.structs.replace(self.before, marks={item.name: "" for item in self.items}, files={})

    def written(self, files: dict[str, int]) -> Part:
        """Return the part when it is written."""
        marks = {item.name: item.mark for item in self.items}
        return msgspec.structs.replace(self.before, marks=marks, files=files)


class _MonthFolder:
    """The parts of one agent and month."""

    def __init__(self) -> None:
        self.parts: dict[int, list[DatasetItem]] = {}
        self._sizes: Counter[int] = Counter()

    def put(self, item: DatasetItem, number: int | None) -> None:
        """Put something into a part; where it is in none, into the last that has room."""
        if number is None:
            number = max(self.parts, default=0)
            held = self._sizes[number]
            number += held >= ROOM or (held > 0 and held + item.size > 2 * ROOM)
        self._sizes[number] += item.size
        self.parts.setdefault(number, []).append(item)


def part_plans(parts: Sequence[Part], items: Iterable[DatasetItem]) -> list[PartPlan]:
    """Return all parts as they are to be; one that nothing goes into is not among them."""
    homes = {(name, part.agent, part.month): part.number for part in parts for name in part.marks}
    shelves: dict[tuple[str, str], _MonthFolder] = {}
    newcomers: list[DatasetItem] = []
    for item in items:
        number = homes.get((item.name, item.agent, item.month))
        if number is None:
            newcomers.append(item)
        else:
            shelves.setdefault((item.agent, item.month), _MonthFolder()).put(item, number)
    for item in newcomers:
        shelves.setdefault((item.agent, item.month), _MonthFolder()).put(item, None)
    known = {part.place: part for part in parts}
    return [
        PartPlan(known.get((*place, number), Part(*place, number)), tuple(held))
        for place, shelf in sorted(shelves.items(), key=lambda one: one[0])
        for number, held in sorted(shelf.parts.items())
    ]


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
