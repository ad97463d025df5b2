"""Text out of transcripts as a terminal may be given it: nothing in it is obeyed, by the terminal or by Textual.

Whatever is shown goes through `plain` or `styled`, and is never read as markup.
"""

from collections.abc import Iterable, Iterator

from rich.cells import cell_len, get_character_cell_size
from rich.style import Style
from rich.text import Text

from retold.export.text.escape import safe_for_terminal

STYLES = {
    "title": Style(bold=True),
    "faint": Style(dim=True),
    "you": Style(bold=True, color="cyan"),
    "agent": Style(bold=True, color="magenta"),
    "tool": Style(color="blue"),
    "bad": Style(color="red"),
    "match": Style(bold=True, color="yellow"),
    "bar": Style(color="cyan"),
    "plain": Style(),
}
"""The styles of `retold show` and of reports; none of them carries a meaning that the words do not."""
_TAB = "    "
_ALSO = {ord("\n"): "\u240a", 0x200C: "\ufffd", 0x200D: "\ufffd"}
"""What the guard for terminals lets pass and a screen cannot show: line ends, and joiners, which change how wide a row is."""


def plain(text: str) -> str:
    """Return text on one line in which every hidden or steering character is a visible sign."""
    if text.isascii() and text.isprintable():
        return text
    return safe_for_terminal(text.replace("\t", _TAB)).translate(_ALSO)


def styled(pieces: Iterable[tuple[str, str]]) -> Text:
    """Return a line in pieces, each with its style."""
    line = Text(no_wrap=True, end="")
    for style, text in pieces:
        line.append(plain(text), STYLES.get(style))
    return line


def wrapped(line: str, width: int) -> Iterator[str]:
    """Yield a line that is already plain in rows that fit; between words where there are some."""
    width = max(width, 2)
    if len(line) <= width and cell_len(line) <= width:
        yield line
        return
    start = 0
    while start < len(line):
        end = _fitting(line, start, width)
        if end < len(line):
            space = line.rfind(" ", start + width // 3, end + 1)
            end = space + 1 if space > start else end
        yield line[start:end].rstrip(" ")
        start = end


def _fitting(line: str, start: int, width: int) -> int:
    part = line[start : start + width]
    if part.isascii():
        return start + len(part)
    used = 0
    for place, character in enumerate(part):
        used += get_character_cell_size(character)
        if used > width:
            return start + max(place, 1)
    return start + len(part)
