"""The archive: one file, one writer, any number of readers."""

from __future__ import annotations

import os
import zlib

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
from retold.archive.originals import Originals
from retold.archive.schema import MARK, STEPS

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType
    from typing import Any, Self

    from retold.archive.index import Index

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
