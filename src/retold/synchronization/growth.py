"""A sync in which files have only grown: they are read on from their bookmarks, without a look at anything else.

Whatever is unusual is left to a whole sync. Most of the imports wait until the file is being read by a thread.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock, start_new_thread
from stat import S_ISREG

from retold.archive.database import MACHINE_ERRORS, DamagedError, RetoldError
from retold.archive.growth import is_shared, load_growing_file, load_marks, write_growth
from retold.archive.store import as_stored, digest
from retold.archive.sync_state import write_dependency
from retold.synchronization.fingerprints import REVISION, SOURCE, FileMarks, check_changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from retold.archive.growth import GrowingFile, GrownSession
    from retold.archive.store import Store
    from retold.synchronization.continuation import Growth, GrowthReader
    from retold.synchronization.run import StaleCallback
    from retold.synchronization.update import SyncOptions

    Fingerprint = tuple[str, str | bytes, str | None]
    """The scope of a sync, a file, and the file's fingerprint."""


LARGEST_FILE, LARGEST_GROWTH = 64 << 20, 4 << 20
"""Bytes of the largest file, and of the largest growth, that is read on from a bookmark."""
# Opening a FIFO does not wait for a writer. Windows lacks the first flag, other systems the second.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def sync_growth(
    store: Store, options: SyncOptions, changes: Mapping[str, Sequence[str] | None], on_stale: StaleCallback
) -> int | None:
    """Bring the archive up to date with files that have only grown; return their number, None if a whole sync is needed."""
    found = _look(store, options, changes)
    if found is None:
        return None
    fingerprints, grown = found
    if grown:
        try:
            return _sync_grown(store, grown, fingerprints, on_stale)
        except DamagedError:  # a whole sync isolates it, or rebuilds the index
            return None
    for scope, path, fingerprint in fingerprints:
        write_dependency(store, scope, SOURCE, path, fingerprint)
    store.set_fact("synced_at", time.time())
    return 0


def _look(
    store: Store, options: SyncOptions, changes: Mapping[str, Sequence[str] | None]
) -> tuple[list[Fingerprint], list[GrownFile]] | None:
    """Return the fingerprints of files that may have changed, and those that have grown; None for any other change."""
    fingerprints: list[Fingerprint] = []
    grown: list[GrownFile] = []
    for agent, paths in changes.items():
        if paths is None:
            return None
        for path in paths:
            marks = load_marks(store, agent, path, REVISION)
            fingerprint, is_changed = check_changed(path, None if marks is None else FileMarks(*marks))
            fingerprints.append((f"{options.scope} {agent}", as_stored(path), fingerprint))
            opened = _open(store, agent, path) if is_changed else None
            if is_changed and opened is None:
                return None
            if opened is not None:
                grown.append(opened)
    return fingerprints, grown


def _sync_grown(
    store: Store, grown: Sequence[GrownFile], fingerprints: Sequence[Fingerprint], on_stale: StaleCallback
) -> int | None:
    """Write files that have grown; return their number, None if one of them has to be read whole."""
    from retold.synchronization.continuation import GrowthReader

    reader = GrowthReader(store)
    try:
        growths = _read(store, reader, grown)
        for growth in growths or ():
            on_stale(store, growth.session.file.agent, (growth.session.file.cluster,))
        sessions = [growth.session for growth in growths or ()]
        generation = _write(store, sessions, fingerprints) if growths else None
        if growths is None or generation is None:
            return None
        reader.write_index(growths, generation)
    finally:
        reader.close()
    return len(grown)


def _open(store: Store, agent: str, path: str) -> GrownFile | None:
    """Open a file that has only become larger; None if it cannot be read on from a bookmark."""
    file = load_growing_file(store, agent, path, REVISION)
    if file is None:
        return None
    try:
        descriptor = os.open(path, _FLAGS)
    except (OSError, ValueError):
        return None
    status = os.fstat(descriptor)
    is_grown = S_ISREG(status.st_mode) and file.size < status.st_size <= LARGEST_FILE
    if not is_grown or status.st_size - file.size > LARGEST_GROWTH:
        os.close(descriptor)
        return None
    return GrownFile(store, file, descriptor, status)


class GrownFile:
    """An open file that has grown. A thread reads it, and compares its beginning with the archived chunks."""

    def __init__(self, store: Store, file: GrowingFile, descriptor: int, status: os.stat_result) -> None:
        self.file, self.read_ns = file, time.time_ns()
        self.size, self.modified_ns = status.st_size, status.st_mtime_ns
        self.identity = f"{status.st_ctime_ns} {status.st_ino}"
        self._chunks = [
            (size, known)
            for (_, size), known in zip(
                store.originals.pieces(file.original), store.originals.digests(file.original), strict=True
            )
        ]
        self._data: bytes | None = None
        self._is_done = allocate_lock()
        self._is_done.acquire()
        start_new_thread(self._run, (descriptor,))

    def data(self) -> bytes | None:
        """Return the content; None if the file does not begin with what was archived, or was written to meanwhile."""
        with self._is_done:
            return self._data

    def _run(self, descriptor: int) -> None:
        try:
            data = _read_all(descriptor, self.size)
            now = os.fstat(descriptor)
            is_settled = (len(data), now.st_size, now.st_mtime_ns) == (self.size, self.size, self.modified_ns)
            if is_settled and self._begins_as_archived(data):
                self._data = data
        except OSError:  # a whole sync reports it
            pass
        finally:
            os.close(descriptor)
            self._is_done.release()

    def _begins_as_archived(self, data: bytes) -> bool:
        view, offset = memoryview(data), 0
        for size, known in self._chunks:
            if digest(view[offset : offset + size]) != known:
                return False
            offset += size
        return offset == int(self.file.size)


def _read_all(descriptor: int, size: int) -> bytes:
    pieces = [os.read(descriptor, size)]
    left = size - len(pieces[0])
    while left and (piece := os.read(descriptor, left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces) if len(pieces) > 1 else pieces[0]


def _read(store: Store, reader: GrowthReader, grown: Sequence[GrownFile]) -> Sequence[Growth] | None:
    """Return the growth of files; None if one of them has to be read whole."""
    try:
        growths = [reader.read(file) for file in grown]
    except RetoldError:
        raise
    except Exception:  # noqa: BLE001 - a whole sync isolates and reports the failure
        return None
    return None if any(is_shared(store, growth.session) for growth in growths) else growths


def _write(store: Store, sessions: Sequence[GrownSession], fingerprints: Iterable[Fingerprint]) -> int | None:
    """Write sessions and fingerprints in one transaction; return the generation, None if the archive does not accept them."""
    generation = int(store.fact("generation")) + 1
    with store.commit_durably():
        store.connection.execute("BEGIN IMMEDIATE")
        try:
            store.set_fact("generation", generation)
            _write_sessions(store, sessions)
            for scope, path, fingerprint in fingerprints:
                write_dependency(store, scope, SOURCE, path, fingerprint)
            store.set_fact("synced_at", time.time())
            store.connection.execute("COMMIT")
        except Exception as error:
            store.connection.execute("ROLLBACK")
            store.originals.reset()
            if isinstance(error, (RetoldError, *MACHINE_ERRORS)):
                raise
            return None
    return generation


def _write_sessions(store: Store, sessions: Sequence[GrownSession]) -> None:
    from retold.synchronization.prices import PriceBook

    prices = PriceBook(store, store.folder)
    for session in sessions:
        write_growth(store, session, prices.cost)
