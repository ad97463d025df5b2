"""The folder of a dataset: only files of retold are written and removed, for their owner alone, and links are not followed."""

import os
import re
import secrets
import stat
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from io import BufferedWriter
from types import TracebackType
from typing import Any, Self

import msgspec
from pyarrow.parquet import ParquetWriter

from retold.archive.database import RetoldError
from retold.lake.arrow import make_batch, schema_of
from retold.lake.dataset_items import DatasetItem
from retold.lake.session_rows import Row, RowSource, UnreadFile, table_rows
from retold.model.tables import FILES, STRING, STRINGS, TABLES, UNKNOWN, VERSION
from retold.synchronization.update import try_lock

MANIFEST_NAME = "retold.json"
FORMAT = "retold-dataset"


class Part(msgspec.Struct, frozen=True):
    """A part of the sessions of one agent and month: a file for each table."""

    agent: str
    month: str = UNKNOWN
    number: int = 0
    digests: Mapping[str, str] = msgspec.field(default_factory=dict, name="marks")
    """The digest of each item in it, by the name of the item; empty while the part is written."""
    files: Mapping[str, int] = {}
    """Bytes of its files, by table."""

    @property
    def key(self) -> tuple[str, str, int]:
        """Its agent, month and number."""
        return self.agent, self.month, self.number


class Manifest(msgspec.Struct, frozen=True):
    """The parts of a dataset, and what they depend on."""

    is_redacted: bool
    digest: str = msgspec.field(name="seal")
    """Of everything that all rows depend on: the version, the options, the known secrets."""
    parts: tuple[Part, ...] = ()
    names: str = ""
    """Identifies the key that the names of sessions are made with. Names made with another key cannot be compared."""
    is_complete: bool = False
    """False while parts are written, and after an interruption."""
    format: str = FORMAT
    version: int = VERSION
    """The version of the tables."""


class NotADatasetError(Exception):
    """The folder holds something other than a dataset."""


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the content of the file of a manifest."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def decode_manifest(data: bytes, path: str) -> Manifest:
    """Return the manifest in a file; raise NotADatasetError if it is none."""
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotADatasetError(f"{path}: no manifest of a dataset ({error})") from error
    if manifest.format != FORMAT:
        raise NotADatasetError(f"{path}: no manifest of a dataset")
    return manifest


LOCK_NAME = ".retold.lock"
_DRAFT = re.compile(r"\.(?:part-\d{4,}\.parquet|retold\.json)\.[0-9a-f]{16}$")
_PART = re.compile(r"part-(\d{4,})\.parquet$")
_AGENT, _MONTH = re.compile(r"agent=([\w-]+)$"), re.compile(r"month=([\w-]+)$")
_NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)  # Windows lacks it
FileKey = tuple[str, str, str, int]
"""The table, agent, month and number of a file."""


