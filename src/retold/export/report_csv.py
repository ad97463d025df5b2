"""A report as CSV: what spreadsheets get."""

from __future__ import annotations

from retold.export.cells import cell, harmless
from retold.export.report_json import line_tree

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from retold.model.report import Line

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
    r"""Yield the headings and a row for each line, without their ends.

    They are meant to end in `\n`: RFC 4180 names `\r\n`, but every spreadsheet reads both, and to `cut`, `awk` and `join`
    the `\r` is a part of the last cell. What is unknown is empty, and a number is never quoted.
    """
    yield ",".join(HEADINGS)
    for line in lines:
        yield ",".join(map(cell, _values(line_tree(line, by))))


def _values(tree: dict[str, Any]) -> Iterator[object]:
    usage, guesses = tree["usage"], tree["estimated"]
    yield from (harmless(tree["by"]), harmless(tree["of"]), tree["sessions"], tree["requests"])
    yield from ((usage or {}).get(name) for name in _FIGURES)
    yield tree["cost_usd"]
    yield from (tree[name] for name in _COUNTS)
    if guesses is None:
        yield from (0, None, None)
    else:
        yield from (guesses["requests"], guesses["usage"]["total"], guesses["cost_usd"])
