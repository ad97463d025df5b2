"""Characters that would steer whoever shows them, as pictures of themselves."""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    import re

_PICTURES, _FIRST_LETTER, _DELETE = 0x2400, 0x20, 0x7F


def pictured(text: str, controls: re.Pattern[str]) -> str:
    """Return text in which each of some characters is a picture of itself; which ones steer, each sink knows."""
    return controls.sub(_picture, text)


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < _FIRST_LETTER:
        return chr(_PICTURES + code)
    return "\u2421" if code == _DELETE else "\ufffd"
