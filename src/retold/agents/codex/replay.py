"""Folds lines of every generation of Codex into a state. Evidence: `docs/formats/codex.md`, section 3."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec

from retold.agents.codex.events import fold_answer_text, fold_event
from retold.agents.codex.messages import (
    fold_item,
    merge_extra,
    put_answer_text,
    put_response,
    withdraw_thoughts,
)
from retold.agents.codex.raw import ITEM_TYPES, Record
from retold.agents.codex.state import Figures, Handler, PendingCall, State, is_subagent
from retold.agents.codex.tokens import (
    fold_compaction,
    fold_count,
    fold_usage_record,
    name_thread,
    note_turn_id,
)
from retold.agents.codex.tool_calls import fold_call, full_name, keep_place, put_result
from retold.agents.codex.tool_results import decode_object, normalise_result
from retold.model.problem import Problem
from retold.model.serialization import short_repr
from retold.model.session import Event, Opaque, Part, Text, Thinking
from retold.reading.json_decode import text_or_none
from retold.reading.jsonl import Piece, decode_line


class RolloutLine(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The form of all lines since 0.33."""

    timestamp: Annotated[datetime, msgspec.Meta(tz=True)]
    type: str
    payload: Record
    ordinal: int | None = None
    metadata: Any = None


_ENVELOPE = frozenset(RolloutLine.__struct_fields__)
_LINE = msgspec.json.Decoder(RolloutLine)


class Numbered(msgspec.Struct, gc=False):
    """The ordinal of a line in its thread (since 0.144)."""

    ordinal: int | None = None


_NUMBERED = msgspec.json.Decoder(Numbered)


