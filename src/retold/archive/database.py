"""SQLite files: opened for their owner only, brought up to date, and what stops us told as what it is."""

from __future__ import annotations

import os

import apsw

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PATIENCE = 20_000
"""Milliseconds to wait for another writer."""
MACHINE = (
    apsw.AuthError, apsw.BusyError, apsw.CantOpenError, apsw.CorruptError, apsw.FullError, apsw.IOError, apsw.LockedError,
    apsw.NoMemError, apsw.NotADBError, apsw.PermissionsError, apsw.ReadOnlyError,
)  # fmt: skip
"""What SQLite tells us about the machine; all else it tells is a bug of ours."""


_WRONG_CONTENT = (apsw.SQLITE_IOERR_SHORT_READ, apsw.SQLITE_IOERR_CORRUPTFS, apsw.SQLITE_IOERR_DATA)
"""Errors of reading that are about what a file holds: it ends early, or a checksum differs."""


class RetoldError(Exception):
    """The machine stopped us: told in one line, exit code 4.

    No OSError: whoever reads a session's file must not take a damaged archive for a file that cannot be opened.
    """


class DamagedError(RetoldError):
    """A file is not what we wrote; it is left as it is."""


class IndexDamagedError(DamagedError):
    """A file of the text index is missing or broken; it can be made anew."""


class NewerVersionError(RetoldError):
    """A later version wrote the file."""


def connection_to(path: str, flags: int = apsw.SQLITE_OPEN_READWRITE) -> apsw.Connection:
    """Return a connection to a file, whatever bytes its path is made of."""
    name = sqlite_name(path)
    return apsw.Connection(name, flags=flags if name == path else flags | apsw.SQLITE_OPEN_URI)


def sqlite_name(path: str) -> str:
    """Return a path as SQLite takes it: as a URI where it is no UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        from urllib.parse import quote  # nobody else pays for it

        return f"file://{quote(os.fsencode(os.path.abspath(path)))}"
    return path


def connected(path: str, mark: int, steps: Sequence[str]) -> apsw.Connection:
    """Return a connection to a file of ours, made if there is none, with every step of its schema taken."""
    if not is_made(path):
        _make(path)
    try:
        connection = connection_to(path)
        connection.set_busy_timeout(PATIENCE)
        _bring_up(connection, path, mark, steps)
    except apsw.Error as error:
        raise as_retold_error(error, path) from error
    return connection


def reading(path: str, mark: int, steps: Sequence[str], patience: int = PATIENCE) -> apsw.Connection:
    """Return a connection that only reads; raises FileNotFoundError where nothing was made yet."""
    if not is_made(path):
        raise FileNotFoundError(path)
    try:
        connection = connection_to(path)
        connection.set_busy_timeout(patience)
        if _version(connection, path, mark, steps) < len(steps):
            _bring_up(connection, path, mark, steps)
        connection.execute("PRAGMA query_only = 1")
    except (apsw.ReadOnlyError, apsw.CantOpenError) as error:
        connection = _untouched(path, mark, steps, error)
    except apsw.Error as error:
        raise as_retold_error(error, path) from error
    return connection


def is_log_emptied(connection: apsw.Connection) -> bool:
    """Write the log of changes into the file and empty it; tell whether that was possible."""
    is_busy, *_ = next(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
    return not is_busy


def is_made(path: str) -> bool:
    """Tell whether there is a database that is not empty; raises Damaged where only its log of changes is left.

    SQLite would delete the log without a word.
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


def _untouched(path: str, mark: int, steps: Sequence[str], error: apsw.Error) -> apsw.Connection:
    """Return a connection to a file that nobody may write, or in a folder where nobody may: nothing is put beside it."""
    for connect in _ways(path):
        try:
            connection = connect()
            if _version(connection, path, mark, steps) == len(steps):
                return connection
        except (apsw.ReadOnlyError, apsw.CantOpenError):  # SQLite would have its own files beside it
            continue
        except apsw.Error as later:
            raise as_retold_error(later, path) from later
    raise as_retold_error(error, path) from error


def _ways(path: str) -> Iterator[Callable[[], apsw.Connection]]:
    """Yield how to open a file only to read it; as one that never changes if nothing waits to be written into it."""
    from pathlib import Path

    yield lambda: connection_to(path, apsw.SQLITE_OPEN_READONLY)
    wal = f"{path}-wal"
    is_settled = not os.path.exists(wal) or not os.path.getsize(wal)
    if is_settled and not os.access(os.path.dirname(path) or ".", os.W_OK):
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        yield lambda: apsw.Connection(f"{Path(path).absolute().as_uri()}?immutable=1", flags=flags)


def _make(path: str) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    # SQLite gives the files beside it the same permissions.
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


def take_steps(connection: apsw.Connection, steps: Sequence[str]) -> None:
    """Take steps of a schema, with the functions that they call."""
    from retold.archive.keyed_hashes import keyed_hash  # few connections take a step

    function: Callable[..., bytes] = keyed_hash
    connection.create_scalar_function("keyed_hash", function, 2, deterministic=True)
    for step in steps:
        connection.execute(step)


def _bring_up(connection: apsw.Connection, path: str, mark: int, steps: Sequence[str]) -> None:
    if _version(connection, path, mark, steps) == len(steps):
        return
    if connection.pragma("journal_mode") != "wal":
        connection.pragma("journal_mode", "wal")
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it meanwhile.
        take_steps(connection, steps[_version(connection, path, mark, steps) :])
        connection.pragma("application_id", mark)
        connection.pragma("user_version", len(steps))
        connection.execute("COMMIT")
    except BaseException:  # Ctrl-C too: half a step must not wait for whoever asks next
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def index_trouble(error: apsw.Error, path: str) -> RetoldError:
    """Return an error about a file of the text index; as damage, after which it is made again, only where its content is wrong.

    A full disk, a quota, a limit of the file's size, a broken cable: the file may be whole.
    """
    is_content = isinstance(error, apsw.CorruptError | apsw.NotADBError | apsw.SQLError)
    if is_content or getattr(error, "extendedresult", 0) in _WRONG_CONTENT:
        return IndexDamagedError(f"{path} is damaged ({error})")
    return as_retold_error(error, path)


def as_retold_error(error: apsw.Error, path: str) -> RetoldError:
    """Return an error of SQLite's as what a person can do about it."""
    match error:
        case apsw.CorruptError() | apsw.NotADBError():
            return DamagedError(
                f"{path} is damaged ({error}); it was left as it is: move it away, then `retold sync` begins anew "
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
