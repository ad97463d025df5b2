"""What files held, byte for byte: in compressed chunks, each kept once."""

from __future__ import annotations

from _thread import get_ident
from functools import cache

from retold.archive.database import DamagedError

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import apsw
    from zstandard import ZstdCompressor, ZstdDecompressor

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
        from retold.archive.cutting import cut_by_content

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
