"""SQLite connections: only the owner may read the files, schemas are migrated, and errors say what a user can do."""

from __future__ import annotations

import os

import apsw

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

BUSY_TIMEOUT_MS = 20_000
"""How long to wait for another writer."""
MACHINE_ERRORS = (
    apsw.AuthError, apsw.BusyError, apsw.CantOpenError, apsw.CorruptError, apsw.FullError, apsw.IOError, apsw.LockedError,
    apsw.NoMemError, apsw.NotADBError, apsw.PermissionsError, apsw.ReadOnlyError,
)  # fmt: skip
"""Errors that the machine causes. Any other error of SQLite is a bug in retold."""


_CONTENT_ERRORS = (apsw.SQLITE_IOERR_SHORT_READ, apsw.SQLITE_IOERR_CORRUPTFS, apsw.SQLITE_IOERR_DATA)
"""Errors of reading that are about the content of a file: it ends early, or a checksum differs."""


class RetoldError(Exception):
    """The machine stopped us: one line for the user, exit code 4.

    It is no OSError: code that reads a session's file must not take a damaged archive for a file that cannot be opened.
    """


class DamagedError(RetoldError):
    """The content of a file is not what retold wrote. The file stays as it is."""


class IndexDamagedError(DamagedError):
    """A file of the text index is missing or broken. The index can be made again."""


class NewerVersionError(RetoldError):
    """A later version of retold wrote the file."""


def open_connection(path: str, flags: int = apsw.SQLITE_OPEN_READWRITE) -> apsw.Connection:
    """Return a connection to a file; its path may be any bytes."""
    name = sqlite_path(path)
    return apsw.Connection(name, flags=flags if name == path else flags | apsw.SQLITE_OPEN_URI)


