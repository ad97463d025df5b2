r"""Texts read once more without their escapes: `\u0041`, `\/` and `%40` hide what a rule looks for."""

import re
from bisect import bisect_right

_FOLD = re.compile(r"(?<!\\)\\++(?:u00([2-7][0-9a-fA-F])|(/))|%([2-7][0-9a-fA-F])")
_SIGNS = {"\\": ("\\u00", "\\/"), "%": ("%40", "%3A", "%3a", "%2F", "%2f")}
"""What to look for, and the one character that is found faster and says whether to."""


class Unfolded:
    """A text without its escapes, which knows where everything stood."""

    def __init__(self, text: str) -> None:
        self._starts: list[int] = []
        self._shifts: list[int] = []
        pieces, place, length = [], 0, 0
        for fold in _FOLD.finditer(text):
            pieces.append(text[place : fold.start()])
            pieces.append(fold[2] or chr(int(fold[1] or fold[3], 16)))
            length += fold.start() - place + 1
            place = fold.end()
            self._starts.append(length)
            self._shifts.append(place - length)
        pieces.append(text[place:])
        self.text = "".join(pieces)

    def place(self, place: int) -> int:
        """Return where in the original text a place is: before what was folded there, not after."""
        found = bisect_right(self._starts, place) - 1
        return place + self._shifts[found] if found >= 0 else place


def unfolded(text: str) -> Unfolded | None:
    """Return a text without its escapes, if it has any that could hide something."""
    is_folded = any(first in text and any(sign in text for sign in signs) for first, signs in _SIGNS.items())
    return Unfolded(text) if is_folded else None
