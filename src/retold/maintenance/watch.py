"""Sessions followed while they are written: archived, and told as they grow."""

import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby, takewhile
from typing import NamedTuple

from msgspec.structs import replace

from retold.agents import NAMES
from retold.agents.registry import AGENTS
from retold.archive.queries.lookups import keys_of_cluster, stamped_keys
from retold.archive.store import Store
from retold.model.events import AnyStep, AssistantText, SessionEnd, ToolResult, ToolUse, sourced_steps
from retold.model.session import Context, Message, Session
from retold.sessions.load import load_session
from retold.synchronization.fingerprints import CoverageCount
from retold.synchronization.update import Task, update


class FreshMessage(NamedTuple):
    """A message that was not met before."""

    message: Message
    is_repetition: bool
    """Whether it says nothing that was not said before."""
    had_model: bool
    """Whether that was said by a model that is known."""


def pending_copies(fresh: Sequence[FreshMessage]) -> list[Message]:
    """Return those of the new messages that may be echoes: repetitions behind which nothing new comes."""
    last = list(takewhile(lambda one: one.is_repetition, reversed(fresh)))
    return [one.message for one in last] if any(map(_is_marked, last)) else []


def _is_marked(one: FreshMessage) -> bool:
    """Tell whether a message has what a copy has: the environment in a prompt, or an answer without its model."""
    if one.message.role == "assistant":
        return one.message.model is None and one.had_model
    return any(isinstance(part, Context) and part.kind == "environment" for part in one.message.parts)


Name = tuple[object, ...]
"""What an event is known by from one reading to the next."""
Content = tuple[object, ...]
"""What it says, or which call it is about."""


class WatchEvent(NamedTuple):
    """An event of a session, and the message that tells it; the start of a session is told by none."""

    name: Name
    content: Content
    message: Message | None
    step: AnyStep

    @property
    def has_model(self) -> bool:
        """Whether the model that said it is known."""
        return self.message is not None and self.message.model is not None

    @property
    def is_own(self) -> bool:
        """Whether it happened in this session, and was not copied from another, where it is told."""
        return self.message is None or self.message.own


class EventDiff:
    """What was told of one session so far."""

    def __init__(self, *, with_thoughts: bool = False) -> None:
        self._with_thoughts = with_thoughts
        self._contents: dict[Name, Content] = {}

    def skip(self, session: Session, until: datetime | None = None) -> None:
        """Take what a session says as told; given a time, only what it says from before, or without a time."""
        for one in self._happenings(session):
            at = None if one.step.at_derived else one.step.at
            if until is None or at is None or at < until:
                self._contents[one.name] = one.content

    def news(self, session: Session) -> Iterator[AnyStep]:
        """Yield what a session says that was not told yet."""
        found = {one.name: one for one in self._happenings(session)}
        gone = self._gone(found)
        held = pending_copies(list(self._fresh(found.values(), gone)))
        for one in found.values():
            earlier = self._contents.get(one.name)
            if earlier != one.content and gone[one.content]:
                self._rename(gone[one.content].pop(), found)
            elif earlier is not None:
                yield from _added(one, earlier)
            elif any(one.message is message for message in held):
                continue
            elif one.is_own:
                yield one.step
            self._contents[one.name] = one.content

    def _gone(self, found: Mapping[Name, WatchEvent]) -> defaultdict[Content, list[Name]]:
        """Return what was told and is not there under its name any more, by what it says."""
        gone: defaultdict[Content, list[Name]] = defaultdict(list)
        for name, content in self._contents.items():
            if name not in found or found[name].content != content:
                gone[content].append(name)
        return gone

    def _rename(self, name: Name, found: Mapping[Name, WatchEvent]) -> None:
        """Let go of a name under which something was told that is now there under another."""
        if name not in found:
            del self._contents[name]

    def _fresh(
        self, found: Iterable[WatchEvent], gone: Mapping[Content, Sequence[Name]]
    ) -> Iterator[FreshMessage]:
        """Yield the messages of which something was not told, with whether it was said before."""
        before: dict[Content, bool] = {}
        for _, said in groupby(found, key=lambda one: id(one.message)):
            ones = list(said)
            message = ones[0].message
            new = [one for one in ones if one.name not in self._contents and not gone.get(one.content)]
            if message is not None and new:
                is_repetition = all(one.content in before for one in new)
                yield FreshMessage(message, is_repetition, all(before.get(one.content) for one in new))
            for one in ones:
                before[one.content] = before.get(one.content, False) or one.has_model

    def _happenings(self, session: Session) -> Iterator[WatchEvent]:
        """Yield all that happens in a session; one that is watched does not end."""
        count: Counter[Name] = Counter()
        for message, step in sourced_steps(session, with_text=True, with_thoughts=self._with_thoughts):
            if isinstance(step, SessionEnd):
                continue
            content = _content(step)
            known_by = _known_by(message, step) or content
            count[known_by] += 1
            yield WatchEvent((*known_by, count[known_by]), content, message, step)


