"""Texts of any length: a page shows the beginning and the end of a very long one, and says what it does not show."""

from typing import NamedTuple

HEAD, TAIL = 60_000, 20_000
"""How many characters of a longer text are shown: some twenty screens, which a browser on a phone can lay out."""


class Clipped(NamedTuple):
    """The beginning of a text, how many characters come then, and the end."""

    head: str
    left_out: int
    tail: str


def clipped(text: str) -> Clipped:
    """Return a text as a page shows it; all of it, unless it is very long."""
    left_out = len(text) - HEAD - TAIL
    if left_out <= 0:
        return Clipped(text, 0, "")
    return Clipped(text[:HEAD], left_out, text[-TAIL:])
