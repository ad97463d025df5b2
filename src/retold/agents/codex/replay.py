"""Lines folded into a state, whichever generation wrote them.

Evidence: `docs/formats/codex.md`, section 3.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from retold.agents.codex import usual
from retold.agents.codex.cuts import compact
from retold.agents.codex.events import event
from retold.agents.codex.items import item
from retold.agents.codex.metas import is_subagent
from retold.agents.codex.raw import ITEM_TYPES, Record, text_or_none
from retold.agents.codex.state import Handler, State
from retold.agents.codex.tokens import name_thread, record
from retold.agents.codex.turns import meet_turn
from retold.model.problem import Problem
from retold.model.serialization import shown_value
from retold.model.session import Event, Opaque
from retold.reading.jsonl import Piece, decode_line


class RolloutLine(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A line as all are since 0.33."""

    timestamp: Annotated[datetime, msgspec.Meta(tz=True)]
    type: str
    payload: Record
    ordinal: int | None = None
    metadata: Any = None


_ENVELOPE = frozenset(RolloutLine.__struct_fields__)
_LINE = msgspec.json.Decoder(RolloutLine)


class Numbered(msgspec.Struct, gc=False):
    """The place of a line in its thread (since 0.144)."""

    ordinal: int | None = None


_NUMBERED = msgspec.json.Decoder(Numbered)


def replay(state: State, pieces: Iterable[Piece]) -> Piece | None:
    """Fold lines into a state; return the last if it has no end, unfolded."""
    tail: Piece | None = None
    for piece in pieces:
        number, raw, is_whole = piece
        if not is_whole:
            tail = piece
            continue
        try:
            line = usual.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            _fold_enveloped(state, piece)
            continue
        if line.timestamp.tzinfo is not UTC:  # perhaps outside the calendar
            fold_slowly(state, piece)
            continue
        state.move(number, line.ordinal, line.timestamp)
        payload = line.payload
        usual.HANDLERS[type(payload)](state, payload, line.timestamp, line.metadata)
    return tail


def before(pieces: Iterable[Piece], end: int) -> Iterator[Piece]:
    """Yield the lines that stand before an ordinal."""
    for piece in pieces:
        try:
            ordinal = _NUMBERED.decode(piece[1]).ordinal
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            ordinal = None
        if ordinal is not None and ordinal >= end:
            return
        yield piece


def _fold_enveloped(state: State, piece: Piece) -> None:
    """Fold a line of any kind that has an envelope."""
    number, raw, _ = piece
    try:
        line = _LINE.decode(raw)
        at, handler = line.timestamp, _HANDLERS[line.type]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
        fold_slowly(state, piece)
        return
    if at.tzinfo is not UTC:
        fold_slowly(state, piece)
        return
    state.move(number, line.ordinal, at)
    handler(state, line.payload if line.metadata is None else _with_metadata(line.payload, line.metadata), at)


def _with_metadata(payload: Record, metadata: Any) -> Record:
    """Return a payload with what stands beside it on the line (0.166); a few payloads have such a field themselves."""
    within = payload.get("metadata")
    both = {**metadata, **within} if type(metadata) is dict and type(within) is dict else metadata
    return {**payload, "metadata": both}


def fold_slowly(state: State, piece: Piece) -> None:
    """Fold a line that is not as nearly all are: mended, in pieces, or of another generation."""
    number, raw, is_whole = piece
    for line in decode_line(raw, number, state.notes.path, is_whole=is_whole):
        if isinstance(line, Problem):
            state.notes.problems.append(line)
        else:
            fold(state, line.value, number)


def fold(state: State, value: Any, number: int) -> None:
    """Take one record down, at its line."""
    state.records += 1
    notes = state.notes
    notes.place = (number, -1)
    state.place = number - 1
    if type(value) is not dict:
        _unknown(state, value, None)
        return
    kind, payload = value.get("type"), value.get("payload")
    handler = _HANDLERS.get(kind) if type(kind) is str else None
    if handler is None or type(payload) is not dict:
        fold_bare(state, value)
        return
    at = notes.time(value.get("timestamp"))
    if at is not None:
        state.last_at = at
    ordinal = value.get("ordinal")
    if type(ordinal) is int:
        state.place = ordinal
    unknown = {key: value[key] for key in value if key not in _ENVELOPE}
    if "metadata" in value:
        payload = _with_metadata(payload, value["metadata"])
    handler(state, {**unknown, **payload} if unknown else payload, at)


def fold_bare(state: State, value: Record) -> None:
    """Take a line without an envelope down: up to 0.32 every line is one."""
    kind = value.get("type")
    if type(kind) is str and kind in ITEM_TYPES and "payload" not in value:
        item(state, value, None)
    elif not state.meta and type(value.get("id")) is str and "timestamp" in value and kind is None:
        meet_session(state, value, None)
    elif value != {"record_type": "state"}:
        _unknown(state, value, state.notes.time(value.get("timestamp")))


def _unknown(state: State, value: Any, at: datetime | None) -> None:
    kind = value.get("type") if type(value) is dict else None
    state.notes.kept("unknown-record", f"a line of type {shown_value(kind)}")
    state.put(Event(None, "notice", at, "live", "", Opaque(value)))


def meet_session(state: State, payload: Record, at: datetime | None) -> None:
    """Take down whose file this is; a later record of that kind is a copy, its own or its parent's."""
    if not state.meta:
        state.meta = state.latest["session_meta"] = payload
        state.is_subagent = is_subagent(payload)
        has_base = type(payload.get("history_base")) is dict
        state.copied_from = None if has_base else text_or_none(payload.get("forked_from_id"))
        state.is_copying = state.copied_from is not None
        state.meter.starts_from_last = has_base
        name_thread(state.meter, text_or_none(payload.get("id")))
        return
    if state.records == _SECOND and payload.get("id") != state.meta.get("id"):
        state.copied_from = text_or_none(payload.get("id"))
        state.is_copying = True
    changed = {key: value for key, value in payload.items() if state.meta.get(key) != value}
    if changed:
        state.put(Event(None, "notice", at, "live", "", extra={"type": "session_meta", **changed}))


def _turn_context(state: State, payload: Record, at: datetime | None) -> None:
    meet_turn(state, payload.get("turn_id"))
    state.model = text_or_none(payload.get("model")) or state.model
    _put_changed(state, "turn_context", payload, at)


def _changed(kind: str) -> Handler:
    """Return what takes down records of a kind that are written again and again."""
    return lambda state, payload, at: _put_changed(state, kind, payload, at)


def _put_changed(state: State, kind: str, payload: Record, at: datetime | None) -> None:
    changed = state.changed(kind, payload)
    if changed:
        state.put(Event(None, "notice", at, "live", "", extra={"type": kind, **changed}))


_SECOND = 2
_HANDLERS: dict[str, Handler] = {
    "response_item": item,
    "event_msg": event,
    "turn_context": _turn_context,
    "session_meta": meet_session,
    "compacted": compact,
    "world_state": _changed("world_state"),
    "token_usage_record": record,
    "inter_agent_communication": _changed("inter_agent_communication"),
    "inter_agent_communication_metadata": _changed("inter_agent_communication_metadata"),
}
