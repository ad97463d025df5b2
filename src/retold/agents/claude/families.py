"""Sessions and the subagents that they started, linked.

A call names its subagent since 2.0; in 1.x the subagent's first message is the call's prompt, and nothing else links them.
"""

from collections.abc import Iterator, Sequence

import msgspec

from retold.agents.claude.tools import STARTS_AGENT
from retold.model.session import Context, Entry, Message, Session, ToolCall

Waiting = dict[str | None, list[Session]]


def relate(sessions: Sequence[Session]) -> Sequence[Session]:
    """Return the sessions of one cluster with parents and children named."""
    return [_as_parent(session, sessions) if session.kind == "main" else session for session in sessions]


def _as_parent(session: Session, sessions: Sequence[Session]) -> Session:
    """Return a session with its children named, and each of them by the call that started it."""
    found = sorted(
        (child for child in sessions if child.parent == session.key),
        key=lambda child: (str(child.started_at), child.key),
    )
    named = set(_named(session))
    waiting = _by_task([child for child in found if child.key not in named])
    timeline = tuple(_linked(entry, waiting) for entry in session.timeline) if waiting else session.timeline
    return msgspec.structs.replace(session, children=tuple(child.key for child in found), timeline=timeline)


def _named(session: Session) -> Iterator[str]:
    messages = (entry for entry in session.timeline if isinstance(entry, Message))
    parts = (part for message in messages for part in message.parts)
    return (part.child for part in parts if isinstance(part, ToolCall) and part.child)


def _by_task(children: Sequence[Session]) -> Waiting:
    """Return the subagents that no call names, by what they were asked to do; the latest first."""
    waiting: Waiting = {}
    for child in reversed(children):
        waiting.setdefault(_task(child), []).append(child)
    return waiting


def _task(child: Session) -> str | None:
    parts = (part for entry in child.timeline if isinstance(entry, Message) for part in entry.parts)
    return next((part.text for part in parts if isinstance(part, Context) and part.kind == "task"), None)


def _linked(entry: Entry, waiting: Waiting) -> Entry:
    """Give each call that started a subagent the first one with its prompt."""
    if not isinstance(entry, Message):
        return entry
    parts = tuple(_with_child(part, waiting) if isinstance(part, ToolCall) else part for part in entry.parts)
    return msgspec.structs.replace(entry, parts=parts)


def _with_child(call: ToolCall, waiting: Waiting) -> ToolCall:
    task = call.arguments.get("prompt")
    if call.child is not None or call.name not in STARTS_AGENT or type(task) is not str:
        return call
    children = waiting.get(task)
    return msgspec.structs.replace(call, child=children.pop().key) if children else call
