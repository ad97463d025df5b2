"""Watch: sync whenever a session file changes, and report the new events of each session once."""

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
from retold.archive.queries.lookups import load_cluster_keys, load_stamped_keys
from retold.archive.store import Store
from retold.extras import explain_missing
from retold.model.events import AnyStep, AssistantText, SessionEnd, ToolResult, ToolUse, steps_with_messages
from retold.model.session import Context, Message, Session
from retold.sessions.load import load_session
from retold.synchronization.fingerprints import CoverageCount
from retold.synchronization.update import SyncOptions, update


class NewMessage(NamedTuple):
    """A message with events that were not reported yet."""

    message: Message
    is_repetition: bool
    """Whether all of its new events repeat earlier ones."""
    had_model: bool
    """Whether the model of the earlier ones is known."""


def pending_copies(messages: Sequence[NewMessage]) -> list[Message]:
    """Return the new messages at the end that may be copies of earlier ones: repetitions, and nothing new after them."""
    last = list(takewhile(lambda one: one.is_repetition, reversed(messages)))
    return [one.message for one in last] if any(map(_looks_copied, last)) else []


def _looks_copied(one: NewMessage) -> bool:
    """Return whether a message has the mark of a copy: the environment in a prompt, or an answer without its model."""
    if one.message.role == "assistant":
        return one.message.model is None and one.had_model
    return any(isinstance(part, Context) and part.kind == "environment" for part in one.message.parts)


EventName = tuple[object, ...]
"""The identity of an event from one reading to the next."""
EventContent = tuple[object, ...]
"""The kind of an event with its text, or with the id of its call."""


class WatchEvent(NamedTuple):
    """An event of a session and its message; the start of a session has none."""

    name: EventName
    content: EventContent
    message: Message | None
    step: AnyStep

    @property
    def has_model(self) -> bool:
        """Whether the model of the message is known."""
        return self.message is not None and self.message.model is not None

    @property
    def is_own(self) -> bool:
        """Whether the event is the session's own and not copied from another session, which reports it."""
        return self.message is None or self.message.own


class EventDiff:
    """The events of one session that were reported so far."""

    def __init__(self, *, with_thoughts: bool = False) -> None:
        self._with_thoughts = with_thoughts
        self._contents: dict[EventName, EventContent] = {}

    def skip(self, session: Session, until: datetime | None = None) -> None:
        """Mark the events of a session as reported; given a time, only earlier ones and those without a time."""
        for one in self._events(session):
            at = None if one.step.at_derived else one.step.at
            if until is None or at is None or at < until:
                self._contents[one.name] = one.content

    def new_steps(self, session: Session) -> Iterator[AnyStep]:
        """Yield the events of a session that were not reported yet."""
        events = {one.name: one for one in self._events(session)}
        gone = self._gone(events)
        pending = pending_copies(list(self._new_messages(events.values(), gone)))
        for one in events.values():
            earlier = self._contents.get(one.name)
            if earlier != one.content and gone[one.content]:
                self._forget(gone[one.content].pop(), events)
            elif earlier is not None:
                yield from _added_text(one, earlier)
            elif any(one.message is message for message in pending):
                continue
            elif one.is_own:
                yield one.step
            self._contents[one.name] = one.content

    def _gone(self, events: Mapping[EventName, WatchEvent]) -> defaultdict[EventContent, list[EventName]]:
        """Return the names of reported events that no longer have that name, by content."""
        gone: defaultdict[EventContent, list[EventName]] = defaultdict(list)
        for name, content in self._contents.items():
            if name not in events or events[name].content != content:
                gone[content].append(name)
        return gone

    def _forget(self, name: EventName, events: Mapping[EventName, WatchEvent]) -> None:
        """Drop the old name of an event that has another name now."""
        if name not in events:
            del self._contents[name]

    def _new_messages(
        self, events: Iterable[WatchEvent], gone: Mapping[EventContent, Sequence[EventName]]
    ) -> Iterator[NewMessage]:
        """Yield the messages with events that were not reported."""
        before: dict[EventContent, bool] = {}
        for _, same in groupby(events, key=lambda one: id(one.message)):
            ones = list(same)
            message = ones[0].message
            new = [one for one in ones if one.name not in self._contents and not gone.get(one.content)]
            if message is not None and new:
                is_repetition = all(one.content in before for one in new)
                yield NewMessage(message, is_repetition, all(before.get(one.content) for one in new))
            for one in ones:
                before[one.content] = before.get(one.content, False) or one.has_model

    def _events(self, session: Session) -> Iterator[WatchEvent]:
        """Yield the events of a session, except its end: a watched session may go on."""
        count: Counter[EventName] = Counter()
        for message, step in steps_with_messages(session, with_text=True, with_thoughts=self._with_thoughts):
            if isinstance(step, SessionEnd):
                continue
            content = _content(step)
            name = _stable_name(message, step) or content
            count[name] += 1
            yield WatchEvent((*name, count[name]), content, message, step)


