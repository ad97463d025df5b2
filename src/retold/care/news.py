"""What is new in a session that is read again and again: each prompt, answer, call and result is told once."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from retold.model.entries import Message
from retold.model.session import Session
from retold.model.steps import (
    AnyStep,
    AssistantText,
    SessionEnd,
    ToolResult,
    ToolUse,
    sourced_steps,
)

Name = tuple[object, ...]
"""What an event is known by from one reading to the next."""


class Told:
    """What was told of one session so far."""

    def __init__(self, *, with_thoughts: bool = False) -> None:
        self._with_thoughts = with_thoughts
        self._contents: dict[Name, Name] = {}
        """What was told, by what it is known by."""

    def skip(self, session: Session, until: datetime | None = None) -> None:
        """Take what a session says as told; given a time, only what it says from before."""
        for name, content, _, step in self._events(session):
            if until is None or (step.at is not None and step.at < until) or step.at_derived:
                self._contents[name] = content

    def news(self, session: Session) -> Iterator[AnyStep]:
        """Yield what a session says that was not told yet. What it has from another session is told there."""
        events = list(self._events(session))
        gone = self._gone({name for name, *_ in events})
        for name, content, message, step in events:
            earlier = self._contents.get(name)
            if earlier is None and gone[content]:
                del self._contents[gone[content].pop()]  # the same, recorded anew under another id
            elif earlier is None:
                if message is None or message.own:
                    yield step
            elif isinstance(step, AssistantText) and content != earlier:
                yield from _rest(step, str(earlier[-1]))
            self._contents[name] = content

    def _gone(self, names: set[Name]) -> defaultdict[Name, list[Name]]:
        """Return what was told and is not there under its name any more, by what it says."""
        gone: defaultdict[Name, list[Name]] = defaultdict(list)
        for name, content in self._contents.items():
            if name not in names:
                gone[content].append(name)
        return gone

    def _events(self, session: Session) -> Iterator[tuple[Name, Name, Message | None, AnyStep]]:
        """Yield every event with what it is known by and what it says; a session that is watched does not end."""
        count: Counter[Name] = Counter()
        for message, step in sourced_steps(session, with_text=True, with_thoughts=self._with_thoughts):
            if isinstance(step, SessionEnd):
                continue
            content = _content(step)
            known_by = _known_by(message, step) or content
            count[known_by] += 1
            yield (*known_by, count[known_by]), content, message, step


def _content(step: AnyStep) -> Name:
    """Return what tells an event from another; a result that is told otherwise later is the same."""
    if isinstance(step, ToolUse | ToolResult):
        return type(step), step.call_id
    return type(step), getattr(step, "text", "")


def _known_by(message: Message | None, step: AnyStep) -> Name | None:
    """Return what stays the same of an event; calls have ids of their own, which move from message to message."""
    if isinstance(step, ToolUse | ToolResult) or message is None or message.id is None:
        return None
    return type(step), None, message.id


def _rest(step: AssistantText, earlier: str) -> Iterator[AnyStep]:
    """Yield what was added to an answer; all of it, if it is another."""
    added = step.text.removeprefix(earlier)
    if added and step.text not in earlier:
        yield replace(step, text=added)