class DatasetFolder:
    """The folder of a dataset, locked so that one process writes it at a time."""

    def __init__(self, path: str) -> None:
        """Take a folder that need not exist yet; raise NotADatasetError if it holds something else."""
        self.path = os.path.realpath(path)
        if os.path.lexists(self.path) and not os.path.isdir(self.path):
            raise NotADatasetError(f"{path}: a file, and a dataset is a folder")
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        self.manifest = self._manifest(path)

    def __enter__(self) -> Self:
        flags = os.O_RDWR | os.O_CREAT | _NO_LINK
        self._lock = os.open(os.path.join(self.path, LOCK_NAME), flags, 0o600)
        if not try_lock(self._lock):
            os.close(self._lock)
            raise RetoldError(
                f"{self.path}: another retold is writing this dataset; try again when it is done"
            )
        try:
            self.manifest = self._manifest(self.path)  # the process before may have written another
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
            with open(os.path.join(self.path, MANIFEST_NAME), "rb") as file:
                return decode_manifest(file.read(), os.path.join(shown, MANIFEST_NAME))
        except FileNotFoundError:
            pass
        if any(name != LOCK_NAME and not _DRAFT.match(name) for name in os.listdir(self.path)):
            raise NotADatasetError(f"{shown}: a folder with other things in it, and no dataset: name another")
        return None

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace the manifest, if it has changed."""
        if manifest != self.manifest:
            draft = os.path.join(self.path, f".{MANIFEST_NAME}.{secrets.token_hex(8)}")
            try:
                with self.open_new(draft) as file:
                    file.write(encode_manifest(manifest))
                    sync_to_disk(file)
                os.replace(draft, os.path.join(self.path, MANIFEST_NAME))
            except BaseException:
                self.discard(draft)
                raise
            self.manifest = manifest

    def draft_path(self, table: str, part: Part) -> str:
        """Create the folder of a part's file, and return the path in it to which the file is written first."""
        path = self.path
        for name in _folder_names(table, part):
            path = os.path.join(path, name)
            with suppress(FileExistsError):
                os.mkdir(path, 0o700)
            if not stat.S_ISDIR(os.lstat(path).st_mode):  # a link may lead anywhere
                raise NotADatasetError(f"{path}: no folder, and one is needed there")
        return os.path.join(path, f".{file_name(part.number)}.{secrets.token_hex(8)}")

    @staticmethod
    def publish(draft: str, part: Part) -> None:
        """Move a complete file to its final path."""
        os.replace(draft, os.path.join(os.path.dirname(draft), file_name(part.number)))

    @staticmethod
    def open_new(draft: str) -> BufferedWriter:
        """Open a new file that only its owner may read."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | getattr(os, "O_BINARY", 0)
        return open(os.open(draft, flags, 0o600), "wb")

    @staticmethod
    def discard(path: str) -> None:
        """Remove a file if it exists."""
        with suppress(FileNotFoundError):
            os.unlink(path)

    def is_complete(self, part: Part) -> bool:
        """Return whether all files of a part exist with their sizes."""
        return all(self._size(table, part) == size for table, size in part.files.items())

    def _size(self, table: str, part: Part) -> int | None:
        try:
            found = os.lstat(os.path.join(self.path, *_folder_names(table, part), file_name(part.number)))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def remove_leftovers(self, keep: Collection[FileKey] | None) -> None:
        """Remove drafts of interrupted runs and, unless `keep` is None, the files that are not in it."""
        for name in os.listdir(self.path):
            if _DRAFT.match(name):
                self.discard(os.path.join(self.path, name))
        for table in TABLES:
            for agent, one in _folders(os.path.join(self.path, table), _AGENT):
                for month, two in _folders(one, _MONTH):
                    self._clean(two, (table, agent, month), keep)
                _remove_empty(one)
            _remove_empty(os.path.join(self.path, table))

    def _clean(self, folder: str, key: tuple[str, str, str], keep: Collection[FileKey] | None) -> None:
        for name in os.listdir(folder):
            found = _PART.match(name)
            is_stray = found is not None and keep is not None and (*key, int(found[1])) not in keep
            if is_stray or _DRAFT.match(name):
                self.discard(os.path.join(folder, name))
        _remove_empty(folder)


def sync_to_disk(file: BufferedWriter) -> None:
    """Flush a file to the disk."""
    file.flush()
    os.fsync(file.fileno())


def _folder_names(table: str, part: Part) -> tuple[str, str, str]:
    """Return the names of the folders of a part's file."""
    return table, f"agent={part.agent}", f"month={part.month}"


def file_name(number: int) -> str:
    """Return the name of the files of a part."""
    return f"part-{number:04}.parquet"