def replay(state: State, pieces: Iterable[Piece]) -> Piece | None:
    """Fold lines into a state; return an unfinished last line, which is not folded."""
    tail: Piece | None = None
    for piece in pieces:
        number, raw, is_whole = piece
        if not is_whole:
            tail = piece
            continue
        try:
            line = _decode_checked_line(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            _fold_enveloped(state, piece)
            continue
        if line.timestamp.tzinfo is not UTC:  # perhaps outside the calendar
            fold_slowly(state, piece)
            continue
        state.move(number, line.ordinal, line.timestamp)
        payload = line.payload
        _CHECKED_HANDLERS[type(payload)](state, payload, line.timestamp, line.metadata)
    return tail


def take_before(pieces: Iterable[Piece], end: int) -> Iterator[Piece]:
    """Yield the lines before an ordinal."""
    for piece in pieces:
        try:
            ordinal = _NUMBERED.decode(piece[1]).ordinal
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            ordinal = None
        if ordinal is not None and ordinal >= end:
            return
        yield piece


def _fold_enveloped(state: State, piece: Piece) -> None:
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
    """Return a payload with the metadata beside it (0.166); a few payloads have such a field themselves."""
    within = payload.get("metadata")
    both = {**metadata, **within} if type(metadata) is dict and type(within) is dict else metadata
    return {**payload, "metadata": both}


def fold_slowly(state: State, piece: Piece) -> None:
    """Fold a line that is damaged, glued to others, or of another generation."""
    number, raw, is_whole = piece
    for line in decode_line(raw, number, state.notes.path, is_whole=is_whole):
        if isinstance(line, Problem):
            state.notes.problems.append(line)
        else:
            fold_record(state, line.value, number)


def fold_record(state: State, value: Any, number: int) -> None:
    """Fold one record at its line."""
    state.records += 1
    notes = state.notes
    notes.place = (number, -1)
    state.place = number - 1
    if type(value) is not dict:
        _fold_unknown(state, value, None)
        return
    kind, payload = value.get("type"), value.get("payload")
    handler = _HANDLERS.get(kind) if type(kind) is str else None
    if handler is None or type(payload) is not dict:
        fold_bare_record(state, value)
        return
    at = notes.parse_time(value.get("timestamp"))
    if at is not None:
        state.last_at = at
    ordinal = value.get("ordinal")
    if type(ordinal) is int:
        state.place = ordinal
    unknown = {key: value[key] for key in value if key not in _ENVELOPE}
    if "metadata" in value:
        payload = _with_metadata(payload, value["metadata"])
    handler(state, {**unknown, **payload} if unknown else payload, at)


def fold_bare_record(state: State, value: Record) -> None:
    """Fold a line without an envelope, as all are up to 0.32."""
    kind = value.get("type")
    if type(kind) is str and kind in ITEM_TYPES and "payload" not in value:
        fold_item(state, value, None)
    elif not state.meta and type(value.get("id")) is str and "timestamp" in value and kind is None:
        fold_session_meta(state, value, None)
    elif value != {"record_type": "state"}:
        _fold_unknown(state, value, state.notes.parse_time(value.get("timestamp")))


def _fold_unknown(state: State, value: Any, at: datetime | None) -> None:
    kind = value.get("type") if type(value) is dict else None
    state.notes.add_opaque("unknown-record", f"a line of type {short_repr(kind)}")
    state.put(Event(None, "notice", at, "live", "", Opaque(value)))


def fold_session_meta(state: State, payload: Record, at: datetime | None) -> None:
    """Fold the description of the thread; a later record of this type is a copy of its own or its parent's."""
    if not state.meta:
        state.meta = state.latest["session_meta"] = payload
        state.is_subagent = is_subagent(payload)
        has_base = type(payload.get("history_base")) is dict
        state.copied_from = None if has_base else text_or_none(payload.get("forked_from_id"))
        state.is_copying = state.copied_from is not None
        state.meter.starts_from_last = has_base
        name_thread(state.meter, text_or_none(payload.get("id")))
        return
    if state.records == _SECOND_RECORD and payload.get("id") != state.meta.get("id"):
        state.copied_from = text_or_none(payload.get("id"))
        state.is_copying = True
    changed = {key: value for key, value in payload.items() if state.meta.get(key) != value}
    if changed:
        state.put(Event(None, "notice", at, "live", "", extra={"type": "session_meta", **changed}))


def _fold_turn_context(state: State, payload: Record, at: datetime | None) -> None:
    note_turn_id(state, payload.get("turn_id"))
    state.model = text_or_none(payload.get("model")) or state.model
    _put_changes(state, "turn_context", payload, at)


def _make_change_handler(kind: str) -> Handler:
    """Return a handler of records of a type that are written repeatedly."""
    return lambda state, payload, at: _put_changes(state, kind, payload, at)


def _put_changes(state: State, kind: str, payload: Record, at: datetime | None) -> None:
    changed = state.take_changes(kind, payload)
    if changed:
        state.put(Event(None, "notice", at, "live", "", extra={"type": kind, **changed}))


_SECOND_RECORD = 2
_HANDLERS: dict[str, Handler] = {
    "response_item": fold_item,
    "event_msg": fold_event,
    "turn_context": _fold_turn_context,
    "session_meta": fold_session_meta,
    "compacted": fold_compaction,
    "world_state": _make_change_handler("world_state"),
    "token_usage_record": fold_usage_record,
    "inter_agent_communication": _make_change_handler("inter_agent_communication"),
    "inter_agent_communication_metadata": _make_change_handler("inter_agent_communication_metadata"),
}
PASSTHROUGH = "internal_chat_message_metadata_passthrough"
Empty = Annotated[list[Any], msgspec.Meta(max_length=0)]
LineMetadata = dict[str, Any] | None
"""The metadata beside a payload on its line (0.166)."""


class PayloadShape(
    msgspec.Struct, forbid_unknown_fields=True, gc=False, tag_field="type", omit_defaults=True
):
    """A payload, or a part of one."""


class Item(PayloadShape):
    """Fields of every item."""

    id: str | None = None
    passed: LineMetadata = msgspec.field(default=None, name=PASSTHROUGH)


class AnswerText(PayloadShape, tag="output_text"):
    """A text of the model."""

    text: str
    annotations: Empty | None = None


class AnswerItem(Item, tag="message", kw_only=True):
    """An answer with a single text."""

    role: Literal["assistant"]
    content: Annotated[list[AnswerText], msgspec.Meta(min_length=1, max_length=1)]
    status: str | None = None
    phase: str | None = None


class Summary(PayloadShape, tag="summary_text"):
    """The readable part of a thought."""

    text: str


class Reasoning(Item, tag="reasoning", kw_only=True):
    """Thoughts, most of them sealed."""

    summary: list[Summary]
    content: Empty | None = None
    encrypted_content: str | None = None


class Call(Item, tag="function_call", kw_only=True):
    """A call with arguments in JSON."""

    name: str
    arguments: str
    call_id: str
    namespace: str | None = None
    status: str | None = None


class CustomCall(Item, tag="custom_tool_call", kw_only=True):
    """A call with a text as its input."""

    name: str
    input: str
    call_id: str
    status: str | None = None


class Output(Item, tag="function_call_output", kw_only=True):
    """The result of a call."""

    call_id: str
    output: str


class CustomOutput(Item, tag="custom_tool_call_output", kw_only=True):
    """The result of a call with a text as its input."""

    call_id: str
    output: str


class TokenFigures(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Tokens by Codex's counts."""

    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    reasoning_output_tokens: int
    total_tokens: int
    cache_write_input_tokens: int = 0

    def figures(self) -> Figures:
        """Return the counts in the order of `Figures`."""
        return (
            self.input_tokens,
            self.cached_input_tokens,
            self.cache_write_input_tokens,
            self.output_tokens,
            self.reasoning_output_tokens,
            self.total_tokens,
        )


class TokenInfo(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The running total, and the tokens of the last response."""

    total_token_usage: TokenFigures
    last_token_usage: TokenFigures
    model_context_window: int | None = None


class TokenCount(PayloadShape, tag="token_count"):
    """A token count with its limits."""

    info: TokenInfo
    rate_limits: dict[str, Any] | None = None


class AnswerEvent(PayloadShape, tag="agent_message"):
    """An event that repeats an answer."""

    message: str
    phase: str | None = None
    memory_citation: None = None


class BaseLine(msgspec.Struct, forbid_unknown_fields=True, gc=False, tag_field="type", kw_only=True):
    """Fields of every line."""

    timestamp: Annotated[datetime, msgspec.Meta(tz=True)]
    ordinal: int | None = None
    metadata: LineMetadata = None


class ItemLine(BaseLine, tag="response_item"):
    """A line with an item."""

    payload: AnswerItem | Reasoning | Call | CustomCall | Output | CustomOutput


class EventLine(BaseLine, tag="event_msg"):
    """A line with an event."""

    payload: TokenCount | AnswerEvent


_decode_checked_line = msgspec.json.Decoder(ItemLine | EventLine).decode


def _extra(item: Item, metadata: LineMetadata, **more: str | None) -> Record | None:
    if not item.passed and not metadata and not any(more.values()):
        return None
    fields = {PASSTHROUGH: item.passed, "metadata": metadata, **more}
    return {key: value for key, value in fields.items() if value}


def _fold_answer(state: State, item: AnswerItem, at: datetime, metadata: LineMetadata) -> None:
    text = item.content[0].text
    extra = _extra(item, metadata, status=item.status, phase=item.phase)
    put_answer_text(state, item.id or None, (Text(text),), text, extra, at)


def _fold_reasoning(state: State, item: Reasoning, at: datetime, metadata: LineMetadata) -> None:
    thoughts = [part.text for part in item.summary]
    extra = merge_extra(_extra(item, metadata), withdraw_thoughts(state, thoughts))
    sealed, first = item.encrypted_content or None, thoughts[0] if thoughts else ""
    parts: tuple[Part, ...] = tuple([Thinking(None, text) for text in thoughts[1:]])
    put_response(state, item.id or None, (Thinking(None, first, None, sealed), *parts), extra, at)


def _fold_call(state: State, item: Call, at: datetime, metadata: LineMetadata) -> None:
    arguments = decode_object(item.arguments)
    if arguments is None:
        fold_call(
            state, merge_extra(msgspec.to_builtins(item), metadata and {"metadata": metadata}) or {}, at
        )
        return
    name = full_name(item.name, item.namespace)
    _keep_call(state, item, name, arguments, at, metadata)


def _fold_custom_call(state: State, item: CustomCall, at: datetime, metadata: LineMetadata) -> None:
    _keep_call(state, item, item.name, {"input": item.input}, at, metadata)


def _keep_call(  # noqa: PLR0913 - one argument a field
    state: State, item: Call | CustomCall, name: str, arguments: Record, at: datetime, metadata: LineMetadata
) -> None:
    extra, status = _extra(item, metadata), item.status or None
    response = state.meter.response
    pending = PendingCall(
        item.call_id, name, arguments, status, None, item.id or None, at, state.model, response, extra
    )
    keep_place(state, pending)


def _fold_output(state: State, item: Output | CustomOutput, at: datetime, metadata: LineMetadata) -> None:
    put_result(
        state, item.call_id, normalise_result(item.output), item.id or None, _extra(item, metadata), at
    )


def _fold_count(state: State, token_count: TokenCount, at: datetime, _: LineMetadata) -> None:
    if token_count.rate_limits is not None:
        state.limits = token_count.rate_limits
    info = token_count.info
    state.window = info.model_context_window
    fold_count(state, info.total_token_usage.figures(), info.last_token_usage.figures, at)


def _fold_answer_event(state: State, event: AnswerEvent, at: datetime, metadata: LineMetadata) -> None:
    extra = {"phase": event.phase, "metadata": metadata} if event.phase or metadata else None
    known = {key: value for key, value in extra.items() if value} if extra else None
    fold_answer_text(state, event.message, known, at)


_CHECKED_HANDLERS: dict[type, Callable[[State, Any, datetime, LineMetadata], None]] = {
    AnswerItem: _fold_answer,
    Reasoning: _fold_reasoning,
    Call: _fold_call,
    CustomCall: _fold_custom_call,
    Output: _fold_output,
    CustomOutput: _fold_output,
    TokenCount: _fold_count,
    AnswerEvent: _fold_answer_event,
}
