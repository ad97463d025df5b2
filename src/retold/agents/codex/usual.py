"""The lines that nearly all are, checked at once and taken down without a step between.

What does not fit exactly, down to an unknown key, is read the careful way, field by field: both ways give the same
(`test_codex_usual.py`).
"""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from retold.agents.codex.events import tell_answer
from retold.agents.codex.items import merged, put_response, put_said, withdrawn_thoughts
from retold.agents.codex.pairing import ask, put_answer, wait_for
from retold.agents.codex.raw import Record
from retold.agents.codex.results import as_object, result
from retold.agents.codex.state import Asked, Figures, State
from retold.agents.codex.tokens import count
from retold.agents.codex.tools import full_name
from retold.model.session import Part, Text, Thinking

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
