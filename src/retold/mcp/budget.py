"""How much room an answer takes in the mind of whoever asked."""

from __future__ import annotations

from collections.abc import Callable

LEAST, USUAL, MOST = 300, 2_000, 20_000
CHARACTERS_PER_TOKEN = 3
"""Of ASCII. Tokenizers give prose four and code about three; what is told must fit for each of them."""


def units(text: str) -> int:
    """Return the room of a text in thirds of tokens, which add up; letters other than those of ASCII take a token each."""
    if text.isascii():
        return len(text)
    plain = len(text.encode("ascii", "ignore"))
    return plain + CHARACTERS_PER_TOKEN * (len(text) - plain)


def fitting(text: str, room: int, cost: Callable[[str], int] = units) -> int:
    """Return how many characters from the start fit into a room; up to the end of a line or word if one is near."""
    if cost(text) <= room:
        return len(text)
    low, high = 0, min(len(text), max(room, 0))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cost(text[:middle]) <= room else (low, middle - 1)
    near = max(text.rfind("\n", low // 2, low), text.rfind(" ", low - low // 4, low))
    return near + 1 if near >= 0 else low
