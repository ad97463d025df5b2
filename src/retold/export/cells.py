"""Cells of CSV: what a spreadsheet shows and does not calculate."""

from __future__ import annotations

import re

from retold.export.controls import HIDDEN

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator

_FORMULA = re.compile(
    # Blanks and hidden characters, which some spreadsheets skip; then what begins a formula, with its wide and small forms,
    # which do so in East Asian settings.
    f"[\\s{HIDDEN}\xad\u034f\u180b-\u180f\u200c\u200d\u2800\ufe00-\ufe0f\U000e0000-\U000e0fff]*+"
    "[=+\\-@\uff1d\uff0b\uff0d\uff20\ufe62\ufe63\ufe66\ufe6b]"
    "|[\t\r\n]"
)
"""What makes a spreadsheet calculate instead of show."""
_QUOTED = '",\r\n'
PIECE = 1 << 16
"""How much of a long text is told at once."""


def harmless(text: str) -> str:
    """Return text that a spreadsheet does not take for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def cell(value: object) -> str:
    """Return a value as it stands in a row; what is unknown is empty."""
    text = "" if value is None else str(value)
    if any(character in text for character in _QUOTED):
        return '"' + text.replace('"', '""') + '"'
    return text


def cell_pieces(text: str) -> Iterator[str]:
    """Yield the cell of a long text."""
    sign = '"' if any(character in text for character in _QUOTED) else ""
    yield sign
    yield from (piece.replace('"', '""') for piece in pieces_of(text))
    yield sign


def pieces_of(text: str) -> Iterator[str]:
    """Yield a text bit by bit."""
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))
