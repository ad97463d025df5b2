"""Reports as JSON lines and CSV."""

from __future__ import annotations

from datetime import UTC

from retold.export.text.formatting import csv_cell, escape_formula
from retold.model import FIGURES
from retold.model.report import format_dollars

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from retold.model.report import Line, ReportRequest, Spend, ToolFigures


_MILLION = 10**6
_TOOL = "tool"
"""A report by tools has no tokens: a request is answered by many tools, or by none."""
_OPTIONAL = "cache_write_1h"
"""Omitted if it was never recorded, as in a session."""


def line_json(line: Line, by: str, zone: str | None = None, tool: ToolFigures | None = None) -> bytes:
    """Return a line of a report as JSON; a tool's line also has its times."""
    tree = line_tree(line, by)
    if zone is not None:
        tree["zone"] = zone
    if tool is not None:
        tree["tool"] = {
            "name": tool.name,
            "canonical": tool.canonical,
            "timed_calls": tool.timed,
            "seconds": tool.seconds,
            "slowest_seconds": tool.slowest_seconds,
        }
    return _encode(tree)


def request_json(request: ReportRequest, by: str, of: str) -> bytes:
    """Return a request as JSON, with the group it counts in and the products that add up to its price."""
    figures = {name: request.figures[name] for name in FIGURES if name != _OPTIONAL or request.figures[name]}
    return _encode(
        {
            "by": by,
            "of": of,
            "session": request.session,
            "message": request.message,
            "agent": request.agent,
            "model": request.model,
            "at": None
            if request.at is None
            else request.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
            "usage": {**figures, "estimated": request.estimated},
            "cost_usd": None if request.picos is None else format_dollars(request.picos),
            "charges": [
                {"of": name, "tokens": tokens, "usd_per_million": format_dollars(picos * _MILLION)}
                for name, tokens, picos in request.parts
            ],
        }
    )


def _encode(tree: dict[str, Any]) -> bytes:
    import json  # noqa: PLC0415 - tables do without

    return json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def line_tree(line: Line, by: str) -> dict[str, Any]:
    """Return a line of a report as a dict."""
    guesses, has_tokens = line.estimated, by != _TOOL
    return {
        "by": by,
        "of": line.of,
        "sessions": line.sessions,
        "requests": line.measured.requests if has_tokens else None,
        "usage": _usage(line.measured, estimated=False) if has_tokens else None,
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
    """Return tokens under the names of a session's usage."""
    figures = {name: spend.figures[name] for name in FIGURES if name != _OPTIONAL}
    for_an_hour = spend.figures[_OPTIONAL]
    more = {} if for_an_hour is None else {_OPTIONAL: for_an_hour}
    return {**figures, "requests": spend.requests, "estimated": estimated, **more}


def _cost(spend: Spend) -> str | None:
    return None if spend.picos is None else format_dollars(spend.picos)


_FIGURES = ("input", "cached", "cache_write", "cache_write_1h", "output", "reasoning", "tool", "total")
_COUNTS = (
    "unpriced_requests",
    "prompts",
    "tool_calls",
    "tool_errors",
    "tool_retries",
    "active_seconds",
    "compactions",
)
HEADINGS = (
    "by", "of", "sessions", "requests", *_FIGURES, "cost_usd", *_COUNTS,
    "estimated_requests", "estimated_total", "estimated_cost_usd",
)  # fmt: skip


def csv_lines(lines: Iterable[Line], by: str) -> Iterator[str]:
    r"""Yield the headings and a row for each line, without line ends.

    Callers end them with `\n`. RFC 4180 has `\r\n`, but every spreadsheet reads both, and for `cut`, `awk` and `join` the
    `\r` would belong to the last cell. An unknown value is empty, and a number is never quoted.
    """
    yield ",".join(HEADINGS)
    for line in lines:
        yield ",".join(map(csv_cell, _values(line_tree(line, by))))


def _values(tree: dict[str, Any]) -> Iterator[object]:
    usage, guesses = tree["usage"], tree["estimated"]
    yield from (escape_formula(tree["by"]), escape_formula(tree["of"]), tree["sessions"], tree["requests"])
    yield from ((usage or {}).get(name) for name in _FIGURES)
    yield tree["cost_usd"]
    yield from (tree[name] for name in _COUNTS)
    if guesses is None:
        yield from (0, None, None)
    else:
        yield from (guesses["requests"], guesses["usage"]["total"], guesses["cost_usd"])
