"""Lines folded into a state, whichever generation wrote them.

Evidence: `docs/formats/codex.md`, section 3.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec

from retold.agents.codex.events import event, tell_answer
from retold.agents.codex.messages import item, merged, put_response, put_said, withdrawn_thoughts
from retold.agents.codex.raw import ITEM_TYPES, Record, text_or_none
from retold.agents.codex.state import Asked, Figures, Handler, State, is_subagent
from retold.agents.codex.tokens import compact, count, meet_turn, name_thread, record
from retold.agents.codex.tool_calls import ask, full_name, put_answer, wait_for
from retold.agents.codex.tool_results import as_object, result
from retold.model.problem import Problem
from retold.model.serialization import shown_value
from retold.model.session import Event, Opaque, Part, Text, Thinking
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
            line = decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            _fold_enveloped(state, piece)
            continue
        if line.timestamp.tzinfo is not UTC:  # perhaps outside the calendar
            fold_slowly(state, piece)
            continue
        state.move(number, line.ordinal, line.timestamp)
        payload = line.payload
        HANDLERS[type(payload)](state, payload, line.timestamp, line.metadata)
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


PASSED = "internal_chat_message_metadata_passthrough"
Empty = Annotated[list[Any], msgspec.Meta(max_length=0)]
Beside = dict[str, Any] | None
"""What stands beside a payload on its line (0.166)."""


class Shape(msgspec.Struct, forbid_unknown_fields=True, gc=False, tag_field="type", omit_defaults=True):
    """A payload, or a part of one."""


class Item(Shape):
    """What every item may have."""

    id: str | None = None
    passed: Beside = msgspec.field(default=None, name=PASSED)


class SaidText(Shape, tag="output_text"):
    """Words of the model."""

    text: str
    annotations: Empty | None = None


class Said(Item, tag="message", kw_only=True):
    """An answer of one piece."""

    role: Literal["assistant"]
    content: Annotated[list[SaidText], msgspec.Meta(min_length=1, max_length=1)]
    status: str | None = None
    phase: str | None = None


class Summary(Shape, tag="summary_text"):
    """A thought, as far as it is told."""

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
    """A call with any text."""

    name: str
    input: str
    call_id: str
    status: str | None = None


class Output(Item, tag="function_call_output", kw_only=True):
    """What came back."""

    call_id: str
    output: str


class CustomOutput(Item, tag="custom_tool_call_output", kw_only=True):
    """What came back from a call with any text."""

    call_id: str
    output: str


class Spent(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Tokens, as Codex counts."""

    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    reasoning_output_tokens: int
    total_tokens: int
    cache_write_input_tokens: int = 0

    def figures(self) -> Figures:
        """Return them in their order."""
        return (
            self.input_tokens,
            self.cached_input_tokens,
            self.cache_write_input_tokens,
            self.output_tokens,
            self.reasoning_output_tokens,
            self.total_tokens,
        )


class Info(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The running total, and what the last response took."""

    total_token_usage: Spent
    last_token_usage: Spent
    model_context_window: int | None = None


class Count(Shape, tag="token_count"):
    """A count; none, where nothing was counted yet."""

    info: Info
    rate_limits: dict[str, Any] | None = None


class Told(Shape, tag="agent_message"):
    """An answer, told as an event."""

    message: str
    phase: str | None = None
    memory_citation: None = None


class UsualLine(msgspec.Struct, forbid_unknown_fields=True, gc=False, tag_field="type", kw_only=True):
    """What every line has."""

    timestamp: Annotated[datetime, msgspec.Meta(tz=True)]
    ordinal: int | None = None
    metadata: Beside = None


class ItemLine(UsualLine, tag="response_item"):
    """A line with an item."""

    payload: Said | Reasoning | Call | CustomCall | Output | CustomOutput


class EventLine(UsualLine, tag="event_msg"):
    """A line with an event."""

    payload: Count | Told


decode = msgspec.json.Decoder(ItemLine | EventLine).decode


def _extra(item: Item, beside: Beside, **more: str | None) -> Record | None:
    if not item.passed and not beside and not any(more.values()):
        return None
    told = {PASSED: item.passed, "metadata": beside, **more}
    return {key: value for key, value in told.items() if value}


def _said(state: State, item: Said, at: datetime, beside: Beside) -> None:
    text = item.content[0].text
    extra = _extra(item, beside, status=item.status, phase=item.phase)
    put_said(state, item.id or None, (Text(text),), text, extra, at)


def _reasoning(state: State, item: Reasoning, at: datetime, beside: Beside) -> None:
    thoughts = [part.text for part in item.summary]
    extra = merged(_extra(item, beside), withdrawn_thoughts(state, thoughts))
    sealed, first = item.encrypted_content or None, thoughts[0] if thoughts else ""
    parts: tuple[Part, ...] = tuple([Thinking(None, text) for text in thoughts[1:]])
    put_response(state, item.id or None, (Thinking(None, first, None, sealed), *parts), extra, at)


def _call(state: State, item: Call, at: datetime, beside: Beside) -> None:
    arguments = as_object(item.arguments)
    if arguments is None:
        ask(state, merged(msgspec.to_builtins(item), beside and {"metadata": beside}) or {}, at)
        return
    name = full_name(item.name, item.namespace)
    _wait(state, item, name, arguments, at, beside)


def _custom_call(state: State, item: CustomCall, at: datetime, beside: Beside) -> None:
    _wait(state, item, item.name, {"input": item.input}, at, beside)


def _wait(  # noqa: PLR0913 - one argument a field
    state: State, item: Call | CustomCall, name: str, arguments: Record, at: datetime, beside: Beside
) -> None:
    extra, status = _extra(item, beside), item.status or None
    response = state.meter.response
    asked = Asked(
        item.call_id, name, arguments, status, None, item.id or None, at, state.model, response, extra
    )
    wait_for(state, asked)


def _output(state: State, item: Output | CustomOutput, at: datetime, beside: Beside) -> None:
    put_answer(state, item.call_id, result(item.output), item.id or None, _extra(item, beside), at)


def _count(state: State, counted: Count, at: datetime, _: Beside) -> None:
    if counted.rate_limits is not None:
        state.limits = counted.rate_limits
    info = counted.info
    state.window = info.model_context_window
    count(state, info.total_token_usage.figures(), info.last_token_usage.figures, at)


def _told(state: State, told: Told, at: datetime, beside: Beside) -> None:
    extra = {"phase": told.phase, "metadata": beside} if told.phase or beside else None
    known = {key: value for key, value in extra.items() if value} if extra else None
    tell_answer(state, told.message, known, at)


HANDLERS: dict[type, Callable[[State, Any, datetime, Beside], None]] = {
    Said: _said,
    Reasoning: _reasoning,
    Call: _call,
    CustomCall: _custom_call,
    Output: _output,
    CustomOutput: _output,
    Count: _count,
    Told: _told,
}
