"""Sessions followed while they are written: archived, and told as they grow."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from retold.archive.queries.lookups import keys_of_cluster, stamped_keys
from retold.archive.store import Store
from retold.care.news import EventDiff
from retold.model.events import AnyStep
from retold.model.session import Session
from retold.sessions.load import load_session
from retold.synchronization.fingerprints import CoverageCount
from retold.synchronization.update import Task, update

MANY = 100
"""Clusters that are more than this are not read before they are written: of their sessions, times tell what is new."""
SECOND_HAND = ("prompts-only", "checkpoint")
"""What is said here is told in the session where it was said; a log of prompts is only written earlier."""


class News(NamedTuple):
    """What is new in one session."""

    session: Session
    steps: Sequence[AnyStep]


class WatchListener(NamedTuple):
    """Who hears how a sync goes: that it waits, how far the first one is, what is damaged, what stood in the way."""

    tell_wait: Callable[[], None]
    tell_progress: Callable[[int, int], None]
    tell_damage: Callable[[str], None]
    tell_problem: Callable[[object], None]


class SessionWatch:
    """Follows the homes of a task; what the archive has when it begins is not told."""

    def __init__(self, task: Task, ear: WatchListener, *, with_thoughts: bool = False) -> None:
        self._task, self._ear, self._with_thoughts = task, ear, with_thoughts
        self._told: dict[int, EventDiff] = {}
        """Of the sessions that changed since, by name."""
        self._stamps: dict[int, bytes] = {}
        self._older: frozenset[int] = frozenset()
        """The sessions that were there before."""
        self._problems: set[object] = set()
        self._began_at = datetime.now(UTC)

    def begin(self) -> CoverageCount:
        """Bring the archive up to date; what is in it then is known."""
        coverage = self._sync(self._ear.tell_progress)
        self._began_at = datetime.now(UTC)
        with Store(self._task.folder) as record:
            self._stamps = {name: stamp for name, (*_, stamp) in stamped_keys(record).items()}
        self._older = frozenset(self._stamps)
        self._told.clear()
        return coverage

    def look(self) -> list[News]:
        """Bring the archive up to date, and return what is new, session by session."""
        self._sync(lambda _done, _size: None)
        with Store(self._task.folder) as record:
            return sorted(self._changed(record), key=_place)

    def _sync(self, tell_progress: Callable[[int, int], None]) -> CoverageCount:
        ear = self._ear
        coverage, problems = update(self._task, ear.tell_wait, tell_progress, ear.tell_damage, self._remember)
        for problem in problems:
            if problem not in self._problems:
                self._problems.add(problem)
                ear.tell_problem(problem)
        return coverage

    def _remember(self, record: Store, agent: str, clusters: Collection[str]) -> None:
        """Take what sessions say that are about to be written anew as told, unless they are followed already.

        One that somebody else has written anew since we began says more than that: there, times have to do.
        """
        if len(clusters) > MANY:
            return
        now = stamped_keys(record)
        for cluster in clusters:
            for name, key in keys_of_cluster(record, agent, cluster):
                if name in self._older and name not in self._told and now[name][-1] == self._stamps[name]:
                    session = load_session(record, key)
                    if session is not None:
                        self._new_told(name).skip(session)

    def _changed(self, record: Store) -> Iterator[News]:
        for name, (agent, key, stamp) in stamped_keys(record).items():
            if self._stamps.get(name) == stamp:
                continue
            self._stamps[name] = stamp
            if self._task.agents and agent not in self._task.agents:
                continue
            session = load_session(record, key)
            if session is None or session.kind in SECOND_HAND:
                continue
            steps = list(self._told_of(name, session).news(session))
            if steps:
                yield News(session, steps)

    def _told_of(self, name: int, session: Session) -> EventDiff:
        if name in self._told:
            return self._told[name]
        told = self._new_told(name)
        if name in self._older:
            told.skip(session, self._began_at)
        return told

    def _new_told(self, name: int) -> EventDiff:
        return self._told.setdefault(name, EventDiff(with_thoughts=self._with_thoughts))


def _place(news: News) -> tuple[datetime, str]:
    """Return what sessions are told in the order of: when the first new thing in each was said."""
    first = next((step.at for step in news.steps if step.at is not None), None)
    return first or datetime.max.replace(tzinfo=UTC), news.session.key


def rested(look: Callable[[], None]) -> None:
    """Look, and rest for as long as it took: however large a session is, half of a processor is left."""
    began = time.monotonic()
    look()
    time.sleep(time.monotonic() - began)
