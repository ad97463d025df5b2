"""A place in a text as it is shown: around it, the text is cleaned of what nobody should see before anything is cut out."""

from __future__ import annotations

from itertools import takewhile

from retold.query.marks import densest, marks, snippet

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from retold.archive.index.reader import IndexHit
    from retold.query.hits import Shown
    from retold.query.language import Query

    Clean = Callable[[str], str]
    """Takes out of a text what nobody should see."""

AROUND = 4_096
"""Characters on either side that are cleaned with a place: a key that begins before it is known as a whole."""
_EDGE = 2_048
"""Of those, as many are not shown where the text was cut: they may be the rest of something that was to go."""


def telling_text(found: IndexHit, query: Query) -> tuple[str, list[tuple[int, int]]]:
    """Return the text of a document in which most of what was asked for stands, and where it stands."""
    best: tuple[str, list[tuple[int, int]]] = ("", [])
    most = -1
    for text in found.texts():
        places = marks(text, query)
        count = len({text[start:end].casefold() for start, end in places})
        if count > most:
            best, most = (text, places), count
        if count >= len(query.terms):
            break
    return best


def shown(text: str, places: Sequence[tuple[int, int]], query: Query, clean: Clean | None) -> Shown:
    """Return one line of a text around places in it, and where in the line the query stands."""
    if clean is None:
        return snippet(text, places)
    safe = surroundings(text, places, clean)
    return snippet(safe, marks(safe, query))


def surroundings(text: str, places: Sequence[tuple[int, int]], clean: Clean) -> str:
    """Return the text around places in it as it may be shown."""
    first, last = densest(text, places)
    start, end = max(0, first - AROUND), min(len(text), last + AROUND)
    around = text[start:end]
    cleaned = clean(around)
    begin = _raw(around, cleaned) if start else 0
    behind = _raw(around[::-1], cleaned[::-1]) if end < len(text) else 0
    return cleaned[begin : max(begin, len(cleaned) - behind)]


def _raw(around: str, cleaned: str) -> int:
    """Return how much of the begin of a cleaned text is not shown: all that is too near, or up to what was taken out."""
    pairs = zip(around[:_EDGE], cleaned, strict=False)
    return sum([1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)])
