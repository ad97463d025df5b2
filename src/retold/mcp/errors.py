"""What is told of a bug of ours, whatever was asked: that it is one, and where its log is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mcp_types as types
import msgspec
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from retold.archive.database import IndexDamagedError, RetoldError
from retold.mcp.reply import BadCursor

Log = Callable[[Exception], str]
"""Keeps a bug of ours for the report, and returns where."""


class Bugs:
    """Stands around every request: no bug ends the server, and none tells of anything but its kind.

    The words of an exception may quote what was asked or found, which the SDK would send to whoever asks.
    """

    def __init__(self, log: Log) -> None:
        self._log = log

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Pass a request on."""
        try:
            return await call_next(ctx)
        except (MCPError, ValidationError):
            raise  # an error of the protocol
        except Exception as error:
            told = f"this is a bug of retold's own ({type(error).__name__}); log: {self._log(error)}"
            if ctx.method != "tools/call":
                raise MCPError(types.INTERNAL_ERROR, told) from error
            return types.CallToolResult(content=[types.TextContent(text=told)], is_error=True)


_LONGEST = 200
"""Letters of what was asked that are said back."""
TROUBLES = (msgspec.ValidationError, BadCursor, RetoldError)
"""All that may happen without being a fault of ours."""


def told_trouble(trouble: Exception) -> str:
    """Return what happened."""
    if isinstance(trouble, msgspec.ValidationError):
        return f"these arguments are not understood: {str(trouble)[:_LONGEST]}"
    if isinstance(trouble, IndexDamagedError):
        return f"{trouble}: the person at this machine mends it with `retold sync --reindex`"
    return str(trouble)


def as_error(trouble: Exception) -> MCPError:
    """Return what happened as an error of the protocol, where an answer has no other place for it."""
    code = types.INTERNAL_ERROR if isinstance(trouble, RetoldError) else types.INVALID_PARAMS
    return MCPError(code, told_trouble(trouble))
