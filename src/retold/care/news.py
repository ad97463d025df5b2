"""What is new in a session that is read again and again: each prompt, answer, call and result is told once."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from msgspec.structs import replace

from retold.care.echoes import FreshMessage, pending_copies
from retold.model.events import AnyStep, AssistantText, SessionEnd, ToolResult, ToolUse, sourced_steps
from retold.model.session import Message, Session

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
