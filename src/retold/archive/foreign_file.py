"""Another's archive, opened to be read: nothing in it is trusted, and nothing of it is changed."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw

from retold.archive.database import DamagedError, NewerVersionError, RetoldError, as_retold_error, take_steps
from retold.archive.record import NAME
from retold.archive.schema import MARK, STEPS

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
