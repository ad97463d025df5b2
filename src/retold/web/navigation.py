"""The pages that lead everywhere: named once, for the bar, the palette and the keys."""

from typing import NamedTuple


class Way(NamedTuple):
    """A page, and how to get there."""

    path: str
    name: str
    key: str
    """Behind `g`, on the keyboard."""
    also: str
    """By what else it is found."""


WAYS = (
    Way("/", "Sessions", "s", "all conversations list"),
    Way("/projects", "Projects", "p", "folders roots"),
    Way("/files", "Files", "f", "files touched changed"),
    Way("/spend", "Spend", "m", "money cost tokens usage price"),
    Way("/tools", "Tools", "t", "tools errors"),
    Way("/health", "Health", "h", "doctor lost restore archive problems"),
)