def _content(step: AnyStep) -> EventContent:
    """Return the content of an event; of calls and results only the id, because the rest may change later."""
    if isinstance(step, ToolUse | ToolResult):
        return type(step), step.call_id
    return type(step), getattr(step, "text", "")


def _stable_name(message: Message | None, step: AnyStep) -> EventName | None:
    """Return the id of a message with the kind of its event; None for calls, which move from message to message."""
    if isinstance(step, ToolUse | ToolResult) or message is None or message.id is None:
        return None
    return type(step), None, message.id


def _added_text(one: WatchEvent, earlier: EventContent) -> Iterator[AnyStep]:
    """Yield the text that was added to an answer; all of it if the beginning changed."""
    text = str(earlier[-1])
    if isinstance(one.step, AssistantText) and one.step.text not in text:
        yield replace(one.step, text=one.step.text.removeprefix(text))


MANY_CLUSTERS = 100
"""More clusters than this are not read before they are written; then the times of messages decide what is new."""
SECOND_HAND = ("prompts-only", "checkpoint")
"""Kinds of sessions whose events another session reports; a log of prompts is only written earlier."""


class News(NamedTuple):
    """The new events of one session."""

    session: Session
    steps: Sequence[AnyStep]


class WatchListener(NamedTuple):
    """Callbacks of a watch: a sync waits, its progress, damage of the index, a problem."""

    on_wait: Callable[[], None]
    on_progress: Callable[[int, int], None]
    on_damage: Callable[[str], None]
    on_problem: Callable[[object], None]


class SessionWatch:
    """Reports the events that are new since it began."""

    def __init__(self, options: SyncOptions, listener: WatchListener, *, with_thoughts: bool = False) -> None:
        self._options, self._listener, self._with_thoughts = options, listener, with_thoughts
        self._diffs: dict[int, EventDiff] = {}
        """The sessions that changed since, by uid."""
        self._stamps: dict[int, bytes] = {}
        self._older: frozenset[int] = frozenset()
        """The uids of the sessions in the archive at the beginning."""
        self._problems: set[object] = set()
        self._began_at = datetime.now(UTC)

    def begin(self) -> CoverageCount:
        """Bring the archive up to date; its events are not reported."""
        coverage = self._sync(self._listener.on_progress)
        self._began_at = datetime.now(UTC)
        with Store(self._options.folder) as record:
            self._stamps = {uid: stamp for uid, (*_, stamp) in load_stamped_keys(record).items()}
        self._older = frozenset(self._stamps)
        self._diffs.clear()
        return coverage

    def look(self) -> list[News]:
        """Bring the archive up to date, and return the news of each session in order of time."""
        self._sync(lambda _done, _size: None)
        with Store(self._options.folder) as record:
            return sorted(self._changed(record), key=_order)

    def _sync(self, on_progress: Callable[[int, int], None]) -> CoverageCount:
        listener = self._listener
        coverage, problems = update(
            self._options, listener.on_wait, on_progress, listener.on_damage, self._remember
        )
        for problem in problems:
            if problem not in self._problems:
                self._problems.add(problem)
                listener.on_problem(problem)
        return coverage

    def _remember(self, record: Store, agent: str, clusters: Collection[str]) -> None:
        """Mark the events of sessions that are about to be rewritten as reported, unless they are followed already.

        A session that another process has rewritten since the beginning may hold more; there, times decide.
        """
        if len(clusters) > MANY_CLUSTERS:
            return
        now = load_stamped_keys(record)
        for cluster in clusters:
            for uid, key in load_cluster_keys(record, agent, cluster):
                if uid in self._older and uid not in self._diffs and now[uid][-1] == self._stamps[uid]:
                    session = load_session(record, key)
                    if session is not None:
                        self._new_diff(uid).skip(session)

    def _changed(self, record: Store) -> Iterator[News]:
        for uid, (agent, key, stamp) in load_stamped_keys(record).items():
            if self._stamps.get(uid) == stamp:
                continue
            self._stamps[uid] = stamp
            if self._options.agents and agent not in self._options.agents:
                continue
            session = load_session(record, key)
            if session is None or session.kind in SECOND_HAND:
                continue
            steps = list(self._diff(uid, session).new_steps(session))
            if steps:
                yield News(session, steps)

    def _diff(self, uid: int, session: Session) -> EventDiff:
        if uid in self._diffs:
            return self._diffs[uid]
        diff = self._new_diff(uid)
        if uid in self._older:
            diff.skip(session, self._began_at)
        return diff

    def _new_diff(self, uid: int) -> EventDiff:
        return self._diffs.setdefault(uid, EventDiff(with_thoughts=self._with_thoughts))


