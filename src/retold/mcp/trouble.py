"""What went wrong, in words for whoever asked: what to do instead."""

from __future__ import annotations

import mcp_types as types
import msgspec
from mcp.shared.exceptions import MCPError

from retold.archive.database import IndexDamagedError, RetoldError
from retold.mcp.cursor import BadCursor

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
