"""The archive: one file, one writer, any number of readers."""

from __future__ import annotations

import os
import re
import zlib
from _thread import get_ident
from collections.abc import Iterator
from functools import cache

import apsw

from retold.archive.database import (
    MACHINE,
    PATIENCE,
    DamagedError,
    as_retold_error,
    connected,
    is_made,
    reading,
)
from retold.archive.schema import MARK, STEPS

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType
    from typing import Any, Self

    from zstandard import ZstdCompressor, ZstdDecompressor

    from retold.archive.index.reader import Index


CHUNK = 1 << 20
SMALL = 1 << 18
"""A last chunk up to this size is written again, with what the file has grown by; behind a larger one a new begins."""
LEVEL = 3
_SAMPLE, _SAMPLES = 2048, 16


class Chunk:
    """A piece of a file, compressed."""

    __slots__ = ("digest", "packed", "size")

    def __init__(self, digest: bytes, size: int, packed: bytes) -> None:
        self.digest, self.size, self.packed = digest, size, packed


def digest(data: bytes) -> bytes:
    """Return the name of a piece of content."""
    import hashlib  # 3 ms, and a list needs no digest

    return hashlib.sha256(data).digest()[:16]


def seal(size: int, read: Callable[[int, int], bytes]) -> bytes:
    """Return a digest of samples of what stands in a file up to a size: of its beginning, its end, and between."""
    places = sorted({max(size - _SAMPLE, 0) * number // _SAMPLES for number in range(_SAMPLES + 1)})
    return digest(b"".join(read(place, min(_SAMPLE, size - place)) for place in places))


def packed(data: bytes, level: int = LEVEL) -> bytes:
    """Return content compressed."""
    return _compressor(get_ident(), level).compress(data)


def unpacked(packed: bytes) -> bytes:
    """Return what was compressed; raises Damaged, also where the checksum that zstd wrote differs."""
    try:
        return _decompressor(get_ident()).decompress(packed)
    except _zstd_error() as error:
        raise _damage(error) from error


@cache
def _compressor(thread: int, level: int) -> ZstdCompressor:  # noqa: ARG001 - one for each: two threads must not share it
    import zstandard

    return zstandard.ZstdCompressor(level=level, write_checksum=True)


@cache
def _decompressor(thread: int) -> ZstdDecompressor:  # noqa: ARG001 - the same
    import zstandard

    return zstandard.ZstdDecompressor()


class Packer:
    """Makes chunks of what is read, a megabyte in memory at a time."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []
        self._size = 0
        self.chunks: list[Chunk] = []
        self._last: tuple[bytes, Chunk] | None = None

    def add(self, data: bytes) -> None:
        """Take the next piece."""
        self._waiting.append(data)
        self._size += len(data)
        if self._size >= CHUNK:
            whole = b"".join(self._waiting)
            ends = len(whole) - len(whole) % CHUNK
            self.chunks += [self._packed(whole[place : place + CHUNK]) for place in range(0, ends, CHUNK)]
            self._waiting = [whole[ends:]]
            self._size = len(whole) - ends

    def add_by_content(self, data: bytes) -> None:
        """Take a whole content, cut where its own bytes say so: an edit changes the chunks around it, and no others."""
        self.chunks += [self._packed(piece) for piece in cut_by_content(data, CHUNK)]

    def ended(self) -> list[Chunk]:
        """Return all chunks, when there is nothing more to take."""
        if self._size:
            self.chunks.append(self._packed(b"".join(self._waiting)))
        self._waiting, self._size = [], 0
        return self.chunks

    def _packed(self, data: bytes) -> Chunk:
        """Return a chunk; a hole of NULs is many equal ones, of which only the first is compressed."""
        if self._last is None or self._last[0] != data:
            self._last = data, Chunk(digest(data), len(data), packed(data))
        return self._last[1]


class Originals:
    """The originals in an archive."""

    def __init__(self, connection: apsw.Connection, *, is_still: bool = False) -> None:
        """Take a connection; one that stands still sees everything as of one moment."""
        self._connection, self._is_still = connection, is_still
        self._last: tuple[int, bytes] = (-1, b"")
        """The chunk that was read last, unpacked: the next part often lies in the same."""
        self._pieces: tuple[int, list[tuple[int, int]]] = (-1, [])
        self._version = -1

    def put(self, original: int, chunks: Sequence[Chunk], start: int = 0) -> None:
        """Keep chunks as the pieces of an original, from a place on: what stood there before gives way."""
        ask = self._connection.execute
        self._pieces = (-1, [])
        ask("DELETE FROM pieces WHERE original = ? AND place >= ?", (original, start))
        for place, chunk in enumerate(chunks, start):
            known = ask("SELECT id FROM chunks WHERE digest = ?", (chunk.digest,)).get
            if known is None:
                ask(
                    "INSERT INTO chunks (digest, size, packed) VALUES (?, ?, ?)",
                    (chunk.digest, chunk.size, chunk.packed),
                )
                known = self._connection.last_insert_rowid()
            ask("INSERT INTO pieces VALUES (?, ?, ?)", (original, place, known))

    def drop(self, original: int) -> None:
        """Forget an original: chunks that nothing else is made of go when the sweep comes."""
        self._pieces = (-1, [])
        self._connection.execute("DELETE FROM pieces WHERE original = ?", (original,))
        self._connection.execute("DELETE FROM originals WHERE id = ?", (original,))

    def sweep(self) -> None:
        """Remove chunks that no original is made of any more."""
        self._last = (-1, b"")
        self._connection.execute(
            "DELETE FROM chunks WHERE NOT EXISTS (SELECT 1 FROM pieces WHERE pieces.chunk = chunks.id)"
        )

    def pieces(self, original: int) -> list[tuple[int, int]]:
        """Return the chunks of an original, each with its size; those of the last one are kept in mind."""
        if self._pieces[0] != original:
            asked = "SELECT chunk, size FROM pieces JOIN chunks ON chunks.id = chunk WHERE original = ? ORDER BY place"
            self._pieces = (original, list(self._connection.execute(asked, (original,))))
        return self._pieces[1]

    def unpacked_pieces(self, name: int) -> Iterator[bytes]:
        """Yield what stands in an original, by its name, chunk by chunk."""
        asked = (
            "SELECT packed FROM originals JOIN pieces ON pieces.original = originals.id JOIN chunks ON chunks.id = chunk"
            " WHERE name = ? ORDER BY place"
        )
        return (self.unpacked(packed) for (packed,) in self._connection.execute(asked, (name,)))

    def digests(self, original: int) -> list[bytes]:
        """Return the names of the chunks of an original."""
        asked = "SELECT digest FROM pieces JOIN chunks ON chunks.id = chunk WHERE original = ? ORDER BY place"
        return [bytes(found) for (found,) in self._connection.execute(asked, (original,))]

    def data(self, original: int, start: int = 0, size: int | None = None) -> bytes:
        """Return what stands in an original: all, or a part of it, for which only its chunks are unpacked."""
        if self._is_still:
            return b"".join(self._parts(self.pieces(original), start, size))
        with self._connection:  # at one moment: a sync may be cutting it otherwise
            self._forget_if_changed()
            parts = list(self._parts(self.pieces(original), start, size))
        return b"".join(parts)

    def reset(self) -> None:
        """Forget what was read: after a rollback, other content gets the same numbers."""
        self._last, self._pieces = (-1, b""), (-1, [])

    def _forget_if_changed(self) -> None:
        """Keep nothing in mind that another has changed: numbers are given anew."""
        version = self._connection.execute("PRAGMA data_version").get
        if version != self._version:
            self._version = version
            self.reset()

    def _parts(self, pieces: Iterable[tuple[int, int]], start: int, size: int | None) -> Iterator[bytes]:
        end, place = None if size is None else start + size, 0
        for chunk, length in pieces:
            if end is not None and place >= end:
                return
            if place + length > start:
                first, last = max(start - place, 0), length if end is None else min(end - place, length)
                yield self._whole(chunk, length)[first:last]
            place += length

    def _whole(self, chunk: int, size: int) -> bytes:
        """Return what a chunk holds; raises Damaged where its checksum or its size is another."""
        if self._last[0] != chunk:
            data = self.unpacked(self._packed(chunk))
            if len(data) != size:
                raise _damage(f"{len(data):,} bytes, not {size:,}")
            self._last = (chunk, data)
        return self._last[1]

    def _packed(self, chunk: int) -> bytes:
        found: bytes | None = self._connection.execute("SELECT packed FROM chunks WHERE id = ?", (chunk,)).get
        if found is None:
            raise DamagedError(
                f"the archive lacks a chunk of an original ({chunk}): bring back a copy of archive.db"
            )
        return found

    def unpacked(self, packed: bytes) -> bytes:
        """Return what was compressed."""
        return unpacked(packed)


def _zstd_error() -> type[Exception]:
    import zstandard  # 15 ms, for what was said only

    return zstandard.ZstdError


def _damage(why: object) -> DamagedError:
    return DamagedError(f"a chunk of an original is damaged ({why}): bring back a copy of archive.db")


NAME = "archive.db"
UNREAD = "unread"
"""The fact that something was imported which no sync has read yet."""
FORGETTING = "forgetting"
"""The fact that words of forgotten sessions may still be in the index or in free pages: names of sessions, as JSON."""
_WRITING = ("synchronous = NORMAL", "cache_size = -32000", "wal_autocheckpoint = 8000")
"""8,000 pages are 32 MB: each checkpoint costs a wait for the disk."""


class Store:
    """An open archive. What goes wrong with its file is raised as `Stopped`."""

    def __init__(self, folder: str, *, can_write: bool = False, patience: int = PATIENCE) -> None:
        """Open it; others who have locked it are waited for, for so many milliseconds."""
        self.folder, self.patience = folder, patience
        self.path = os.path.join(folder, NAME)
        self.connection = (
            connected(self.path, MARK, STEPS) if can_write else reading(self.path, MARK, STEPS, patience)
        )
        if can_write:
            for setting in _WRITING:
                self.row(f"PRAGMA {setting}")
        self.originals = Originals(self.connection)
        self.index: Index | None = None
        """Where it is asked often: see `kept_index`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.connection.close()
        if isinstance(error, MACHINE):
            raise as_retold_error(error, self.path) from error

    def rows(self, asked: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield what a question gives."""
        try:
            yield from self.connection.execute(asked, values)
        except MACHINE as error:
            raise as_retold_error(error, self.path) from error

    def row(self, asked: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """Return the first row that a question gives."""
        return next(self.rows(asked, values), None)

    def fact(self, name: str) -> Any:
        """Return something that the archive knows about itself."""
        found = self.row("SELECT value FROM facts WHERE name = ?", (name,))
        return None if found is None else found[0]

    @property
    def id(self) -> str:
        """What tells this archive from all others."""
        return str(self.fact("id"))

    def stand_still(self) -> None:
        """See everything as it is now, whatever others write, until it is closed; to look often is then cheap."""
        self.connection.execute("BEGIN")
        self.fact("generation")
        self.originals = Originals(self.connection, is_still=True)

    def waiting_for_disk(self) -> DurableCommits:
        """Let each commit in a `with` block end when it, and all before it, are on disk."""
        return DurableCommits(self)

    def rest(self) -> None:
        """Hold on to no moment until something is asked again."""
        if self.index is not None:
            self.index.rest()

    def wait(self, patience: int) -> None:
        """Wait for others, from now on, for so many milliseconds."""
        self.patience = patience
        for connection in self._connections():
            connection.set_busy_timeout(patience)

    def let_go(self) -> None:
        """Close it, whatever has happened; what a thread is still at closes when that is done."""
        try:  # noqa: SIM105 - contextlib takes a while to import
            self.rest()
        except apsw.Error:
            pass
        self.connection.close()

    def interrupt(self) -> None:
        """Break off what is being asked, in another thread: it raises there."""
        for connection in self._connections():
            connection.interrupt()

    def _connections(self) -> list[apsw.Connection]:
        files = [] if self.index is None else self.index.files
        return [self.connection, *(file.connection for file in files)]

    def version(self) -> int:
        """Return a number that changes when others have written; it is of this connection only."""
        found = self.row("PRAGMA data_version")
        return 0 if found is None else int(found[0])

    def set_fact(self, name: str, value: Any) -> None:
        """Let the archive know something about itself."""
        self.connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))


class DurableCommits:
    """A block in which SQLite waits for the disk at each commit."""

    def __init__(self, record: Store) -> None:
        self._record = record

    def __enter__(self) -> None:
        self._record.row("PRAGMA synchronous = FULL")

    def __exit__(self, *_: object) -> None:
        if not self._record.connection.in_transaction:  # else it failed, and SQLite refuses the change
            self._record.row("PRAGMA synchronous = NORMAL")


def packed_summary(summary: str) -> bytes:
    """Return the JSON form of a session as it is kept."""
    return zlib.compress(summary.encode("utf-8", "replace"), 6)


def summary_of(packed: bytes) -> str:
    """Return the JSON form of a session; raises Damaged."""
    try:
        return zlib.decompress(packed).decode()
    except (zlib.error, UnicodeDecodeError, TypeError) as error:
        raise DamagedError(
            f"the archive is damaged: the summary of a session cannot be read ({error}); `retold doctor` names it,"
            " `retold sync --reindex` writes it again from the original files"
        ) from error


def exists(folder: str) -> bool:
    """Tell whether there is an archive; an empty file is none."""
    return is_made(os.path.join(folder, NAME))


def is_emptied(folder: str) -> bool:
    """Tell whether the file of the archive is there, with nothing in it."""
    return os.path.exists(os.path.join(folder, NAME)) and not exists(folder)


def as_text(text: str) -> str:
    """Return text as SQLite takes it: half surrogates are none."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def as_stored(path: str) -> str | bytes:
    """Return a path as SQLite takes it: one that is no text as its bytes."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path


def as_path(stored: str | bytes) -> str:
    """Return a path as the system takes it."""
    return os.fsdecode(stored) if isinstance(stored, bytes) else stored


_CANDIDATE = re.compile(rb"[,/7Qx]")
"""A chunk may end behind these bytes: text, JSON and base64 all have one about every 25 bytes."""
_WINDOW = 32
_MASK = 0x7FF
"""A chunk ends where the checksum of the last 32 bytes has these 11 bits clear: at one of 2,048 candidates."""
_SMALLEST = 1 << 14


def cut_by_content(data: bytes, largest: int) -> Iterator[bytes]:
    """Yield pieces of 16 KB to `largest`, about 64 KB on average; an edit changes the one or two pieces around it."""
    start = 0
    while start < len(data):
        end = _next_cut(data, start, min(start + largest, len(data)))
        yield data[start:end]
        start = end


def _next_cut(data: bytes, start: int, end: int) -> int:
    for candidate in _CANDIDATE.finditer(data, start + _SMALLEST, end):
        place = candidate.end()
        if not zlib.crc32(data[place - _WINDOW : place]) & _MASK:
            return place
    return end
