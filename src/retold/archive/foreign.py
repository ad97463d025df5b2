"""Archives of others, for imports: their files, originals, titles and tags. Every value is checked before it is used."""

import os
import re
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

from retold.archive.annotations import add_tag, load_session_tags, write_title
from retold.archive.database import (
    DamagedError,
    NewerVersionError,
    RetoldError,
    as_retold_error,
    run_migrations,
)
from retold.archive.queries.lookups import OriginalVersion
from retold.archive.relations import resolve_relations
from retold.archive.rows import stable_uid
from retold.archive.schema import MARK, STEPS
from retold.archive.store import (
    ARCHIVE_NAME,
    CHUNK,
    Chunk,
    Originals,
    Store,
    as_path,
    as_stored,
    as_text,
    compress,
    digest,
    sample_checksum,
)
from retold.archive.sync_state import load_clues, write_clues
from retold.archive.writer import SUPERSEDED
from retold.model.session import Clue, Evidence

if TYPE_CHECKING:
    from retold.archive.sync_state import ProjectClue


TABLES = (
    "sources", "originals", "pieces", "chunks", "session_sources", "sessions", "clues", "titles", "tags",
)  # fmt: skip
"""The tables that are read; any other content is ignored."""
_RENAMED = 7
"""The version that renamed columns and tables."""
_EARLIER_NAMES = {"uid": "name", "titles": "names", "position": "place", "is_companion": "is_beside"}
"""Names of columns and tables, each with its name before that version."""
LARGEST_VALUE = 16 << 20
"""Bytes of one value: retold writes far smaller ones."""
COPY_PREFIX = "import-"
"""The prefix of temporary folders with copies."""
_HEAD = b"SQLite format 3\0"
_ATTEMPTS = 3
_IMMUTABLE = "?immutable=1"
_Status = tuple[tuple[int, int] | None, ...]


class NotAnArchive(Exception):  # noqa: N818 - it says what it is
    """A file is missing, or no archive of retold: one line for the user, exit code 1."""


class OpenArchive(NamedTuple):
    """A connection to the archive of another."""

    connection: apsw.Connection
    path: str
    before: "_Status | None"
    """The status of its files when it was opened; None for a copy."""

    def check_unchanged(self) -> None:
        """Raise if another process has written to it: what was read may be of two moments."""
        if self.before is not None and _status(self.path) != self.before:
            raise RetoldError(
                f"{self.path} was written to meanwhile: import it again when nobody writes to it"
            )


@contextmanager
def open_archive(given: str, folder: str | None) -> Iterator[OpenArchive]:
    """Open the archive of another, by its path or that of its folder.

    A copy that is needed is made in `folder`, or in the system's temporary folder.
    """
    path = os.path.join(given, ARCHIVE_NAME) if os.path.isdir(given) else given
    _check_header(path)
    with ExitStack() as stack:
        before = _status(path)
        uri = _uri(path, folder, stack)
        try:
            connection = stack.enter_context(_connect(uri))
            _check_tables(connection, path)
            fault = connection.execute("PRAGMA integrity_check(1)").get
            if fault != "ok":
                raise DamagedError(f"{path} is damaged ({fault}); nothing was taken from it")
        except (apsw.Error, UnicodeDecodeError) as error:
            raise as_foreign_error(error, path) from error
        found = OpenArchive(connection, path, before if uri.endswith(_IMMUTABLE) else None)
        try:
            yield found
        except DamagedError:
            found.check_unchanged()
            raise


def _check_header(path: str) -> None:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise NotAnArchive(f"{path} is no file")
        with open(path, "rb") as file:
            head = file.read(len(_HEAD))
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise NotAnArchive(f"{path}: no such file") from error
    if head != _HEAD:
        raise NotAnArchive(f"{path} is no archive of retold's")


def _status(path: str) -> _Status:
    """Return size and time of a database, its write-ahead log and its journal; None for one that is missing or empty."""

    def one(name: str) -> tuple[int, int] | None:
        try:
            found = os.stat(name)
        except OSError:
            return None
        return (found.st_size, found.st_mtime_ns) if found.st_size else None

    return tuple(one(path + end) for end in ("", "-wal", "-journal"))


