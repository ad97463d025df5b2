"""Tokens: of one request, and summed. `None` is unknown, 0 is zero."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from operator import attrgetter

import msgspec


class Usage(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The tokens of one request to a model.

    `input` is the whole prompt, cache reads (`cached`) and writes included; `reasoning` is not in `output`.
    """

    request: str
    """The agent's own request id, else `<native session id>/<message id>`: the same in every copy."""
    input: int | None
    cached: int | None
    cache_write: int | None
    output: int | None
    reasoning: int | None
    tool: int | None
    total: int | None
    estimated: bool = False
    cache_write_1h: int | None = None
    """Of `cache_write`, what was written to last an hour: it costs more."""


class Totals(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The tokens of several requests, each counted once."""

    input: int | None
    cached: int | None
    cache_write: int | None
    output: int | None
    reasoning: int | None
    tool: int | None
    total: int | None
    requests: int
    estimated: bool
    cache_write_1h: int | None = None


_FIGURES = attrgetter(
    "input", "cached", "cache_write", "output", "reasoning", "tool", "total", "cache_write_1h"
)


def totals(usages: Iterable[Usage]) -> Totals:
    """Sum what is recorded, each request once; a figure that nobody recorded stays unknown."""
    once = tuple({usage.request: usage for usage in usages}.values())
    rows: Iterable[tuple[int | None, ...]] = zip(*map(_FIGURES, once), strict=True) if once else [()] * 8
    given, cached, cache_write, output, reasoning, tool, total, for_an_hour = map(_sum, rows)
    estimated = any([usage.estimated for usage in once])
    return Totals(
        given, cached, cache_write, output, reasoning, tool, total, len(once), estimated, for_an_hour
    )


def _sum(figures: tuple[int | None, ...]) -> int | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None


LARGEST = 2**63 - 1
"""What SQLite takes."""
MOST = 10**12
"""Tokens of a request that are believed: millions of requests that claim as many still have a sum."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

Figures = tuple[
    int | None, int | None, int | None, int | None, int | None, int | None, int | None, int | None
]
"""The tokens of a request, in the order of `report.FIGURES`."""


class Request(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A request: its name, which every copy of it shares, and what it took."""

    name: str
    model: str | None
    at: int | None
    """Microseconds since 1970."""
    figures: Figures
    estimated: bool = False
    copied: bool = False
    """Whether the session's own file says that another session made it."""


def stored_figure(figure: int | None, largest: int = MOST) -> int | None:
    """Return a count that can be kept and summed, whatever a file says."""
    return None if figure is None else max(min(figure, largest), 0)


def micros(at: datetime | None) -> int | None:
    """Return a time as a number."""
    return None if at is None else (at - _EPOCH) // _MICROSECOND
