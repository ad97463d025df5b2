"""One request to a model, as archives and reports count it."""

from datetime import UTC, datetime, timedelta

import msgspec

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
