"""Cells of CSV: what a spreadsheet shows and does not calculate."""

from __future__ import annotations

_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What makes a spreadsheet calculate instead of show; the wide ones do in East Asian settings."""
_QUOTED = '",\r\n'


def harmless(text: str) -> str:
    """Return text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text.startswith(_FORMULAS) else text


def cell(value: object) -> str:
    """Return a value as it stands in a row; what is unknown is empty."""
    text = "" if value is None else str(value)
    if any(character in text for character in _QUOTED):
        return '"' + text.replace('"', '""') + '"'
    return text