def _uri(path: str, folder: str | None, stack: ExitStack) -> str:
    """Return the URI to read: the file itself, or a copy if it has a write-ahead log."""
    _, wal, journal = _status(path)
    if journal:
        raise DamagedError(f"{path} was left in the middle of a change: open it with its own retold first")
    if not wal:
        return Path(path).absolute().as_uri() + _IMMUTABLE
    # To read the log, SQLite would write beside the file.
    if folder is not None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    private = stack.enter_context(tempfile.TemporaryDirectory(dir=folder, prefix=COPY_PREFIX))
    return Path(_copy_archive(path, private)).absolute().as_uri()


def remove_copies(folder: str) -> None:
    """Remove the copies of imports that were killed; the caller has the lock."""
    for entry in os.scandir(folder) if os.path.isdir(folder) else ():
        if entry.name.startswith(COPY_PREFIX) and entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)


def _copy_archive(path: str, folder: str) -> str:
    copy = os.path.join(folder, ARCHIVE_NAME)
    for _ in range(_ATTEMPTS):
        before = _status(path)
        for end in ("", "-wal"):
            _copy_file(path + end, copy + end)
        if _status(path) == before:
            return copy
    raise RetoldError(f"{path} is being written to: import it again when nobody writes to it")


def _copy_file(path: str, copy: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
    with open(path, "rb") as theirs, open(os.open(copy, flags, 0o600), "wb") as ours:
        shutil.copyfileobj(theirs, ours)


@contextmanager
def _connect(uri: str) -> Iterator[apsw.Connection]:
    way = apsw.SQLITE_OPEN_READONLY if uri.endswith(_IMMUTABLE) else apsw.SQLITE_OPEN_READWRITE
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


def _check_tables(connection: apsw.Connection, path: str) -> None:
    """Raise unless the SQL of each table that is read is what retold writes."""
    version = connection.pragma("user_version")
    if connection.pragma("application_id") != MARK or version < 1:
        raise NotAnArchive(f"{path} is a database, but no archive of retold's")
    if version > len(STEPS):
        raise NewerVersionError(f"{path} was written by a later version of retold: use that one")
    model = apsw.Connection(":memory:")
    run_migrations(model, STEPS[:version])
    sql = "SELECT type, sql FROM sqlite_schema WHERE name = ?1 OR tbl_name = ?1 AND type = 'trigger'"
    for table in TABLES:
        name = _names_of(version, table)
        if list(connection.execute(sql, (name,))) != list(model.execute(sql, (name,))):
            raise DamagedError(f"{path}: “{name}” in it is not what retold writes; nothing was taken from it")


def _names_of(version: int, sql: str) -> str:
    """Return SQL with the names of columns and tables that an archive of a version has."""
    if version >= _RENAMED:
        return sql
    return re.sub(rf"\b({'|'.join(_EARLIER_NAMES)})\b", lambda found: _EARLIER_NAMES[found[0]], sql)


def as_foreign_error(error: apsw.Error | UnicodeDecodeError, path: str) -> RetoldError:
    """Return an error of SQLite, or of text that is not UTF-8, as one about the file of another."""
    match error:
        case UnicodeDecodeError():
            return DamagedError(f"{path} is damaged (text that is no UTF-8); nothing more was taken from it")
        case apsw.CorruptError() | apsw.NotADBError() | apsw.TooBigError() | apsw.SQLError():
            return DamagedError(f"{path} is damaged ({error}); nothing more was taken from it")
    return as_retold_error(error, path)


_EVIDENCE = get_args(Evidence)
_LARGE, _DENSEST = 64 << 20, 500
"""From this size on, an original is compared with the size of its chunks, and may be so many times larger.

Agents write times and ids into every line, and each chunk is compressed by itself: even a line that is repeated without end
compresses only a few hundred times. A file that compresses better is crafted, and would need any amount of memory.
"""


class ForeignFile(msgspec.Struct, frozen=True):
    """A file in the archive of another."""

    id: int
    agent: str
    home: str
    folder: str
    label: str | None
    path: str
    cluster: str | None
    """The cluster in that archive, as a hint."""
    is_companion: bool


class SourcePath(NamedTuple):
    """A file in our own archive: its path, its home, and the folder of its sessions."""

    id: int
    path: str
    home: str
    folder: str


class OtherArchive:
    """The archive of another."""

    def __init__(self, connection: apsw.Connection, path: str) -> None:
        self._connection, self._path = connection, path
        self._version: int = connection.pragma("user_version")
        self._pieces: dict[int, list[tuple[int, bytes, int]]] = {}
        self._chunk: tuple[int, bytes] = (-1, b"")

    def files(self) -> Iterator[ForeignFile]:
        """Yield every file that has an original."""
        sql = (
            "SELECT id, agent, home, folder, label, path, cluster, is_companion FROM sources"
            " WHERE EXISTS (SELECT 1 FROM originals WHERE source = sources.id AND is_latest >= 0) ORDER BY agent, path"
        )
        for number, agent, home, folder, label, path, cluster, is_companion in self._rows(sql):
            self._check(
                isinstance(agent, str) and all(isinstance(one, str | bytes) for one in (home, folder, path))
            )
            self._check(all(one is None or isinstance(one, str) for one in (label, cluster)))
            places = (as_path(home), as_path(folder))
            yield ForeignFile(number, agent, *places, label, as_path(path), cluster, bool(is_companion))

    def originals(self) -> Iterator[tuple[int, OriginalVersion]]:
        """Yield the originals, each with the id of its file."""
        sql = "SELECT source, id, size, modified_ns FROM originals WHERE is_latest >= 0 ORDER BY id"
        for source, *state in self._rows(sql):
            self._check(all(isinstance(one, int) for one in (source, *state)) and state[1] >= 0)
            yield source, OriginalVersion(*state)

    def session_sources(self) -> Iterator[tuple[int, int]]:
        """Yield the ids of files, each with the uid of a session that was read from it."""
        sql = "SELECT source, uid FROM session_sources JOIN sessions ON sessions.id = session"
        for source, uid in self._rows(sql):
            self._check(isinstance(source, int) and isinstance(uid, int))
            yield source, uid

    def titles(self) -> list[tuple[int, str]]:
        """Return uids of sessions with the titles that a person gave."""
        return self._load_annotations("SELECT uid, title FROM titles ORDER BY uid")

    def tags(self) -> list[tuple[int, str]]:
        """Return uids of sessions with the tags that a person gave."""
        return self._load_annotations("SELECT uid, tag FROM tags ORDER BY uid, tag")

    def _load_annotations(self, sql: str) -> list[tuple[int, str]]:
        rows = [(name, text) for name, text in self._rows(sql)]
        self._check(all(isinstance(name, int) and isinstance(text, str) for name, text in rows))
        return rows

    def clues(self) -> Iterator[tuple[str, Clue]]:
        """Yield homes with their clues to projects."""
        for home, root, evidence, native_key in self._rows(
            "SELECT home, root, evidence, native_key FROM clues"
        ):
            self._check(isinstance(home, str | bytes) and isinstance(root, str) and evidence in _EVIDENCE)
            self._check(native_key is None or isinstance(native_key, str))
            yield as_path(home), Clue(root, evidence, native_key)

    def pieces(self, original: OriginalVersion) -> list[tuple[int, bytes, int]]:
        """Return number, digest and size of the chunks of an original, from a cache."""
        if original.id not in self._pieces:
            sql = (
                "SELECT chunk, digest, size, length(packed) FROM pieces LEFT JOIN chunks ON chunks.id = chunk"
                " WHERE original = ? ORDER BY position"
            )
            rows = list(self._rows(sql, (original.id,)))
            self._check(all(isinstance(size, int) and 0 < size <= CHUNK for _, _, size, _ in rows))
            self._check(all(isinstance(name, bytes) for _, name, _, _ in rows))
            self._check(sum(size for _, _, size, _ in rows) == original.size)
            compressed = sum({chunk: length for chunk, _, _, length in rows}.values())
            self._check(original.size <= max(_LARGE, _DENSEST * compressed))
            self._pieces[original.id] = [(chunk, name, size) for chunk, name, size, _ in rows]
        return self._pieces[original.id]

    def chunks(self, original: OriginalVersion) -> Iterator[bytes]:
        """Yield the content of an original, chunk by chunk."""
        for chunk, name, size in self.pieces(original):
            yield self._read_chunk(chunk, name, size)

    def read(self, original: OriginalVersion, start: int, size: int) -> bytes:
        """Return a part of an original, for which only its chunks are decompressed."""
        parts, offset, end = [], 0, start + size
        for chunk, name, length in self.pieces(original):
            if offset >= end:
                break
            if offset + length > start:
                parts.append(self._read_chunk(chunk, name, length)[max(start - offset, 0) : end - offset])
            offset += length
        return b"".join(parts)

    def _read_chunk(self, chunk: int, name: bytes, size: int) -> bytes:
        """Return a chunk, decompressed up to its stated size and compared with its digest; the last one is cached."""
        if self._chunk[0] != chunk:
            packed: Any = next(self._rows("SELECT packed FROM chunks WHERE id = ?", (chunk,)), (None,))[0]
            self._check(isinstance(packed, bytes) and _stated_size(packed) == size)
            try:
                data = zstandard.ZstdDecompressor().decompress(packed, max_output_size=size)
            except zstandard.ZstdError as error:
                raise DamagedError(
                    f"{self._path} is damaged ({error}); nothing more was taken from it"
                ) from error
            self._check(len(data) == size and digest(data) == name)
            self._chunk = (chunk, data)
        return self._chunk[1]

    def _check(self, is_right: bool) -> None:  # noqa: FBT001 - a check
        if not is_right:
            raise DamagedError(
                f"{self._path} holds what retold does not write; nothing more was taken from it"
            )

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        try:
            yield from self._connection.execute(_names_of(self._version, sql), values)
        except (apsw.Error, UnicodeDecodeError) as error:
            raise as_foreign_error(error, self._path) from error


def _stated_size(packed: bytes) -> int:
    """Return the size that a chunk states: so much memory is allocated to decompress it."""
    try:
        return zstandard.frame_content_size(packed)
    except zstandard.ZstdError:
        return -1


def load_file_paths(store: Store, agent: str) -> Iterator[SourcePath]:
    """Yield every file of an agent that has an original."""
    sql = (
        "SELECT id, path, home, folder FROM sources WHERE agent = ?"
        " AND EXISTS (SELECT 1 FROM originals WHERE source = sources.id AND is_latest >= 0)"
    )
    for number, *paths in store.rows(sql, (agent,)):
        yield SourcePath(number, *map(as_path, paths))


def load_originals(store: Store, source: int) -> list[OriginalVersion]:
    """Return the originals of a file, the latest first."""
    sql = (
        "SELECT id, size, modified_ns FROM originals WHERE source = ? AND is_latest >= 0"
        " ORDER BY modified_ns DESC, size DESC, uid"
    )
    return [OriginalVersion(*row) for row in store.rows(sql, (source,))]


def load_session_uids(store: Store, source: int) -> list[int]:
    """Return the uids of the sessions that were read from a file."""
    sql = "SELECT uid FROM sessions JOIN session_sources ON session = sessions.id WHERE source = ?"
    return [uid for (uid,) in store.rows(sql, (source,))]


def write_source(  # noqa: PLR0913 - as many as a file has
    store: Store,
    agent: str,
    path: str,
    home: str,
    folder: str,
    label: str,
    cluster: str | None,
    *,
    is_companion: bool,
) -> int:
    """Write a file of another machine, and mark its cluster as unread; return its id."""
    execute, stored = store.connection.execute, as_stored(path)
    mark_unread = "UPDATE sources SET revision = 0 WHERE agent = ? AND cluster IS ?"
    execute(mark_unread, (agent, cluster))
    known = execute(
        "SELECT id, cluster FROM sources WHERE agent = ? AND path = ?", (agent, stored)
    ).fetchone()
    if known is not None:
        execute(mark_unread, (agent, known[1]))  # it may have been merged into another cluster
        return int(known[0])
    execute(
        "INSERT INTO sources VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, x'', 0, 0, NULL, '')",
        (agent, as_stored(home), as_stored(folder), as_text(label), stored, cluster, is_companion),
    )
    return store.connection.last_insert_rowid()


def write_original(
    store: Store, source: int, words: Sequence[str], modified_ns: int, parts: Iterable[bytes]
) -> None:
    """Write an original, part by part; its uid is made of `words`, size, time and content."""
    execute, originals = store.connection.execute, store.originals
    execute("INSERT INTO originals VALUES (NULL, random(), ?, 0, 0, ?, x'')", (source, modified_ns))
    number, size, digests = store.connection.last_insert_rowid(), 0, []
    for position, data in enumerate(parts):
        name = digest(data)
        is_known = execute("SELECT 1 FROM chunks WHERE digest = ?", (name,)).get
        originals.write(number, [Chunk(name, len(data), b"" if is_known else compress(data))], position)
        digests.append(name.hex())
        size += len(data)
    uid = stable_uid("original", *words, str(size), str(modified_ns), *digests)
    if execute("SELECT 1 FROM originals WHERE uid = ?", (uid,)).get is not None:
        originals.drop(number)
        return
    checksum = sample_checksum(size, lambda start, length: originals.read(number, start, length))
    execute(
        "UPDATE originals SET uid = ?, size = ?, checksum = ? WHERE id = ?", (uid, size, checksum, number)
    )


def choose_latest(store: Store, source: int) -> None:
    """Mark the original with the latest time as the latest; those that a later one begins with are superseded."""
    execute = store.connection.execute
    kept: list[OriginalVersion] = []
    for one in load_originals(store, source):
        if any(_begins_with(store.originals, later, one) for later in kept):
            execute("UPDATE originals SET is_latest = ? WHERE id = ?", (SUPERSEDED, one.id))
            continue
        execute("UPDATE originals SET is_latest = ? WHERE id = ?", (not kept, one.id))
        if not kept:
            sql = "UPDATE sources SET size = ?, modified_ns = ? WHERE id = ?"
            execute(sql, (one.size, one.modified_ns, source))
        kept.append(one)


def _begins_with(originals: Originals, later: OriginalVersion, one: OriginalVersion) -> bool:
    """Return whether a later original begins with another."""
    if later.size < one.size:
        return False
    start = 0
    for _, length in list(originals.pieces(one.id)):
        if originals.read(one.id, start, length) != originals.read(later.id, start, length):
            return False
        start += length
    return start == one.size


def add_clues(store: Store, home: str, clues: Iterable["ProjectClue"]) -> None:
    """Add the clues of a home of another machine to those that are known."""
    known = load_clues(store, home)
    new = {(as_text(root), evidence, key and as_text(key)) for root, evidence, key in clues}
    if new - known:
        write_clues(store, home, sorted(known | new, key=str))


def load_annotations(store: Store, uid: int) -> tuple[str | None, list[str]]:
    """Return the title and the tags that a person gave."""
    row = store.row("SELECT title FROM titles WHERE uid = ?", (uid,))
    return (None if row is None else row[0]), load_session_tags(store, uid)


def write_annotations(
    store: Store, titles: Sequence[tuple[int, str]], tags: Sequence[tuple[int, str]]
) -> None:
    """Write titles and tags, and update the sessions that have them."""
    for uid, title in titles:
        write_title(store, uid, as_text(title))
    for uid, tag in tags:
        add_tag(store, uid, as_text(tag))
    sql = "SELECT id FROM sessions WHERE uid = ?"
    uids = {uid for uid, _ in (*titles, *tags)}
    resolve_relations(store, [number for uid in uids for (number,) in store.rows(sql, (uid,))])
