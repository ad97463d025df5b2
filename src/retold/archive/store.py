"""The archive: one SQLite file with one writer and any number of readers, and the files of its text index."""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock, get_ident

import apsw

from retold.archive.database import (
    BUSY_TIMEOUT_MS,
    MACHINE_ERRORS,
    DamagedError,
    as_retold_error,
    connect,
    connect_read_only,
    has_database,
    open_connection,
)
from retold.archive.schema import MARK, STEPS

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType, TracebackType
    from typing import Any, Self

    from zstandard import ZstdCompressionDict, ZstdCompressor, ZstdDecompressor

    from retold.archive.index.reader import Index
    from retold.model.spool import Spool, SpooledBytes


CHUNK = 1 << 20
"""Bytes of content in a chunk, at most."""
SMALL_CHUNK = 1 << 18
"""A last chunk up to this size is packed again with what the file has grown by. After a larger one, a new chunk begins."""
LEVEL = 3
"""Of zstd."""
_RECENT = 2
"""Chunks that stay in memory after a read."""
_TEXTS_WINDOW, _TEXTS_HASH = 23, 17
"""Of zstd, for data that is compressed with its texts: binary logarithms. The usual hash table is too small for the texts."""
_SAMPLE, _SAMPLES = 2048, 16


class Chunk:
    """A part of an original, compressed: in memory or in a spool."""

    __slots__ = ("_packed", "digest", "size")

    def __init__(self, digest: bytes, size: int, packed: bytes | SpooledBytes) -> None:
        self.digest, self.size, self._packed = digest, size, packed

    @property
    def packed(self) -> bytes:
        """The compressed bytes."""
        return self._packed if isinstance(self._packed, bytes) else self._packed.read()


def digest(data: bytes | memoryview) -> bytes:
    """Return the digest that identifies content."""
    import hashlib  # 3 ms, and a list needs no digest

    return hashlib.sha256(data).digest()[:16]


