"""What another's archive holds: its files, their originals, and what was written by hand; each value is looked at first."""

from collections.abc import Iterator, Sequence
from typing import Any, get_args

import apsw
import msgspec
import zstandard

from retold.archive.database import DamagedError
from retold.archive.foreign_file import trouble
from retold.archive.originals import CHUNK, digest
from retold.archive.record import as_path
from retold.model.session import Clue, Evidence

_EVIDENCE = get_args(Evidence)
_LARGE, _DENSEST = 64 << 20, 500
"""From which size on an original is compared with what the file holds of it, and how many times that it may be.

What agents write has times and ids in every line, and each chunk is packed for itself: even one line that is written over and over
comes to a few hundred times. Far more is made on purpose: whoever reads it would need any amount of memory.
"""


class ForeignFile(msgspec.Struct, frozen=True):
    """A file that the other has read."""

    id: int
    agent: str
    home: str
    folder: str
    label: str | None
    path: str
    cluster: str | None
    """As the other had it; nothing but a hint."""
    is_beside: bool


class ForeignOriginal(msgspec.Struct, frozen=True):
    """What one of the other's files held."""

    id: int
    size: int
    modified_ns: int


class OtherArchive:
    """Another's archive."""

    def __init__(self, connection: apsw.Connection, path: str) -> None:
        self._connection, self._path = connection, path
        self._pieces: dict[int, list[tuple[int, bytes, int]]] = {}
        self._chunk: tuple[int, bytes] = (-1, b"")

    def files(self) -> Iterator[ForeignFile]:
        """Yield every file of which something is kept."""
        asked = (
            "SELECT id, agent, home, folder, label, path, cluster, is_beside FROM sources"
            " WHERE EXISTS (SELECT 1 FROM originals WHERE source = sources.id AND is_latest >= 0) ORDER BY agent, path"
        )
        for number, agent, home, folder, label, path, cluster, is_beside in self._rows(asked):
            self._see(
                isinstance(agent, str) and all(isinstance(one, str | bytes) for one in (home, folder, path))
            )
            self._see(all(one is None or isinstance(one, str) for one in (label, cluster)))
            places = (as_path(home), as_path(folder))
            yield ForeignFile(number, agent, *places, label, as_path(path), cluster, bool(is_beside))

    def originals(self) -> Iterator[tuple[int, ForeignOriginal]]:
        """Yield what is kept, each with the file that held it."""
        asked = "SELECT source, id, size, modified_ns FROM originals WHERE is_latest >= 0 ORDER BY id"
        for source, *state in self._rows(asked):
            self._see(all(isinstance(one, int) for one in (source, *state)) and state[1] >= 0)
            yield source, ForeignOriginal(*state)

    def holders(self) -> Iterator[tuple[int, int]]:
        """Yield the files from which sessions were read, each with a session's name."""
        asked = "SELECT source, name FROM session_sources JOIN sessions ON sessions.id = session"
        for source, name in self._rows(asked):
            self._see(isinstance(source, int) and isinstance(name, int))
            yield source, name

    def titles(self) -> list[tuple[int, str]]:
        """Return the titles that were given by hand."""
        return self._hand("SELECT name, title FROM names ORDER BY name")

    def tags(self) -> list[tuple[int, str]]:
        """Return the tags that were given by hand."""
        return self._hand("SELECT name, tag FROM tags ORDER BY name, tag")

    def _hand(self, asked: str) -> list[tuple[int, str]]:
        rows = [(name, text) for name, text in self._rows(asked)]
        self._see(all(isinstance(name, int) and isinstance(text, str) for name, text in rows))
        return rows

    def clues(self) -> Iterator[tuple[str, Clue]]:
        """Yield what homes said about their projects, each with its home."""
        for home, root, evidence, native_key in self._rows(
            "SELECT home, root, evidence, native_key FROM clues"
        ):
            self._see(isinstance(home, str | bytes) and isinstance(root, str) and evidence in _EVIDENCE)
            self._see(native_key is None or isinstance(native_key, str))
            yield as_path(home), Clue(root, evidence, native_key)

    def pieces(self, original: ForeignOriginal) -> list[tuple[int, bytes, int]]:
        """Return the chunks of an original: number, digest and size of each; they are asked for once."""
        if original.id not in self._pieces:
            asked = (
                "SELECT chunk, digest, size, length(packed) FROM pieces LEFT JOIN chunks ON chunks.id = chunk"
                " WHERE original = ? ORDER BY place"
            )
            rows = list(self._rows(asked, (original.id,)))
            self._see(all(isinstance(size, int) and 0 < size <= CHUNK for _, _, size, _ in rows))
            self._see(all(isinstance(name, bytes) for _, name, _, _ in rows))
            self._see(sum(size for _, _, size, _ in rows) == original.size)
            held = sum({chunk: length for chunk, _, _, length in rows}.values())
            self._see(original.size <= max(_LARGE, _DENSEST * held))
            self._pieces[original.id] = [(chunk, name, size) for chunk, name, size, _ in rows]
        return self._pieces[original.id]

    def chunks(self, original: ForeignOriginal) -> Iterator[bytes]:
        """Yield what stands in an original, chunk by chunk."""
        for chunk, name, size in self.pieces(original):
            yield self._unpacked(chunk, name, size)

    def data(self, original: ForeignOriginal, start: int, size: int) -> bytes:
        """Return a part of an original, for which only its chunks are unpacked."""
        parts, place, end = [], 0, start + size
        for chunk, name, length in self.pieces(original):
            if place >= end:
                break
            if place + length > start:
                parts.append(self._unpacked(chunk, name, length)[max(start - place, 0) : end - place])
            place += length
        return b"".join(parts)

    def _unpacked(self, chunk: int, name: bytes, size: int) -> bytes:
        """Return a chunk, unpacked no further than its size says, and compared with its digest; the last is kept."""
        if self._chunk[0] != chunk:
            row = next(self._rows("SELECT packed FROM chunks WHERE id = ?", (chunk,)), (None,))
            packed = row[0]
            self._see(isinstance(packed, bytes) and _claimed(packed) == size)
            try:
                data = zstandard.ZstdDecompressor().decompress(packed, max_output_size=size)
            except zstandard.ZstdError as error:
                raise DamagedError(
                    f"{self._path} is damaged ({error}); nothing more was taken from it"
                ) from error
            self._see(len(data) == size and digest(data) == name)
            self._chunk = (chunk, data)
        return self._chunk[1]

    def _see(self, is_right: bool) -> None:  # noqa: FBT001 - what is seen
        if not is_right:
            raise DamagedError(
                f"{self._path} holds what retold does not write; nothing more was taken from it"
            )

    def _rows(self, asked: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        try:
            yield from self._connection.execute(asked, values)
        except (apsw.Error, UnicodeDecodeError) as error:
            raise trouble(error, self._path) from error


def _claimed(packed: bytes) -> int:
    """Return how much a chunk says that it holds: room for so much is made before it is unpacked."""
    try:
        return zstandard.frame_content_size(packed)
    except zstandard.ZstdError:
        return -1
