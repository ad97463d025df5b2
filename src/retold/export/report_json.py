"""A line of a report as JSON: what programs get."""

from __future__ import annotations

from retold.export.amounts import exact_money
from retold.model.report import FIGURES

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from typing import Any

    from retold.model.report import Line, Spend, Tool

_OPTIONAL = "cache_write_1h"
"""Left out where nobody recorded it, as in a session."""


def line_json(line: Line, by: str, tool: Tool | None = None) -> bytes:
    """Return a line of a report, on one line; that of a tool also says how long it took."""
    import json  # noqa: PLC0415 - not for people, who ask more often

    tree = line_tree(line, by)
    if tool is not None:
        tree["tool"] = _took(tool)
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def line_tree(line: Line, by: str) -> dict[str, Any]:
    """Return the same as dicts."""
    guesses = line.estimated
    return {
        "by": by,
        "of": line.of,
        "sessions": line.sessions,
        "requests": line.measured.requests,
        "usage": _usage(line.measured, estimated=False),
        "cost_usd": _cost(line.measured),
        "unpriced_requests": line.measured.unpriced,
        "prompts": line.prompts,
        "tool_calls": line.tool_calls,
        "tool_errors": line.tool_errors,
        "tool_retries": line.tool_retries,
        "active_seconds": line.active_seconds,
        "compactions": line.compactions,
        "estimated": {
            "requests": guesses.requests,
            "usage": _usage(guesses, estimated=True),
            "cost_usd": _cost(guesses),
        }
        if guesses.requests
        else None,
    }


def _usage(spend: Spend, *, estimated: bool) -> dict[str, Any]:
    """Return tokens by the names that a session's usage has."""
    figures = {name: spend.figures[name] for name in FIGURES if name != _OPTIONAL}
    for_an_hour = spend.figures[_OPTIONAL]
    more = {} if for_an_hour is None else {_OPTIONAL: for_an_hour}
    return {**figures, "requests": spend.requests, "estimated": estimated, **more}


def _cost(spend: Spend) -> str | None:
    return None if spend.picos is None else exact_money(spend.picos)


def _took(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "canonical": tool.canonical,
        "timed_calls": tool.timed,
        "seconds": tool.seconds,
        "slowest_seconds": tool.slowest_seconds,
    }
