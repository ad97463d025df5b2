"""One request to a model, as archives and reports count it."""

from datetime import UTC, datetime

import msgspec

_LARGEST = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

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


def stored_figure(figure: int | None) -> int | None:
    """Return a count that SQLite takes, whatever a file says."""
    return None if figure is None else max(min(figure, _LARGEST), 0)


def micros(at: datetime | None) -> int | None:
    """Return a time as a number."""
    return None if at is None else int((at - _EPOCH).total_seconds() * 1_000_000)