def _order(news: News) -> tuple[datetime, str]:
    """Return the sort key of news: the time of the first event that has one."""
    first = next((step.at for step in news.steps if step.at is not None), None)
    return first or datetime.max.replace(tzinfo=UTC), news.session.key


def run_then_rest(look: Callable[[], None]) -> None:
    """Call a function, and sleep for as long as it took, so that a watch takes half of a processor at most."""
    began = time.monotonic()
    look()
    time.sleep(time.monotonic() - began)


DEBOUNCE = 800
"""The longest time in milliseconds for which changes are collected into one event."""
STEP = 60
"""The milliseconds without a change that end the collection sooner."""
TICK = 1.0
"""Seconds between two checks for new folders."""
SELDOM = 30.0
"""Seconds after which a sync runs in any case: file systems of other machines report no changes."""
OFTEN = 2.0
"""Seconds between two syncs if folders cannot be watched."""


def session_folders(options: SyncOptions) -> frozenset[str]:
    """Return the existing folders of sessions in the homes of a sync."""
    return frozenset(folder for folder in map(str, _all_session_folders(options)) if os.path.isdir(folder))


def _all_session_folders(options: SyncOptions) -> Iterator[os.PathLike[str]]:
    from pathlib import Path

    for agent in (AGENTS[name] for name in options.agents or NAMES):
        yield from (home.sessions for home in agent.find_homes(options.env))
        given = (agent.find_home(Path(folder)) for _, folder in options.homes)
        yield from (home.sessions for home in given if home is not None)


def change_events(options: SyncOptions, on_blind: Callable[[str], None]) -> Iterator[None]:
    """Yield whenever something may have changed, without end; if folders cannot be watched, every two seconds."""
    while True:
        try:
            yield from _watch_folders(options)
        except FileNotFoundError:
            time.sleep(TICK)  # a folder was removed before it could be watched
        except (
            ImportError,
            OSError,
            RuntimeError,
        ) as error:  # too many folders, or no support on this system
            on_blind((isinstance(error, ImportError) and explain_missing(error)) or str(error))
            break
    while True:
        time.sleep(OFTEN)
        yield


def _watch_folders(options: SyncOptions) -> Iterator[None]:
    """Yield at each change, until the set of folders changes."""
    from watchfiles import watch

    there = session_folders(options)
    if not there:
        time.sleep(TICK)
        return
    own = os.path.join(os.path.realpath(options.folder), "")
    looked_at = 0.0  # the first tick reports changes made before the folders were watched
    for found in watch(
        *sorted(there),
        watch_filter=lambda _, path: not path.startswith(own),
        debounce=DEBOUNCE,
        step=STEP,
        rust_timeout=int(TICK * 1000),
        yield_on_timeout=True,
        ignore_permission_denied=True,
    ):
        is_other = session_folders(options) != there
        if found or is_other or time.monotonic() - looked_at > SELDOM:
            yield
            looked_at = time.monotonic()
        if is_other:
            return
