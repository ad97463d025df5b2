"""What was typed while the agent was busy: often nothing but its queue remembers it.

Of 170 such texts in 387 real sessions, 125 stood nowhere else (`docs/formats/claude.md`, section 6).
"""

from datetime import datetime

from retold.agents.claude.raw import Record
from retold.agents.claude.state import Node, State
from retold.agents.claude.words import said
from retold.model.session import Event, Message


def operation(record: Record, at: datetime | None, state: State) -> None:
    """Fold an operation on the queue in."""
    content, session = record.get("content"), record.get("sessionId")
    text = content if type(content) is str else ""
    owner = session if type(session) is str else None
    prompt, parts = said(text)
    if record.get("operation") == "enqueue" and prompt is not None:
        extra = _beyond(record)
        message = Message(None, "user", at, "live", prompt, None, None, tuple(parts), extra=extra)
        first, after = state.queued.get(prompt.strip(), (0, 0))
        state.queued[prompt.strip()] = (first, after + 1)
        state.queue[prompt.strip(), after] = state.add(Node(message, session=owner))
        return
    if record.get("operation") == "popAll":
        _take_back(state, text if prompt is None else prompt)
    state.add(Node(Event(None, "notice", at, "live", "", extra=record), session=owner))


def _beyond(record: Record) -> Record:
    return {key: value for key, value in record.items() if key not in ("content", "timestamp", "sessionId")}


def delivered(state: State, prompt: str) -> None:
    """Take words out of the queue that are met again: there they stand with their place in the conversation."""
    first, after = state.queued.get(prompt.strip(), (0, 0))
    if first < after:
        state.queued[prompt.strip()] = (first + 1, after)
        _retire(state, state.queue.pop((prompt.strip(), first)), "")


def _take_back(state: State, text: str) -> None:
    """Give what is in the queue back to the editor, all of it if no text is named: it was not said, or will be."""
    for words in [text.strip()] if text.strip() else list(state.queued):
        for number in range(*state.queued.pop(words, (0, 0))):
            _retire(state, state.queue.pop((words, number)), words)


def _retire(state: State, place: int, text: str) -> None:
    entry = state.nodes[place].entry
    state.put(place, Event(None, "notice", entry.at, "live", text, extra=entry.extra))