def sqlite_path(path: str) -> str:
    """Return a path as SQLite takes it: as a URI if it is not UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        from urllib.parse import quote  # rarely needed

        return f"file://{quote(os.fsencode(os.path.abspath(path)))}"
    return path


def connect(path: str, mark: int, steps: Sequence[str]) -> apsw.Connection:
    """Return a connection to a database, created if missing and migrated."""
    if not has_database(path):
        _create_file(path)
    try:
        connection = open_connection(path)
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        migrate(connection, path, mark, steps)
    except apsw.Error as error:
        raise as_retold_error(error, path) from error
    return connection


def connect_read_only(
    path: str, mark: int, steps: Sequence[str], patience: int = BUSY_TIMEOUT_MS
) -> apsw.Connection:
    """Return a connection that only reads; raises FileNotFoundError if there is no database yet."""
    if not has_database(path):
        raise FileNotFoundError(path)
    try:
        connection = open_connection(path)
        connection.set_busy_timeout(patience)
        migrate(connection, path, mark, steps)
        connection.execute("PRAGMA query_only = 1")
    except (apsw.ReadOnlyError, apsw.CantOpenError) as error:
        connection = _connect_without_writing(path, mark, steps, error)
    except apsw.Error as error:
        raise as_retold_error(error, path) from error
    return connection


def empty_log(connection: apsw.Connection) -> bool:
    """Write the write-ahead log into the file and empty it; return whether that was possible."""
    is_busy, *_ = next(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
    return not is_busy


def has_database(path: str) -> bool:
    """Return whether there is a database that is not empty; raises DamagedError if only its write-ahead log is left.

    SQLite would delete that log silently.
    """
    try:
        if os.path.getsize(path):
            return True
        is_log_left = os.path.getsize(f"{path}-wal") > 0
    except FileNotFoundError:
        return False
    if is_log_left:
        raise DamagedError(
            f"{path} is damaged: it is empty, but {path}-wal holds changes of it. Both files are unchanged."
            f" Restore a copy of the archive, or move both files away and run `retold sync` to begin a new one"
        )
    return False


def _connect_without_writing(
    path: str, mark: int, steps: Sequence[str], error: apsw.Error
) -> apsw.Connection:
    """Return a connection to a file or folder that may not be written; SQLite creates no file beside it."""
    for connect in _read_only_connections(path):
        try:
            connection = connect()
            if _version(connection, path, mark, steps) == len(steps):
                return connection
        except (apsw.ReadOnlyError, apsw.CantOpenError):  # SQLite would create files beside it
            continue
        except apsw.Error as later:
            raise as_retold_error(later, path) from later
    raise as_retold_error(error, path) from error


def _read_only_connections(path: str) -> Iterator[Callable[[], apsw.Connection]]:
    """Yield functions that open a file to read it; the last opens it as immutable, if no write-ahead log is pending."""
    from pathlib import Path

    yield lambda: open_connection(path, apsw.SQLITE_OPEN_READONLY)
    wal = f"{path}-wal"
    is_settled = not os.path.exists(wal) or not os.path.getsize(wal)
    if is_settled and not os.access(os.path.dirname(path) or ".", os.W_OK):
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        yield lambda: apsw.Connection(f"{Path(path).absolute().as_uri()}?immutable=1", flags=flags)


def _create_file(path: str) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    # SQLite gives its log and shared memory the same permissions.
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))


def _version(connection: apsw.Connection, path: str, mark: int, steps: Sequence[str]) -> int:
    version, found = connection.pragma("user_version"), connection.pragma("application_id")
    if found != mark and (version or found or connection.pragma("schema_version")):
        raise DamagedError(
            f"{path} is a database, but not one of retold's; it was left as it is: move it away"
        )
    if version > len(steps):
        raise NewerVersionError(f"{path} was written by a later version of retold: use that one")
    return int(version)


def run_migrations(connection: apsw.Connection, steps: Sequence[str]) -> None:
    """Run steps of a schema, with the SQL functions that they call."""
    from retold.archive.annotations import keyed_hash  # few connections migrate

    function: Callable[..., bytes] = keyed_hash
    connection.create_scalar_function("keyed_hash", function, 2, deterministic=True)
    for step in steps:
        connection.execute(step)


def migrate(connection: apsw.Connection, path: str, mark: int, steps: Sequence[str]) -> None:
    """Run the steps that a database lacks, in one transaction."""
    if _version(connection, path, mark, steps) == len(steps):
        return
    if connection.pragma("journal_mode") != "wal":
        connection.pragma("journal_mode", "wal")
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it meanwhile.
        run_migrations(connection, steps[_version(connection, path, mark, steps) :])
        connection.pragma("application_id", mark)
        connection.pragma("user_version", len(steps))
        connection.execute("COMMIT")
    except BaseException:  # Ctrl-C too: no half step may stay open
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def as_index_error(error: apsw.Error, path: str) -> RetoldError:
    """Return an error about a file of the text index.

    It is an IndexDamagedError, after which the index is made again, only if the content is wrong. After a full disk, a quota or a
    broken cable the file may be whole.
    """
    is_content = isinstance(error, apsw.CorruptError | apsw.NotADBError | apsw.SQLError)
    if is_content or getattr(error, "extendedresult", 0) in _CONTENT_ERRORS:
        return IndexDamagedError(f"{path} is damaged ({error})")
    return as_retold_error(error, path)


def as_retold_error(error: apsw.Error, path: str) -> RetoldError:
    """Return an error of SQLite with what a user can do about it."""
    match error:
        case apsw.CorruptError() | apsw.NotADBError():
            return DamagedError(
                f"{path} is damaged ({error}); it was left as it is: move it away, then `retold sync` starts again "
                f"with what the agents still have, or bring back a copy of it"
            )
        case apsw.FullError():
            return RetoldError(
                f"{path}: the disk is full; nothing was lost, run the command again when there is room"
            )
        case apsw.BusyError() | apsw.LockedError():
            return RetoldError(f"{path}: another retold is writing; try again when it is done")
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.CantOpenError() | apsw.AuthError():
            return RetoldError(f"{path}: no permission to write there ({error})")
        case _:
            return RetoldError(f"{path}: {error}")