def _folders(folder: str, name: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield the folders in one whose names match, with the value in the name; links are not followed."""
    if os.path.islink(folder) or not os.path.isdir(folder):
        return
    for entry in list(os.scandir(folder)):
        found = name.match(entry.name)
        if found and entry.is_dir(follow_symlinks=False):
            yield found[1], entry.path


def _remove_empty(folder: str) -> None:
    if not os.path.islink(folder):
        with suppress(OSError):  # it does not exist, or is not empty
            os.rmdir(folder)


PART_BYTES = 64 << 20
"""Bytes of files after which a new part begins: small parts are quicker to replace when a session grows."""


class PartPlan(msgspec.Struct, frozen=True):
    """A part as it should become."""

    before: Part
    items: tuple[DatasetItem, ...]

    @property
    def is_changed(self) -> bool:
        """Whether its rows change."""
        return self.before.digests != {item.name: item.digest for item in self.items}

    @property
    def size(self) -> int:
        """Bytes of the files of its items."""
        return sum(item.size for item in self.items)

    def start(self) -> Part:
        """Return the part while it is written: its items are known, and none can be relied on."""
        return msgspec.structs.replace(self.before, digests={item.name: "" for item in self.items}, files={})

    def finish(self, files: dict[str, int]) -> Part:
        """Return the part when it is written."""
        digests = {item.name: item.digest for item in self.items}
        return msgspec.structs.replace(self.before, digests=digests, files=files)


class _MonthParts:
    """The items of one agent and month, by the number of their part."""

    def __init__(self) -> None:
        self.parts: dict[int, list[DatasetItem]] = {}
        self._sizes: Counter[int] = Counter()

    def put(self, item: DatasetItem, number: int | None) -> None:
        """Add an item to a part; a new item goes to the last part, or to a new one if that is full."""
        if number is None:
            number = max(self.parts, default=0)
            size = self._sizes[number]
            number += size >= PART_BYTES or (size > 0 and size + item.size > 2 * PART_BYTES)
        self._sizes[number] += item.size
        self.parts.setdefault(number, []).append(item)


def plan_parts(parts: Sequence[Part], items: Iterable[DatasetItem]) -> list[PartPlan]:
    """Return a plan for each part that has items."""
    numbers = {(name, part.agent, part.month): part.number for part in parts for name in part.digests}
    months: defaultdict[tuple[str, str], _MonthParts] = defaultdict(_MonthParts)
    # New items go to the end, after all parts have their old items again.
    numbered = [(numbers.get((item.name, item.agent, item.month)), item) for item in items]
    for number, item in sorted(numbered, key=lambda pair: pair[0] is None):
        months[item.agent, item.month].put(item, number)
    known = {part.key: part for part in parts}
    return [
        PartPlan(known.get((*month, number), Part(*month, number)), tuple(members))
        for month, of_month in sorted(months.items(), key=lambda pair: pair[0])
        for number, members in sorted(of_month.parts.items())
    ]


PATH_COLUMNS = 2
"""Columns that are in the paths of files only: agent and month."""
GROUP_BYTES = 16 << 20
"""Bytes of session files in a row group, or characters of a file that is larger."""
GROUP_ROWS = 1 << 16
LEVEL = 2
"""Of zstd: 1 takes a fifth less time and a quarter more room, 3 a fifth more time and an eighth less room."""


NEVER_REPEATED = frozenset(("id", "call", "request", "message", "native_id", "parent", "child", "title", "summary", "first_prompt", "last_prompt"))  # fmt: skip
"""Texts that rarely repeat: a dictionary of them would only take space."""
REPEATED = frozenset(("result",))
"""Long texts that often repeat: an agent reads the same file again. To write each once takes an eighth less time and room."""


def write_part(
    folder: DatasetFolder, part: Part, sources: Iterable[RowSource | UnreadFile]
) -> dict[str, int]:
    """Write the files of a part, move them to their paths when all are complete, and return their sizes by table."""
    drafts = {table: PartDraft(folder, table, part) for table in TABLES}
    try:
        for source in sources:
            for draft in drafts.values():
                draft.add(source)
        sizes = {table: draft.finish() for table, draft in drafts.items()}
        for draft in drafts.values():
            draft.publish()
    except BaseException:  # Ctrl-C too
        for draft in drafts.values():
            draft.discard()
        raise
    return sizes


class PartDraft:
    """The file of a table in a part, while it is written."""

    def __init__(self, folder: DatasetFolder, table: str, part: Part) -> None:
        self._folder, self._table, self._part = folder, table, part
        self._schema = schema_of(table, tuple(TABLES[table].names[PATH_COLUMNS:]))
        self._rows: list[Row] = []
        self._size = 0
        self._path: str | None = None
        self._file: BufferedWriter | None = None
        self._writer: ParquetWriter | None = None

    def add(self, source: RowSource | UnreadFile) -> None:
        """Add the rows of a session or an unread file."""
        rows = table_rows(self._table, source, PATH_COLUMNS)
        size = 0 if isinstance(source, UnreadFile) else sum(file.bytes for file in source.session.sources)
        if size < GROUP_BYTES and self._table != "tool_calls":
            self._size += size  # only tool calls may have more: outputs in files of their own
            self._rows += rows
            self._flush_if_full()
            return
        for row in rows:
            self._rows.append(row)
            self._size += sum(len(value) for value in row if isinstance(value, str))
            self._flush_if_full()

    def _flush_if_full(self) -> None:
        if self._rows and (self._size >= GROUP_BYTES or len(self._rows) >= GROUP_ROWS):
            self._flush()

    def _open(self) -> tuple[str, BufferedWriter, ParquetWriter]:
        """Return the path, the file and its writer, which are opened on the first call."""
        path = self._path = self._path or self._folder.draft_path(self._table, self._part)
        file = self._file = self._file or self._folder.open_new(path)
        if self._writer is None:
            self._writer = ParquetWriter(file, self._schema, **_options(self._table))
        return path, file, self._writer

    def _flush(self) -> None:
        _, _, writer = self._open()
        writer.write_batch(make_batch(self._schema, self._rows), row_group_size=len(self._rows))
        self._rows, self._size = [], 0

    def finish(self) -> int:
        """Write the rest and return the size. A file without rows is written as well, because it has the columns."""
        if self._rows:
            self._flush()
        path, file, writer = self._open()
        writer.close()
        sync_to_disk(file)
        file.close()
        return os.stat(path).st_size

    def publish(self) -> None:
        """Move the file to its final path."""
        if self._path is not None:
            self._folder.publish(self._path, self._part)
            self._path = None

    def discard(self) -> None:
        """Remove the draft, unless it was published."""
        if self._path is not None:
            for half in (self._writer, self._file):
                with suppress(OSError, ValueError):  # the rest may not fit on the disk either
                    if half is not None:
                        half.close()
            self._folder.discard(self._path)  # after closing it: Windows removes no open file


def _options(table: str) -> dict[str, Any]:
    """Return the options of the writer: dictionaries for texts that repeat, statistics for columns of filters."""
    columns = TABLES[table].columns[PATH_COLUMNS:]
    repeated = [
        column.name
        for column in columns
        if column.type == STRING
        and (column.name in REPEATED or not (column.is_said or column.name in NEVER_REPEATED))
    ]
    filtered = [
        column.name for column in columns if not column.is_said and column.type not in (STRINGS, FILES)
    ]
    return {
        "compression": "zstd",
        "compression_level": LEVEL,
        "use_dictionary": repeated,
        "dictionary_pagesize_limit": 2 * GROUP_BYTES,
        "write_statistics": filtered,
    }