def _content(step: AnyStep) -> Content:
    """Return what tells an event from another; a call may get another name, and a result be told otherwise, later."""
    if isinstance(step, ToolUse | ToolResult):
        return type(step), step.call_id
    return type(step), getattr(step, "text", "")


def _known_by(message: Message | None, step: AnyStep) -> Name | None:
    """Return what stays the same of an event; calls have ids of their own, which move from message to message."""
    if isinstance(step, ToolUse | ToolResult) or message is None or message.id is None:
        return None
    return type(step), None, message.id


def _added(one: WatchEvent, earlier: Content) -> Iterator[AnyStep]:
    """Yield what was added to an answer; all of it, if it is another."""
    told = str(earlier[-1])
    if isinstance(one.step, AssistantText) and one.step.text not in told:
        yield replace(one.step, text=one.step.text.removeprefix(told))


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


DEBOUNCE = 800
"""Milliseconds for which changes that follow each other are taken together."""
STEP = 60
"""Milliseconds of quiet that end it sooner."""
TICK = 1.0
"""Seconds after which folders are looked for that were not there."""
SELDOM = 30.0
"""Seconds after which it is looked in any case: some file systems tell nothing, as those of other machines."""
OFTEN = 2.0
"""Seconds from look to look where nothing can be watched."""


def session_folders(task: Task) -> frozenset[str]:
    """Return the folders that hold sessions now, of the homes that a task is about."""
    return frozenset(folder for folder in map(str, _folders(task)) if os.path.isdir(folder))


def _folders(task: Task) -> Iterator[os.PathLike[str]]:
    from pathlib import Path

    for agent in (AGENTS[name] for name in task.agents or NAMES):
        yield from (home.sessions for home in agent.homes(task.env))
        given = (agent.home_in(Path(folder)) for _, folder in task.homes)
        yield from (home.sessions for home in given if home is not None)


def change_events(task: Task, tell_blind: Callable[[str], None]) -> Iterator[None]:
    """Yield, for ever, whenever something may have changed.

    Where folders cannot be watched, that is told, and a look is due every other second.
    """
    while True:
        try:
            yield from _watched(task)
        except FileNotFoundError:
            time.sleep(TICK)  # a folder went away before it could be watched
        except (ImportError, OSError, RuntimeError) as error:  # too many to watch, or no such thing here
            tell_blind(str(error))
            break
    while True:
        time.sleep(OFTEN)
        yield


def _watched(task: Task) -> Iterator[None]:
    """Yield at each change, until other folders are there to be watched."""
    from watchfiles import watch

    there = session_folders(task)
    if not there:
        time.sleep(TICK)
        return
    own = os.path.join(os.path.realpath(task.folder), "")
    looked_at = 0.0  # what changed before the folders were watched is seen at the first tick
    for found in watch(
        *sorted(there),
        watch_filter=lambda _, path: not path.startswith(own),
        debounce=DEBOUNCE,
        step=STEP,
        rust_timeout=int(TICK * 1000),
        yield_on_timeout=True,
        ignore_permission_denied=True,
    ):
        is_other = session_folders(task) != there
        if found or is_other or time.monotonic() - looked_at > SELDOM:
            yield
            looked_at = time.monotonic()
        if is_other:
            return
