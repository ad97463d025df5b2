"""Places in a conversation, each on a line: the turn, who said it or which tool it went by, and the words around."""

from __future__ import annotations

from collections.abc import Iterator

from retold.archive.turns import turn_of
from retold.mcp.tool import Asking
from retold.query.holding import Holding, Place

_WHOLE = "about it"
"""The place of a title, or of a tag."""


def place_lines(asking: Asking, holding: Holding) -> Iterator[str]:
    """Yield the places at which the words of a question stand."""
    return (_line(asking, holding.session, place) for place in holding.places)


def _line(asking: Asking, session: int, place: Place) -> str:
    turn = f"turn {turn_of(asking.record, session, place.seq)}" if place.seq >= 0 else _WHOLE
    who = place.tool or place.role
    became = "" if place.fate == "live" else f" ({place.fate})"
    return f"{turn}{f', {who}' if who else ''}{became}: {place.snippet}"
