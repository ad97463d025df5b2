"""Characters that steer a terminal or hide in its text, as visible signs of themselves."""

from __future__ import annotations

import html
import re

from retold.export.text.table import clean

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterator


_PICTURES, _FIRST_LETTER, _DELETE = 0x2400, 0x20, 0x7F
_DELETED, _OTHER = 0x2421, 0xFFFD
_LAST_OF_ONE_UNIT = 0xFFFF
HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
"""The inside of a character class: C0 but for tab and line end, DEL and C1; marks of direction; line and paragraph
separators; characters without width, soft hyphens among them; half surrogates; tags. Every other guard adds to these."""
_NEVER = re.compile(f"[{HIDDEN}]")
_SUSPECT = re.compile(f"[{HIDDEN}\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]")
# Joiners belong between letters of some scripts and between emoji, one at a time; selectors of variants behind a digit or a
# character beyond ASCII, one each, the further ones behind Chinese characters. More of them carry a hidden text.
_MISPLACED = re.compile(
    "(?<![^\x00-\x7f\u200c\u200d])[\u200c\u200d]"
    "|(?<![0-9#*\x80-\u200b\u200e-\ufdff\ufe10-\U0010ffff])[\ufe00-\ufe0f]"
    "|(?<![\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"
)
_FLAG = re.compile("\U0001f3f4([\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6})\U000e007f")
"""The flag of a region, such as Scotland: a black flag, the letters of the region as tags, and the tag that ends them."""
_TAGS = 0xE0000


def safe_for_terminal(text: str) -> str:
    """Return text that no terminal obeys and that hides nothing; tabs and line ends stay.

    Each hidden character becomes a visible sign. The flag of a region, which consists of tags, becomes a black flag with the
    region in brackets.
    """
    if _SUSPECT.search(text) is None:
        return text
    if "\U0001f3f4" in text:
        text = _FLAG.sub(_region, text)
    return pictured(_MISPLACED.sub("\ufffd", text), _NEVER)


def _region(flag: re.Match[str]) -> str:
    return f"\U0001f3f4[{''.join(chr(ord(tag) - _TAGS) for tag in flag[1])}]"


def escaped_json(line: str) -> str:
    """Return JSON with every hidden character as an escape; the data stay the same."""
    return line if _NEVER.search(line) is None else line.translate(_Escapes())


class _Escapes(dict[int, str]):
    """The JSON escape of each hidden character: computed once for each kind, however many there are."""

    def __missing__(self, code: int) -> str:
        self[code] = chr(code) if _NEVER.match(chr(code)) is None else _escape(code)
        return self[code]


def _escape(code: int) -> str:
    if code <= _LAST_OF_ONE_UNIT:
        return f"\\u{code:04x}"
    units = chr(code).encode("utf-16-be")
    return f"\\u{units[:2].hex()}\\u{units[2:].hex()}"


def pictured(text: str, controls: re.Pattern[str]) -> str:
    """Return text in which each character that a pattern matches is a picture of itself."""
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


_BACKTICKS = re.compile("`+")
_SPAN = re.compile(r"(?<!`)(`{1,3})(?!`)(.{1,500}?)(?<!`)\1(?!`)")
_LIVELY = re.compile(r"([\\`<]|\](?=[(\[]))")
"""What begins HTML, or makes a link or a picture of what stands in brackets before it."""
_MARKUP = re.compile(r"([\\`*_\[\]<>&~|$])")


def as_words(text: str) -> str:
    """Return text on one line, in which nothing is markup."""
    return _MARKUP.sub(r"\\\1", clean(text))


def as_code(text: str) -> str:
    """Return text on one line as code, whatever backticks it has."""
    line = clean(text)
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(line)), default=0))
    blank = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{blank}{line}{blank}{fence}"


def as_prose(text: str) -> str:
    """Return words on one line as they were written, code and emphasis too; nothing in them is a link, a picture or HTML."""
    pieces: list[str] = []
    place, line = 0, clean(text)
    for span in _SPAN.finditer(line):
        pieces += (_LIVELY.sub(r"\\\1", line[place : span.start()]), as_code(span[2]))
        place = span.end()
    return "".join((*pieces, _LIVELY.sub(r"\\\1", line[place:])))


def as_html(text: str) -> str:
    """Return text on one line for a line of HTML."""
    return html.escape(clean(text))


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


_CUT = "…"


def uncut(title: str | None) -> str | None:
    """Return a title without the word in which it was cut: half a secret is not known for what it is."""
    if title is None or not title.endswith(_CUT):
        return title
    return f"{title.rpartition(' ')[0]} {_CUT}".lstrip()
