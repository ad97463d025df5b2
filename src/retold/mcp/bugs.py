"""What is told of a bug of ours, whatever was asked: that it is one, and where its log is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

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
