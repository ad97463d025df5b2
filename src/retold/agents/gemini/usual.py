"""The shape that nearly every answer has, checked all at once.

`msgspec.convert` checks every field of an answer in the time in which Python looks at three. What does not fit exactly,
down to an unknown key, is read the careful way, field by field: both ways give the same (`test_usual.py`).
"""

from datetime import datetime
from typing import Annotated, Any

import msgspec

Time = Annotated[datetime, msgspec.Meta(tz=True)]


class Response(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What a tool gave back."""

    output: str | None = None
    error: str | None = None


class FunctionResponse(msgspec.Struct, forbid_unknown_fields=True, gc=False, rename="camel"):
    """The envelope around it."""

    response: Response
    id: str | None = None
    name: str | None = None


class ResultPart(msgspec.Struct, forbid_unknown_fields=True, gc=False, rename="camel"):
    """The one part of a usual result."""

    function_response: FunctionResponse


class ToolCallRecord(msgspec.Struct, forbid_unknown_fields=True, gc=False, rename="camel"):
    """A tool call with a result of one part."""

    id: str
    name: str
    args: dict[str, Any]
    status: str
    timestamp: Time
    result: Annotated[list[ResultPart], msgspec.Meta(min_length=1, max_length=1)]
    display_name: str | None = None
    description: str | None = None
    render_output_as_markdown: bool = False
    result_display: Any = None
    agent_id: str | None = None


class ThoughtRecord(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A thought."""

    description: str
    subject: str | None = None
    timestamp: Time | None = None


class TokensRecord(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The tokens of a response, all six."""

    input: int
    output: int
    cached: int
    thoughts: int
    tool: int
    total: int


class AnswerRecord(msgspec.Struct, forbid_unknown_fields=True, gc=False, rename="camel"):
    """A message of the model."""

    id: str
    timestamp: Time
    type: str
    content: str
    thoughts: list[ThoughtRecord] | None = None
    tokens: TokensRecord | None = None
    model: str | None = None
    tool_calls: list[ToolCallRecord] | None = None
