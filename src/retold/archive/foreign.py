"""What another's archive holds: its files, their originals, and what was written by hand; each value is looked at first."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import apsw
import msgspec
import zstandard

from retold.archive.annotations import add_tag, keep_title, tags
from retold.archive.database import DamagedError, NewerVersionError, RetoldError, as_retold_error, take_steps
from retold.archive.relations import resolve_relations
from retold.archive.rows import stable_uid
from retold.archive.schema import MARK, STEPS
from retold.archive.store import (
    CHUNK,
    NAME,
    Chunk,
    Originals,
    Store,
    as_path,
    as_stored,
    as_text,
    digest,
    packed,
    seal,
)
from retold.archive.sync_state import clues_of, keep_clues
from retold.archive.writer import DISPENSABLE
from retold.model.session import Clue, Evidence

if TYPE_CHECKING:
    from retold.archive.sync_state import Told


READ = ("sources", "originals", "pieces", "chunks", "session_sources", "sessions", "clues", "names", "tags")
"""The tables that are looked into; whatever else a file holds is left alone."""
LARGEST_VALUE = 16 << 20
"""Bytes of one value: what we write is smaller by far."""
COPY = "import-"
"""How folders begin in which copies lie while they are read."""
_HEAD = b"SQLite format 3\0"
_ATTEMPTS = 3
_STILL = "?immutable=1"
_Status = tuple[tuple[int, int] | None, ...]


class NoArchive(Exception):  # noqa: N818 - it says what it is
    """A file that is missing, or no archive of ours: told in one line, exit code 1."""


class OpenArchive(NamedTuple):
    """Another's archive, connected to."""

    connection: apsw.Connection
    path: str
    before: "_Status | None"
    """What it was like; nothing where a copy is read."""

    def see_that_it_stayed(self) -> None:
        """Raise if somebody has written to it: what was read by then may be of two moments."""
        if self.before is not None and _status(self.path) != self.before:
            raise RetoldError(
                f"{self.path} was written to meanwhile: import it again when nobody writes to it"
            )


@contextmanager
def opened(given: str, folder: str | None) -> Iterator[OpenArchive]:
    """Open another's archive, by its path or that of its folder.

    A copy that is needed is made in a folder of ours; without one, where the system has what is temporary.
    """
    path = os.path.join(given, NAME) if os.path.isdir(given) else given
    _see_that_it_is_one(path)
    with ExitStack() as stack:
        before = _status(path)
        uri = _uri(path, folder, stack)
        try:
            connection = stack.enter_context(_connected(uri))
            _see_that_it_is_ours(connection, path)
            _see_that_it_is_whole(connection, path)
        except (apsw.Error, UnicodeDecodeError) as error:
            raise trouble(error, path) from error
        found = OpenArchive(connection, path, before if uri.endswith(_STILL) else None)
        try:
            yield found
        except DamagedError:
            found.see_that_it_stayed()
            raise


def _see_that_it_is_one(path: str) -> None:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise NoArchive(f"{path} is no file")
        with open(path, "rb") as file:
            head = file.read(len(_HEAD))
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise NoArchive(f"{path}: no such file") from error
    if head != _HEAD:
        raise NoArchive(f"{path} is no archive of retold's")


def _status(path: str) -> _Status:
    """Return size and time of a database and of what SQLite puts beside it; whoever only reads may leave that empty."""

    def one(name: str) -> tuple[int, int] | None:
        try:
            found = os.stat(name)
        except OSError:
            return None
        return (found.st_size, found.st_mtime_ns) if found.st_size else None

    return tuple(one(path + end) for end in ("", "-wal", "-journal"))


def _uri(path: str, folder: str | None, stack: ExitStack) -> str:
    """Return where to read: the file itself where nothing waits beside it, else a copy in which that is told."""
    _, wal, journal = _status(path)
    if journal:
        raise DamagedError(f"{path} was left in the middle of a change: open it with its own retold first")
    if not wal:
        return Path(path).absolute().as_uri() + _STILL
    # SQLite would write beside the file to read what waits there.
    if folder is not None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    private = stack.enter_context(tempfile.TemporaryDirectory(dir=folder, prefix=COPY))
    return Path(_copied(path, private)).absolute().as_uri()