def sample_checksum(size: int, read: Callable[[int, int], bytes]) -> bytes:
    """Return a digest of samples of the first bytes of a file: at the beginning, the end and between."""
    offsets = sorted({max(size - _SAMPLE, 0) * number // _SAMPLES for number in range(_SAMPLES + 1)})
    return digest(b"".join(read(offset, min(_SAMPLE, size - offset)) for offset in offsets))


_COMPRESSORS: dict[tuple[int, int], ZstdCompressor] = {}
_DECOMPRESSORS: dict[int, ZstdDecompressor] = {}
"""By thread, because threads must not share one."""


def compress(data: bytes, level: int = LEVEL) -> bytes:
    """Return data compressed with zstd, with a checksum."""
    key = get_ident(), level
    if key not in _COMPRESSORS:
        _COMPRESSORS[key] = _zstandard().ZstdCompressor(level=level, write_checksum=True)
    return _COMPRESSORS[key].compress(data)


def decompress(packed: bytes) -> bytes:
    """Return what was compressed; raises DamagedError, also if the checksum in the data differs."""
    thread = get_ident()
    if thread not in _DECOMPRESSORS:
        _DECOMPRESSORS[thread] = _zstandard().ZstdDecompressor()
    try:
        return _DECOMPRESSORS[thread].decompress(packed)
    except _zstandard().ZstdError as error:
        raise _chunk_error(error) from error


def compress_with(data: bytes, texts: bytes) -> bytes:
    """Return data compressed quickly with texts that the reader has too, most of which are in the data."""
    if not texts:
        return compress(data, 1)
    zstd = _zstandard()
    options = zstd.ZstdCompressionParameters.from_level(
        1, window_log=_TEXTS_WINDOW, hash_log=_TEXTS_HASH, write_checksum=True
    )
    packed: bytes = zstd.ZstdCompressor(compression_params=options, dict_data=_dictionary(texts)).compress(
        data
    )
    return packed


def decompress_with(packed: bytes, texts: bytes) -> bytes:
    """Return what was compressed with texts; raises DamagedError, also if the texts differ."""
    if not texts:
        return decompress(packed)
    zstd = _zstandard()
    try:
        data: bytes = zstd.ZstdDecompressor(dict_data=_dictionary(texts)).decompress(packed)
    except zstd.ZstdError as error:
        raise _chunk_error(error) from error
    return data


def _dictionary(texts: bytes) -> ZstdCompressionDict:
    zstd = _zstandard()
    dictionary: ZstdCompressionDict = zstd.ZstdCompressionDict(texts, dict_type=zstd.DICT_TYPE_RAWCONTENT)
    return dictionary


_LOADING = allocate_lock()


def _zstandard() -> Any:
    """Return zstandard, or only its extension module, because the package imports `typing` and `platform`: half a start of Python."""
    name = "zstandard.backend_c"
    with _LOADING:
        if "zstandard" not in sys.modules and "PYTHON_ZSTANDARD_IMPORT_POLICY" not in os.environ:
            try:
                return sys.modules.get(name) or _load_extension(name)
            except (ImportError, AttributeError):  # another Python, or another build of zstandard
                sys.modules.pop(name, None)
    import zstandard

    return zstandard


def _load_extension(name: str) -> ModuleType:
    """Return a module of a package that is not imported; raises ImportError or AttributeError if that is impossible."""
    package = _find_spec(name.partition(".")[0], None)
    spec = _find_spec(name, package.submodule_search_locations)
    module: ModuleType = spec.loader.create_module(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _find_spec(name: str, path: Sequence[str] | None) -> Any:
    """Return the specification of a module, or None; `importlib` can do this, and takes half a millisecond to import."""
    found = (finder.find_spec(name, path) for finder in sys.meta_path)
    return next((spec for spec in found if spec is not None), None)


class Packer:
    """Compresses content into chunks, a megabyte at a time."""

    def __init__(self, spool: Spool | None = None) -> None:
        """Take the spool for the chunks of a large content; without one, they stay in memory."""
        self._spool = spool
        self._waiting: list[bytes] = []
        self._size = 0
        self.chunks: list[Chunk] = []
        self._last: tuple[bytes, Chunk] | None = None

    def add(self, data: bytes) -> None:
        """Add the next part of the content."""
        self._waiting.append(data)
        self._size += len(data)
        if self._size >= CHUNK:
            whole = b"".join(self._waiting)
            ends = len(whole) - len(whole) % CHUNK
            self.chunks += [self._packed(whole[offset : offset + CHUNK]) for offset in range(0, ends, CHUNK)]
            self._waiting = [whole[ends:]]
            self._size = len(whole) - ends

    def add_by_content(self, data: bytes) -> None:
        """Add a whole content, cut at positions that depend on its bytes: an edit changes only the chunks around it."""
        self.chunks += [self._packed(piece) for piece in cut_by_content(data, CHUNK)]

    def finish(self) -> list[Chunk]:
        """Return all chunks."""
        if self._size:
            self.chunks.append(self._packed(b"".join(self._waiting)))
        self._waiting, self._size = [], 0
        return self.chunks

    def _packed(self, data: bytes) -> Chunk:
        """Return a chunk. A hole of NULs is many equal chunks, of which only the first is compressed."""
        if self._last is None or self._last[0] != data:
            packed = compress(data)
            spooled = packed if self._spool is None else self._spool.write(packed)
            self._last = data, Chunk(digest(data), len(data), spooled)
        return self._last[1]


class Originals:
    """The originals in an archive."""

    def __init__(self, connection: apsw.Connection, *, is_snapshot: bool = False) -> None:
        """Take a connection; `is_snapshot` says that it reads in one transaction."""
        self._connection, self._is_snapshot = connection, is_snapshot
        self._recent: dict[int, bytes] = {}
        """The chunks that were read last, decompressed: the next read is often in one of them."""
        self._last: tuple[int, int, bytes] = (-1, 0, b"")
        """The original and the offset of the chunk that was read last, and its content."""
        self._pieces: tuple[int, list[tuple[int, int]]] = (-1, [])
        self._version = -1

    def write(self, original: int, chunks: Sequence[Chunk], start: int = 0) -> None:
        """Write chunks as the pieces of an original from a position on, in place of those that were there."""
        execute = self._connection.execute
        self._forget_pieces()
        execute("DELETE FROM pieces WHERE original = ? AND position >= ?", (original, start))
        for position, chunk in enumerate(chunks, start):
            known = execute("SELECT id FROM chunks WHERE digest = ?", (chunk.digest,)).get
            if known is None:
                execute(
                    "INSERT INTO chunks (digest, size, packed) VALUES (?, ?, ?)",
                    (chunk.digest, chunk.size, chunk.packed),
                )
                known = self._connection.last_insert_rowid()
            execute("INSERT INTO pieces VALUES (?, ?, ?)", (original, position, known))

    def drop(self, original: int) -> None:
        """Delete an original, and the bookmark of its file; `remove_unused_chunks` deletes its chunks."""
        self._forget_pieces()
        sql = "DELETE FROM bookmarks WHERE source = (SELECT source FROM originals WHERE id = ?)"
        self._connection.execute(sql, (original,))
        self._connection.execute("DELETE FROM pieces WHERE original = ?", (original,))
        self._connection.execute("DELETE FROM originals WHERE id = ?", (original,))

    def remove_unused_chunks(self) -> None:
        """Delete the chunks that no original has."""
        self.reset()
        self._connection.execute(
            "DELETE FROM chunks WHERE NOT EXISTS (SELECT 1 FROM pieces WHERE pieces.chunk = chunks.id)"
        )

    def pieces(self, original: int) -> list[tuple[int, int]]:
        """Return chunk and size of each piece of an original; those of the last original are cached."""
        if self._pieces[0] != original:
            sql = "SELECT chunk, size FROM pieces JOIN chunks ON chunks.id = chunk WHERE original = ? ORDER BY position"
            self._pieces = (original, list(self._connection.execute(sql, (original,))))
        return self._pieces[1]

    def growth_start(self, original: int) -> tuple[int, int]:
        """Return the position and the offset from which an original that has grown is packed: a small last chunk is packed again."""
        pieces = self.pieces(original)
        start = len(pieces)
        if pieces and pieces[-1][1] <= SMALL_CHUNK:
            start -= 1
        return start, sum(size for _, size in pieces[:start])

    def read_chunks(self, uid: int) -> Iterator[bytes]:
        """Yield the content of an original, by its uid, chunk by chunk."""
        sql = (
            "SELECT packed FROM originals JOIN pieces ON pieces.original = originals.id JOIN chunks ON chunks.id = chunk"
            " WHERE uid = ? ORDER BY position"
        )
        return (decompress(packed) for (packed,) in self._connection.execute(sql, (uid,)))

    def digests(self, original: int) -> list[bytes]:
        """Return the digests of the chunks of an original."""
        sql = (
            "SELECT digest FROM pieces JOIN chunks ON chunks.id = chunk WHERE original = ? ORDER BY position"
        )
        return [bytes(found) for (found,) in self._connection.execute(sql, (original,))]

    def read(self, original: int, start: int = 0, size: int | None = None) -> bytes:
        """Return the content of an original, or a part of it, for which only its chunks are decompressed."""
        if self._is_snapshot:
            return b"".join(self._parts(original, start, size))
        with self._connection:  # one snapshot: a sync may be rewriting the pieces
            version = self._connection.execute("PRAGMA data_version").get
            if version != self._version:  # another connection has written, and may use numbers again
                self._version = version
                self.reset()
            parts = list(self._parts(original, start, size))
        return b"".join(parts)

    def reset(self) -> None:
        """Clear the caches: after a rollback, other content gets the same numbers."""
        self._recent = {}
        self._forget_pieces()

    def _forget_pieces(self) -> None:
        self._last, self._pieces = (-1, 0, b""), (-1, [])

    def _parts(self, original: int, start: int, size: int | None) -> Iterator[bytes]:
        number, offset, data = self._last
        if number == original and size is not None and 0 <= start - offset <= len(data) - size:
            yield data[start - offset : start - offset + size]
            return
        end, offset = None if size is None else start + size, 0
        for chunk, length in self.pieces(original):
            if end is not None and offset >= end:
                return
            if offset + length > start:
                first, last = max(start - offset, 0), length if end is None else min(end - offset, length)
                data = self._whole(chunk, length)
                self._last = original, offset, data
                yield data[first:last]
            offset += length

    def _whole(self, chunk: int, size: int) -> bytes:
        """Return the content of a chunk; raises DamagedError if its checksum or its size differs."""
        data = self._recent.get(chunk)
        if data is None:
            data = decompress(self._packed(chunk))
            if len(data) != size:
                raise _chunk_error(f"{len(data):,} bytes, not {size:,}")
            if len(self._recent) == _RECENT:
                del self._recent[next(iter(self._recent))]
            self._recent[chunk] = data
        return data

    def _packed(self, chunk: int) -> bytes:
        found: bytes | None = self._connection.execute("SELECT packed FROM chunks WHERE id = ?", (chunk,)).get
        if found is None:
            raise DamagedError(
                f"the archive lacks a chunk of an original ({chunk}): bring back a copy of archive.db"
            )
        return found


def _chunk_error(why: object) -> DamagedError:
    return DamagedError(f"a chunk of an original is damaged ({why}): bring back a copy of archive.db")


ARCHIVE_NAME = "archive.db"
"""The file of the archive in retold's folder."""
UNREAD = "unread"
"""The fact that something was imported which no sync has read yet."""
FORGETTING = "forgetting"
"""The fact that text of forgotten sessions may still be in the index or in free pages: uids of sessions, as JSON."""
_WRITING = ("synchronous = NORMAL", "cache_size = -32000", "wal_autocheckpoint = 8000")
"""Settings of a writer. 8,000 pages are 32 MB: each checkpoint waits for the disk."""


class Store:
    """An open archive. Errors of its file are raised as RetoldError."""

    def __init__(self, folder: str, *, can_write: bool = False, patience: int = BUSY_TIMEOUT_MS) -> None:
        """Open the archive; wait for a lock of others for `patience` milliseconds."""
        self.folder, self.patience = folder, patience
        self.path = os.path.join(folder, ARCHIVE_NAME)
        if can_write:
            self.connection = connect(self.path, MARK, STEPS)
            for setting in _WRITING:
                self.row(f"PRAGMA {setting}")
        else:
            self.connection = connect_read_only(self.path, MARK, STEPS, patience)
        self.originals = Originals(self.connection)
        self.index: Index | None = None
        """The index that `open_shared_index` keeps open."""
        self.damage: dict[str, None] = {}
        """The damage of originals whose texts a search left out."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.connection.close()
        if isinstance(error, MACHINE_ERRORS):
            raise as_retold_error(error, self.path) from error

    def rows(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield the rows of a query."""
        try:
            yield from self.connection.execute(sql, values)
        except MACHINE_ERRORS as error:
            raise as_retold_error(error, self.path) from error

    def row(self, sql: str, values: Sequence[Any] = ()) -> Any | None:
        """Return the first row of a query."""
        return next(self.rows(sql, values), None)

    def fact(self, name: str) -> Any:
        """Return a fact that the archive keeps about itself."""
        found = self.row("SELECT value FROM facts WHERE name = ?", (name,))
        return None if found is None else found[0]

    @property
    def id(self) -> str:
        """The id of this archive."""
        return str(self.fact("id"))

    def begin_snapshot(self) -> None:
        """Read everything as it is now until the archive is closed; repeated reads are then cheap."""
        self.connection.execute("BEGIN")
        self.fact("generation")
        self.originals = Originals(self.connection, is_snapshot=True)

    def commit_durably(self) -> DurableCommits:
        """Return a `with` block in which each commit waits until it is on disk."""
        return DurableCommits(self)

    def release_snapshot(self) -> None:
        """End the read transactions of the index until the next query."""
        if self.index is not None:
            self.index.release_snapshot()

    def set_timeout(self, patience: int) -> None:
        """Set how many milliseconds to wait for others."""
        self.patience = patience
        for connection in self._connections():
            connection.set_busy_timeout(patience)

    def close(self) -> None:
        """Close the archive, whatever has happened; what a thread still runs closes when that is done."""
        try:  # noqa: SIM105 - contextlib takes a while to import
            self.release_snapshot()
        except apsw.Error:
            pass
        self.connection.close()

    def interrupt(self) -> None:
        """Interrupt a query that runs in another thread: it raises there."""
        for connection in self._connections():
            connection.interrupt()

    def _connections(self) -> list[apsw.Connection]:
        files = [] if self.index is None else self.index.files
        return [self.connection, *(file.connection for file in files)]

    def data_version(self) -> int:
        """Return a number that changes when another connection has written."""
        found = self.row("PRAGMA data_version")
        return 0 if found is None else int(found[0])

    def set_fact(self, name: str, value: Any) -> None:
        """Write a fact about the archive."""
        self.connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))


class DurableCommits:
    """A block in which SQLite waits for the disk at each commit."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> None:
        self._store.row("PRAGMA synchronous = FULL")

    def __exit__(self, *_: object) -> None:
        if not self._store.connection.in_transaction:  # a failed commit: SQLite refuses the change
            self._store.row("PRAGMA synchronous = NORMAL")


def pack_summary(summary: str) -> bytes:
    """Return the JSON form of a session, compressed: with zlib, which every Python has."""
    import zlib

    return zlib.compress(summary.encode("utf-8", "replace"), 6)


def unpack_summary(packed: bytes) -> str:
    """Return the JSON form of a session; raises DamagedError."""
    import zlib

    try:
        return zlib.decompress(packed).decode()
    except (zlib.error, UnicodeDecodeError, TypeError) as error:
        raise DamagedError(
            f"the archive is damaged: the summary of a session cannot be read ({error}); `retold doctor` names it,"
            " `retold sync --reindex` writes it again from the original files"
        ) from error


def archive_exists(folder: str) -> bool:
    """Return whether there is an archive; an empty file is none."""
    return has_database(os.path.join(folder, ARCHIVE_NAME))


def is_archive_empty(folder: str) -> bool:
    """Return whether the file of the archive is there and empty."""
    return os.path.exists(os.path.join(folder, ARCHIVE_NAME)) and not archive_exists(folder)


INDEX_FOLDER = "index"
"""The folder of the text index in retold's folder."""
SHARDS = 2
"""Files of the text index: one for each of two processes that write at the same time."""

TOKENIZER_VERSION = 2
"""Raised when the tokenizer changes: the next sync makes an index with another number again."""


def shard_path(folder: str, number: int) -> str:
    """Return the path of a file of the index."""
    return os.path.join(folder, INDEX_FOLDER, f"text-{number}.db")


def remove_index(folder: str) -> None:
    """Remove the index, which can be made again."""
    for number in range(SHARDS):
        for ending in ("", "-wal", "-shm", "-journal"):
            try:
                os.remove(shard_path(folder, number) + ending)
            except FileNotFoundError:
                continue


def is_index_current(folder: str, archive: str, generation: object) -> bool:
    """Return whether every file of the index is as the sync of a generation of an archive left it."""
    expected = {"archive": archive, "generation": generation, "words": TOKENIZER_VERSION}
    return all(_index_facts(shard_path(folder, number)) == expected for number in range(SHARDS))


def _index_facts(path: str) -> dict[str, object]:
    """Return the facts of a file of the index; none if it is missing or damaged."""
    if not os.path.exists(path):
        return {}
    try:
        connection = open_connection(path)
        found = dict(connection.execute("SELECT name, value FROM facts"))
        connection.close()
    except apsw.Error:  # the next sync makes it again
        return {}
    return found


def missing_index_files(folder: str) -> list[str]:
    """Return the files of the index that are missing or empty."""
    paths = [shard_path(folder, number) for number in range(SHARDS)]
    return [path for path in paths if not os.path.exists(path) or not os.path.getsize(path)]


def as_text(text: str) -> str:
    """Return text as SQLite takes it: half surrogates are replaced."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def as_stored(path: str) -> str | bytes:
    """Return a path as SQLite takes it: as bytes if it is not UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path


def as_path(stored: str | bytes) -> str:
    """Return a stored path as the system takes it."""
    return os.fsdecode(stored) if isinstance(stored, bytes) else stored


_CANDIDATE = rb"[,/7Qx]"
"""A chunk may end after one of these bytes. Text, JSON and base64 have one about every 25 bytes."""
_WINDOW = 32
_MASK = 0x7FF
"""A chunk ends where the checksum of the last 32 bytes has these 11 bits clear: at one of 2,048 candidates."""
_SMALLEST = 1 << 14


def cut_by_content(data: bytes, largest: int) -> Iterator[bytes]:
    """Yield parts of 16 KB to `largest`, about 64 KB on average; an edit changes the one or two parts around it."""
    import re
    import zlib

    pattern, start = re.compile(_CANDIDATE), 0
    while start < len(data):
        limit = min(start + largest, len(data))
        candidates = (found.end() for found in pattern.finditer(data, start + _SMALLEST, limit))
        end = next((end for end in candidates if not zlib.crc32(data[end - _WINDOW : end]) & _MASK), limit)
        yield data[start:end]
        start = end
