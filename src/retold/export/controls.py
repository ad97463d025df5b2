"""Characters that would steer whoever shows them, as pictures of themselves."""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    import re

_PICTURES, _FIRST_LETTER, _DELETE = 0x2400, 0x20, 0x7F
_DELETED, _OTHER = 0x2421, 0xFFFD


def pictured(text: str, controls: re.Pattern[str]) -> str:
    """Return text in which each of some characters is a picture of itself; which ones steer, each sink knows."""
    return text if controls.search(text) is None else text.translate(_Shown(controls))


class _Shown(dict[int, int]):
    """What stands for each character: asked once for each kind, however many there are."""

    def __init__(self, controls: re.Pattern[str]) -> None:
        super().__init__()
        self._controls = controls

    def __missing__(self, code: int) -> int:
        self[code] = code if self._controls.match(chr(code)) is None else _picture(code)
        return self[code]


def _picture(code: int) -> int:
    if code < _FIRST_LETTER:
        return _PICTURES + code
    return _DELETED if code == _DELETE else _OTHER
