"""The entry of a sync: the lock, the check whether anything changed, and the sync itself if so."""

from __future__ import annotations

import os
import time

from retold.agents import NAMES
from retold.archive.database import IndexDamagedError, RetoldError
from retold.archive.store import (
    FORGETTING,
    UNREAD,
    Store,
    is_index_current,
    missing_index_files,
    remove_index,
)
from retold.processes import PRIVATE
from retold.synchronization.fingerprints import (
    REVISION,
    CoverageCount,
    find_changed,
    load_coverage,
    price_source,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from retold.synchronization.run import StaleCallback, SyncOutcome


LOCK_FILE = "sync.lock"
PATIENCE = 600.0
_STEP = 0.05


class Lock:
    """The lock of a process that writes to the archive."""

    def __init__(self, folder: str, on_wait: Callable[[], None], patience: float = PATIENCE) -> None:
        """Take the folder of the archive; `on_wait` is called once if another process has the lock."""
        self._path, self._on_wait, self._patience = os.path.join(folder, LOCK_FILE), on_wait, patience

    def __enter__(self) -> Self:
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        PRIVATE.add(self._descriptor)
        deadline = time.monotonic() + self._patience
        is_waiting = False
        while not try_lock(self._descriptor):
            if not is_waiting:
                self._on_wait()
                is_waiting = True
            if time.monotonic() > deadline:
                self.__exit__(None, None, None)
                raise RetoldError(
                    "another retold has been writing to the archive for ten minutes: try again later"
                )
            time.sleep(_STEP)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        PRIVATE.discard(self._descriptor)
        os.close(self._descriptor)


def try_lock(descriptor: int) -> bool:
    """Lock a file without waiting; return whether that succeeded."""
    try:
        import fcntl
    except ImportError:
        return _try_lock_on_windows(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _try_lock_on_windows(descriptor: int) -> bool:
    import msvcrt

    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True


class SyncOptions:
    """The options of a sync: those of the command line, and one for imports."""

    __slots__ = ("agents", "archive_only", "env", "excluded", "folder", "homes", "reindex")

    def __init__(  # noqa: PLR0913 - one for each option
        self,
        folder: str,
        env: Mapping[str, str],
        homes: Sequence[tuple[str | None, str]] = (),
        agents: Sequence[str] = (),
        excluded: Sequence[str] = (),
        *,
        reindex: bool = False,
        archive_only: bool = False,
    ) -> None:
        self.folder, self.env, self.homes, self.agents = folder, env, homes, agents
        self.excluded, self.reindex = tuple(excluded), reindex
        """`reindex` also reads files again that could not be read before."""
        self.archive_only = archive_only
        """Whether only archived files that were not read yet are read, without a look at any home."""

    @property
    def scope(self) -> str:
        """A text that differs for syncs that look at different files."""
        return repr((sorted(map(str, self.homes)), sorted(self.excluded)))


def update(
    options: SyncOptions,
    on_wait: Callable[[], None],
    on_progress: Callable[[int, int], None],
    on_damage: Callable[[str], None] = lambda _: None,
    on_stale: StaleCallback = lambda _store, _agent, _clusters: None,
) -> tuple[CoverageCount, Sequence[object]]:
    """Bring the archive up to date; return the counts, and the problems of reading folders and files.

    A damaged index is reported to `on_damage` and rebuilt. `on_stale` gets the clusters of an agent before their sessions
    are written.
    """
    began = time.perf_counter()
    with Lock(options.folder, on_wait), Store(options.folder, can_write=True) as store:
        if store.fact(FORGETTING) is not None:
            from retold.synchronization.user_changes import finish_forgetting

            finish_forgetting(store)
        if options.reindex:
            remove_index(options.folder)
        is_behind = (
            options.reindex or _is_index_behind(store, options.folder) or store.fact(UNREAD) is not None
        )
        agents = NAMES if is_behind else tuple(options.agents or NAMES)
        changes = dict.fromkeys(agents) if is_behind else _find_changes(store, options, agents)
        read = _sync_growth(store, options, changes, on_stale)
        if read is not None:
            seconds = time.perf_counter() - began
            return load_coverage(
                store, options.scope, agents, seconds, CoverageCount(0, read, 0, 0, 0, 0.0)
            ), ()
        if not options.reindex and store.fact("generation") is not None:
            for path in missing_index_files(options.folder):
                on_damage(f"{path} is missing")
        outcome = sync_or_rebuild(store, options, tuple(changes), on_progress, on_damage, on_stale)
        seconds = time.perf_counter() - began
        return load_coverage(store, options.scope, agents, seconds, outcome.coverage), outcome.problems


def _sync_growth(
    store: Store, options: SyncOptions, changes: Mapping[str, Sequence[str] | None], on_stale: StaleCallback
) -> int | None:
    """Sync if nothing has changed, or files have only grown; return how many were read, None if a whole sync is needed."""
    if not changes:
        store.set_fact("synced_at", time.time())
        return 0
    from retold.synchronization.growth import sync_growth

    return sync_growth(store, options, changes, on_stale)


def sync_or_rebuild(  # noqa: PLR0913 - a sync, and its three callbacks
    store: Store,
    options: SyncOptions,
    agents: Sequence[str],
    on_progress: Callable[[int, int], None],
    on_damage: Callable[[str], None],
    on_stale: StaleCallback = lambda _store, _agent, _clusters: None,
) -> SyncOutcome:
    """Run a sync of some agents; rebuild a damaged index, and run it again for all agents."""
    from retold.synchronization.run import sync

    outcome, damage = None, ""
    try:
        outcome = sync(store, options, agents, on_progress, on_stale)
    except IndexDamagedError as error:
        damage = str(error)
    # The index is removed after the error is gone, and with it every connection to the old files: closing a connection
    # later would delete files beside the new ones.
    if outcome is None:
        on_damage(damage)
        remove_index(options.folder)
        outcome = sync(store, options, NAMES, on_progress, on_stale)
    return outcome


def _is_index_behind(store: Store, folder: str) -> bool:
    """Return whether the index lacks something, of whichever agent."""
    generation = store.fact("generation")
    return generation is not None and not is_index_current(folder, store.id, generation)


def _find_changes(store: Store, options: SyncOptions, agents: Sequence[str]) -> dict[str, list[str] | None]:
    """Return the agents whose files may have changed since the last sync, each with these files as `find_changed` does."""
    facts = {"revision": REVISION, "prices": price_source(options.folder)}
    changes = {agent: find_changed(store, f"{options.scope} {agent}", options.env, facts) for agent in agents}
    return {agent: found for agent, found in changes.items() if found is None or found}
