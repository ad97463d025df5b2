"""Sessions and the subagents that they started, linked.

Three layouts: since 0.39 a call names its subagent's file; in 0.37 and 0.38 the file only lies in its parent's folder;
from 0.31 to 0.36 it lies beside its parent, under the same id. Where no name links them, the times do.
"""

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from retold.agents.gemini.groups import agent_id, parent_id
from retold.agents.gemini.tools import STARTS_AGENT
from retold.model.session import Entry, Message, Session, ToolCall


def relate(sessions: Sequence[Session]) -> Sequence[Session]:
    """Return the sessions of one cluster, each in its place, with parents and children named."""
    orphans: dict[str | None, list[int]] = defaultdict(list)
    for place, session in enumerate(sessions):
        if session.kind == "subagent":
            orphans[parent_id(session.sources[0].path, session.native_id)].append(place)
    related = list(sessions)
    for place, session in enumerate(sessions):
        if session.kind == "main":
            children = {
                child: _adopted(sessions[child], session) for child in orphans.pop(session.native_id, ())
            }
            if children:
                related[place] = _as_parent(session, tuple(children.values()))
            for child, adopted in children.items():
                related[child] = adopted
    return related


def _adopted(child: Session, parent: Session) -> Session:
    return msgspec.structs.replace(child, key=f"{parent.key}/{agent_id(child.key)}", parent=parent.key)


def _as_parent(session: Session, children: Sequence[Session]) -> Session:
    ordered = sorted(children, key=lambda child: (str(child.started_at), child.key))
    named = {
        part.child for entry in session.timeline if isinstance(entry, Message) for part in entry.parts
        if isinstance(part, ToolCall) and part.child
    }  # fmt: skip
    waiting = [child for child in ordered if child.key not in named]
    timeline = tuple(_linked(entry, waiting) for entry in session.timeline) if waiting else session.timeline
    return msgspec.structs.replace(session, children=tuple(child.key for child in ordered), timeline=timeline)


def _linked(entry: Entry, waiting: list[Session]) -> Entry:
    """Give each call that started a subagent the first one that ran while it did."""
    if not isinstance(entry, Message):
        return entry
    parts = tuple(
        _with_child(part, entry, waiting)
        if isinstance(part, ToolCall) and part.name in STARTS_AGENT
        else part
        for part in entry.parts
    )
    return msgspec.structs.replace(entry, parts=parts)


def _with_child(call: ToolCall, message: Message, waiting: list[Session]) -> ToolCall:
    if call.child is not None:
        return call
    for child in waiting:
        if child.started_at is None or message.at is None or call.at is None:
            continue
        if message.at <= child.started_at <= call.at:
            waiting.remove(child)
            return msgspec.structs.replace(call, child=child.key)
    return call
