"""The way into a sync: nothing heavy is imported unless something changed."""

from __future__ import annotations

import time

from retold.agents import NAMES
from retold.archive.database import IndexDamagedError
from retold.archive.index.files import is_in_step, missing_files, remove_index
from retold.archive.store import FORGETTING, UNREAD, Store
from retold.ingest.answers import is_unchanged
from retold.ingest.coverage import told_coverage
from retold.ingest.lock import Lock
from retold.ingest.price_source import priced_by
from retold.ingest.revision import REVISION

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from retold.ingest.coverage import CoverageCount
    from retold.ingest.order import Order, SyncOutcome

    TellStale = Callable[[Store, str, Collection[str]], None]


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
            from retold.ingest.forgetting import finish_forgetting

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

        from retold.ingest.order import Order

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

    from retold.ingest.sync import sync

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
