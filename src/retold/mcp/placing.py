"""Places in a conversation, each on a line: the turn, who said it or which tool it went by, and the words around."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from retold.insights.text import TurnPlace as Gleaned
from retold.mcp.tool import ToolContext
from retold.search.scan_job import ResultItem, ResultPlace
from retold.sessions.pages import turn_places

_WHOLE = "about it"
"""The place of a title, or of a tag."""


def is_untold(asking: ToolContext, holding: ResultItem) -> bool:
    """Tell whether words stand only in what is not told: then not even that may be known, or they could be guessed."""
    return asking.redactors is not None and bool(holding.places) and not any(map(_is_told, holding.places))


def _is_told(place: ResultPlace) -> bool:
    return bool(place.matches)


def place_lines(asking: ToolContext, key: str, holding: ResultItem) -> Iterator[str]:
    """Yield the places at which the words of a question stand."""
    begins = turn_places(asking.record, holding.session, key)
    return (_line(begins, place) for place in holding.places)


def _line(begins: Sequence[int], place: ResultPlace) -> str:
    turn = f"turn {bisect_right(begins, place.seq)}" if place.seq >= 0 else _WHOLE
    who = place.tool or place.role
    became = "" if place.fate == "live" else f" ({place.fate})"
    return f"{turn}{f', {who}' if who else ''}{became}: {place.snippet}"


def turn_words(place: Gleaned) -> str:
    """Return the turn of something that was gleaned; what nobody had asked for yet is of the first."""
    return f"turn {max(1, place.turn)}"
