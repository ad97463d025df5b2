"""Words in lines that fit the terminal."""

from __future__ import annotations

from retold.export.names import shortened, width_of

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

JOINT = " · "


def flowed(words: Iterable[str], width: int, joint: str = " ", indent: str = "") -> Iterator[str]:
    """Yield lines of as many words as fit, all but the first indented; a word that is longer than a line is cut."""
    line, used = "", 0
    for word in words:
        start = f"{line}{joint}" if line else ""
        long = width_of(joint) + width_of(word)
        if line and used + long <= width:
            line, used = start + word, used + long
            continue
        if line:
            yield line
        line = shortened(f"{indent if start else ''}{word}", width)
        used = width_of(line)
    if line:
        yield line