def sweep(folder: str) -> None:
    """Remove the copies of imports that were stopped; nobody else may be at one."""
    for entry in os.scandir(folder) if os.path.isdir(folder) else ():
        if entry.name.startswith(COPY) and entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)


def _copied(path: str, folder: str) -> str:
    copy = os.path.join(folder, NAME)
    for _ in range(_ATTEMPTS):
        before = _status(path)
        for end in ("", "-wal"):
            _copy(path + end, copy + end)
        if _status(path) == before:
            return copy
    raise RetoldError(f"{path} is being written to: import it again when nobody writes to it")


def _copy(path: str, copy: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
    with open(path, "rb") as theirs, open(os.open(copy, flags, 0o600), "wb") as ours:
        shutil.copyfileobj(theirs, ours)


@contextmanager
def _connected(uri: str) -> Iterator[apsw.Connection]:
    way = apsw.SQLITE_OPEN_READONLY if uri.endswith(_STILL) else apsw.SQLITE_OPEN_READWRITE
    connection = apsw.Connection(uri, flags=way | apsw.SQLITE_OPEN_URI)
    try:
        for switch, value in (
            (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
            (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
            (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
            (apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0),
        ):
            connection.config(switch, value)
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, LARGEST_VALUE)
        for setting in ("cell_size_check = 1", "mmap_size = 0", "query_only = 1"):
            connection.execute(f"PRAGMA {setting}")
        yield connection
    finally:
        connection.close()


def _see_that_it_is_ours(connection: apsw.Connection, path: str) -> None:
    """Raise unless every table that is looked into is, to the letter, one that we have made."""
    version = connection.pragma("user_version")
    if connection.pragma("application_id") != MARK or version < 1:
        raise NoArchive(f"{path} is a database, but no archive of retold's")
    if version > len(STEPS):
        raise NewerVersionError(f"{path} was written by a later version of retold: use that one")
    model = apsw.Connection(":memory:")
    take_steps(model, STEPS[:version])
    asked = "SELECT type, sql FROM sqlite_schema WHERE name = ?1 OR tbl_name = ?1 AND type = 'trigger'"
    for name in READ:
        if list(connection.execute(asked, (name,))) != list(model.execute(asked, (name,))):
            raise DamagedError(f"{path}: “{name}” in it is not what retold writes; nothing was taken from it")


def _see_that_it_is_whole(connection: apsw.Connection, path: str) -> None:
    faults = [fault for (fault,) in connection.execute("PRAGMA integrity_check(1)") if fault != "ok"]
    if faults:
        raise DamagedError(f"{path} is damaged ({faults[0]}); nothing was taken from it")


def trouble(error: apsw.Error | UnicodeDecodeError, path: str) -> RetoldError:
    """Return an error of SQLite's, or text that is none, as what it says of another's file."""
    match error:
        case UnicodeDecodeError():
            return DamagedError(f"{path} is damaged (text that is no UTF-8); nothing more was taken from it")
        case apsw.CorruptError() | apsw.NotADBError() | apsw.TooBigError() | apsw.SQLError():
            return DamagedError(f"{path} is damaged ({error}); nothing more was taken from it")
    return as_retold_error(error, path)


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


def own_paths(record: Store, agent: str) -> Iterator[tuple[int, str, str, str]]:
    """Yield every file of an agent of which something is kept, with its home and the folder of its sessions."""
    asked = (
        "SELECT id, path, home, folder FROM sources WHERE agent = ?"
        " AND EXISTS (SELECT 1 FROM originals WHERE source = sources.id AND is_latest >= 0)"
    )
    for number, *places in record.rows(asked, (agent,)):
        path, home, folder = map(as_path, places)
        yield number, path, home, folder


def own_originals(record: Store, source: int) -> list[tuple[int, int, int]]:
    """Return what is kept of a file, with size and time of each, the latest first."""
    asked = (
        "SELECT id, size, modified_ns FROM originals WHERE source = ? AND is_latest >= 0"
        " ORDER BY modified_ns DESC, size DESC, name"
    )
    return [(number, size, modified_ns) for number, size, modified_ns in record.rows(asked, (source,))]


def sessions_of(record: Store, source: int) -> list[int]:
    """Return the names of the sessions that were read from a file."""
    asked = "SELECT name FROM sessions JOIN session_sources ON session = sessions.id WHERE source = ?"
    return [name for (name,) in record.rows(asked, (source,))]


def put_source(  # noqa: PLR0913 - as many as a file has
    record: Store,
    agent: str,
    path: str,
    home: str,
    folder: str,
    label: str,
    cluster: str | None,
    *,
    is_beside: bool,
) -> int:
    """Make sure that a file of another machine is known, and that its cluster is read again."""
    ask, place = record.connection.execute, as_stored(path)
    ask("UPDATE sources SET revision = 0 WHERE agent = ? AND cluster IS ?", (agent, cluster))
    known = ask("SELECT id, cluster FROM sources WHERE agent = ? AND path = ?", (agent, place)).fetchone()
    if known is not None:
        # It may belong to another cluster by now than its name tells.
        ask("UPDATE sources SET revision = 0 WHERE agent = ? AND cluster IS ?", (agent, known[1]))
        return int(known[0])
    ask(
        "INSERT INTO sources VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, x'', 0, 0, NULL, '')",
        (agent, as_stored(home), as_stored(folder), as_text(label), place, cluster, is_beside),
    )
    return record.connection.last_insert_rowid()


def put_original(
    record: Store, source: int, named: Sequence[str], modified_ns: int, pieces: Iterable[bytes]
) -> None:
    """Keep what a file held, a piece in memory at a time; `named` are the words that tell it from others."""
    ask, originals = record.connection.execute, record.originals
    ask("INSERT INTO originals VALUES (NULL, random(), ?, 0, 0, ?, x'')", (source, modified_ns))
    number, size, digests = record.connection.last_insert_rowid(), 0, []
    for place, data in enumerate(pieces):
        name = digest(data)
        is_known = ask("SELECT 1 FROM chunks WHERE digest = ?", (name,)).get
        originals.put(number, [Chunk(name, len(data), b"" if is_known else packed(data))], place)
        digests.append(name.hex())
        size += len(data)
    told = stable_uid("original", *named, str(size), str(modified_ns), *digests)
    if ask("SELECT 1 FROM originals WHERE name = ?", (told,)).get is not None:
        originals.drop(number)
        return
    state = (told, size, seal(size, lambda start, length: originals.data(number, start, length)), number)
    ask("UPDATE originals SET name = ?, size = ?, seal = ? WHERE id = ?", state)


def choose_latest(record: Store, source: int) -> None:
    """Let the original of the latest time be the one that a file holds; what one of them begins with goes."""
    ask = record.connection.execute
    kept: list[tuple[int, int]] = []
    for number, size, modified_ns in own_originals(record, source):
        if any(_begins(record.originals, longer, number, size) for longer, length in kept if length >= size):
            ask("UPDATE originals SET is_latest = ? WHERE id = ?", (DISPENSABLE, number))
            continue
        ask("UPDATE originals SET is_latest = ? WHERE id = ?", (not kept, number))
        if not kept:
            ask("UPDATE sources SET size = ?, modified_ns = ? WHERE id = ?", (size, modified_ns, source))
        kept.append((number, size))


def _begins(originals: Originals, longer: int, number: int, size: int) -> bool:
    """Tell whether one original begins with another."""
    place = 0
    for _, length in list(originals.pieces(number)):
        if originals.data(number, place, length) != originals.data(longer, place, length):
            return False
        place += length
    return place == size


def add_clues(record: Store, home: str, told: Iterable["Told"]) -> None:
    """Keep what a home of another machine said about its projects, beside what is known of it."""
    known = clues_of(record, home)
    new = {(as_text(root), evidence, key and as_text(key)) for root, evidence, key in told}
    if new - known:
        keep_clues(record, home, sorted(known | new, key=str))


def hand_of(record: Store, name: int) -> tuple[str | None, list[str]]:
    """Return the title and the tags that a person gave."""
    row = record.row("SELECT title FROM names WHERE name = ?", (name,))
    return (None if row is None else row[0]), tags(record, name)


def put_hand(record: Store, titles: Sequence[tuple[int, str]], given: Sequence[tuple[int, str]]) -> None:
    """Keep titles and tags, and tell the sessions that have them."""
    for name, title in titles:
        keep_title(record, name, as_text(title))
    for name, tag in given:
        add_tag(record, name, as_text(tag))
    asked = "SELECT id FROM sessions WHERE name = ?"
    names = {name for name, _ in (*titles, *given)}
    resolve_relations(record, [number for name in names for (number,) in record.rows(asked, (name,))])
