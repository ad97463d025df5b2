"""The way into a sync: nothing heavy is imported unless something changed."""

from __future__ import annotations

import os
import time

from retold.agents import NAMES
from retold.archive.database import IndexDamagedError, RetoldError
from retold.archive.index.files import is_in_step, missing_files, remove_index
from retold.archive.store import FORGETTING, UNREAD, Store
from retold.processes import PRIVATE
from retold.synchronization.fingerprints import REVISION, is_unchanged, priced_by, told_coverage

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from retold.synchronization.fingerprints import CoverageCount
    from retold.synchronization.run import Order, SyncOutcome

    TellStale = Callable[[Store, str, Collection[str]], None]


NAME = "sync.lock"
PATIENCE = 600.0
_STEP = 0.05


class Lock:
    """Held by whoever brings the archive up to date."""

    def __init__(self, folder: str, tell_wait: Callable[[], None], patience: float = PATIENCE) -> None:
        """Take the folder of the archive; `tell_wait` is called once, if another has the lock."""
        self._path, self._tell_wait, self._patience = os.path.join(folder, NAME), tell_wait, patience

    def __enter__(self) -> Self:
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        PRIVATE.add(self._descriptor)
        ends = time.monotonic() + self._patience
        is_told = False
        while not is_taken(self._descriptor):
            if not is_told:
                self._tell_wait()
                is_told = True
            if time.monotonic() > ends:
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


def is_taken(descriptor: int) -> bool:
    """Try to take the lock, without waiting."""
    try:
        import fcntl
    except ImportError:
        return _taken_on_windows(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _taken_on_windows(descriptor: int) -> bool:
    import msvcrt

    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True


class Task:
    """What a sync is asked to do, as the command line says it."""

    __slots__ = ("agents", "env", "excluded", "folder", "homes", "reindex")

    def __init__(  # noqa: PLR0913 - one for each thing that can be said
        self,
        folder: str,
        env: Mapping[str, str],
        homes: Sequence[tuple[str | None, str]] = (),
        agents: Sequence[str] = (),
        excluded: Sequence[str] = (),
        *,
        reindex: bool = False,
    ) -> None:
        self.folder, self.env, self.homes, self.agents = folder, env, homes, agents
        self.excluded, self.reindex = excluded, reindex

    @property
    def scope(self) -> str:
        """What tells syncs apart that look at different things."""
        return repr((sorted(map(str, self.homes)), sorted(self.excluded)))


def update(
    task: Task,
    tell_wait: Callable[[], None],
    tell_progress: Callable[[int, int], None],
    tell_damage: Callable[[str], None] = lambda _: None,
    tell_stale: TellStale = lambda _record, _agent, _clusters: None,
) -> tuple[CoverageCount, Sequence[object]]:
    """Bring the archive up to date; return how much was read, and the problems that stood in the way.

    A damaged index is told and made anew. Before sessions are written, their clusters are told, with their agent.
    """
    began = time.perf_counter()
    with Lock(task.folder, tell_wait), Store(task.folder, can_write=True) as record:
        if record.fact(FORGETTING) is not None:
            from retold.synchronization.user_changes import finish_forgetting

            finish_forgetting(record)
        if task.reindex:
            remove_index(task.folder)
        is_behind = task.reindex or _is_behind(record, task.folder) or record.fact(UNREAD) is not None
        agents = NAMES if is_behind else tuple(task.agents or NAMES)
        stale = agents if is_behind else _stale(record, task, agents)
        if not stale:
            return told_coverage(record, task.scope, agents, time.perf_counter() - began), ()
        if not task.reindex and record.fact("generation") is not None:
            for path in missing_files(task.folder):
                tell_damage(f"{path} is missing")
        from pathlib import Path

        from retold.synchronization.run import Order

        given = [(label, Path(folder)) for label, folder in task.homes]
        order = Order(
            task.folder, task.scope, task.env, given, stale, tuple(task.excluded), is_reindex=task.reindex
        )
        outcome = brought_up(record, order, tell_progress, tell_damage, tell_stale)
        coverage = told_coverage(record, task.scope, agents, time.perf_counter() - began, outcome.coverage)
        return coverage, outcome.problems


def brought_up(
    record: Store,
    order: Order,
    tell_progress: Callable[[int, int], None],
    tell_damage: Callable[[str], None],
    tell_stale: TellStale = lambda _record, _agent, _clusters: None,
) -> SyncOutcome:
    """Run a sync; a damaged index is told and made anew."""
    from msgspec.structs import replace

    from retold.synchronization.run import sync

    outcome, damage = None, ""
    try:
        outcome = sync(record, order, tell_progress, tell_stale)
    except IndexDamagedError as error:
        damage = str(error)
    # Not before the error has gone, and with it every connection to the old files: one that is closed later would
    # remove what stands beside the new ones.
    if outcome is None:
        tell_damage(damage)
        remove_index(order.folder)
        outcome = sync(record, replace(order, agents=NAMES), tell_progress, tell_stale)
    return outcome


def _is_behind(record: Store, folder: str) -> bool:
    """Tell whether the index lacks something; it may be of any agent."""
    generation = record.fact("generation")
    return generation is not None and not is_in_step(folder, record.id, generation)


def _stale(record: Store, task: Task, agents: Sequence[str]) -> tuple[str, ...]:
    """Return the agents of which something may be new."""
    facts = {"revision": REVISION, "prices": priced_by(task.folder)}
    stale = tuple(
        agent for agent in agents if not is_unchanged(record, f"{task.scope} {agent}", task.env, facts)
    )
    if not stale:
        record.set_fact("synced_at", time.time())
    return stale
