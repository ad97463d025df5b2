r"""Texts read once more without what hides a secret: escapes, colour codes, invisible characters, breaks inside a token."""

import re
from bisect import bisect_right
from collections.abc import Iterable

_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e01ef"
)
_CODE = r"\[[0-9;:?]{0,40}[A-Za-z]"
"""A colour code without its escape character."""
_INVISIBLE_ESCAPE = r"u(?:00(?:0[0-8eEfF]|1[0-9acdefACDEF]|[aA][dD])|034[fF]|061[cC]|180[b-eB-E]|20(?:0[b-fB-F]|2[a-eA-E]|6[0-9a-fA-F])|[fF][eE](?:0[0-9a-fA-F]|[fF]{2}))"
_FOLD = re.compile(
    rf"(?<!\\)\\++(?:u00([2-7][0-9a-fA-F])|(/)|(?:u001[bB]|x1[bB]|033|e){_CODE}|{_INVISIBLE_ESCAPE}|\r?\n)|%([2-7][0-9a-fA-F])"
    rf"|(?:\x1b|\^\[){_CODE}|\x9b{_CODE[2:]}|\x1b\][^\x07\x1b\n]{{0,400}}(?:\x07|\x1b\\)"
    rf"|[{_INVISIBLE}\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]+"
)
"""`cat -v` writes an escape character as `^[`; some terminals have a character of their own for `ESC [`."""
_HIDDEN = re.compile(f"[{_INVISIBLE}\x9b]")
_CONTROLS = ("\x1b", "\x00", "\x08", "^[[")
_PERCENT = re.compile("%[2-7][0-9a-fA-F]")
_BACKSLASHED = ("\\u", "\\/", "\\\n", "\\\r\n", "\\x1b[", "\\x1B[", "\\033[", "\\e[")

_BREAK = re.compile(r"\n(?<=[A-Za-z0-9_.=\r-]\n)(?=[A-Za-z_.-]{0,20}\d)[A-Za-z0-9_.-]{8}")
_BEFORE_BREAK = re.compile(r"[A-Za-z0-9_.-]{8}(=?\r?)$")
_NEXT_PIECE = r"(?=[A-Za-z_.-]{0,20}\d)[A-Za-z0-9_.-]{8}"
_WRAPS = (
    re.compile(
        r"\n(?:(?<=[A-Za-z0-9_.-]{8}\n)|(?<=[=\r|│┃]\n))(?=[ \t+>|#*│┃])[ \t]{0,40}(?:[+>|#*│┃][ \t]{0,8})?"
        + _NEXT_PIECE
    ),
    re.compile(r"\\n" + _NEXT_PIECE),
)
"""A line end before an indented, quoted or boxed line, and one that is written as an escape."""
_BEFORE_WRAP = re.compile(
    r"[0-9A-Z][a-z_.-]{0,20}(?<=[A-Za-z0-9_.-]{8})((?:[ \t]{0,40}[|│┃])?[ \t]{0,8}=?(?:\r|\\{1,8}r)?\\{0,7})$"
)
_WORD_BEHIND = 8
_FARTHEST_BEFORE_WRAP = 90
_PLUS = re.compile(r"\+[ \t\r\n]{0,80}[\"'`][A-Za-z0-9_-]")
_BEFORE_PLUS = re.compile(r"[A-Za-z0-9_-]([\"'`][ \t\r\n]{0,80})$")
_FARTHEST_BEFORE = 90


class Unfolded:
    """A text without some of its pieces; it maps each place to the place in the original text."""

    def __init__(self, text: str, folds: Iterable[tuple[int, int, str]] | None = None) -> None:
        """Replace pieces of a text, each by one character or none; by default, all that hides something."""
        self._starts: list[int] = []
        self._shifts: list[int] = []
        self._ends: dict[int, int] = {}
        """For each character that replaces a piece, where the piece ends."""
        self.begins_escapes = False
        """Whether a piece was an escaped sign with which an escape begins."""
        pieces: list[str] = []
        place = length = 0
        for start, end, sign in _folds(text) if folds is None else folds:
            if start < place:
                continue
            pieces += (text[place:start], sign)
            length += start - place + len(sign)
            place = end
            if sign:
                self._ends[length - 1] = end
                self.begins_escapes |= sign in "%\\"
            self._starts.append(length)
            self._shifts.append(end - length)
        pieces.append(text[place:])
        self.text = "".join(pieces)

    def place(self, place: int) -> int:
        """Return where a character stands in the original text, or where that text ends."""
        found = bisect_right(self._starts, place) - 1
        return place + self._shifts[found] if found >= 0 else place

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return where the characters from one place to another stand in the original text."""
        last = end - 1
        return self.place(start), self._ends.get(last, self.place(last) + 1)

    def crosses(self, start: int, end: int) -> int | None:
        """Return the last place between two at which a piece was taken out, if there is one."""
        found = bisect_right(self._starts, end - 1) - 1
        return self._starts[found] if found >= 0 and self._starts[found] > start else None


def _folds(text: str) -> Iterable[tuple[int, int, str]]:
    for fold in _FOLD.finditer(text):
        code = fold[1] or fold[3]
        yield fold.start(), fold.end(), chr(int(code, 16)) if code else fold[2] or ""


def unfolded(text: str) -> Unfolded | None:
    """Return a text without escapes, colour codes, invisible characters and continued lines, if it has any."""
    return Unfolded(text) if _is_folded(text) else None


def _is_folded(text: str) -> bool:
    if any(sign in text for sign in _CONTROLS) or (
        "\\" in text and any(sign in text for sign in _BACKSLASHED)
    ):
        return True
    if "%" in text and _PERCENT.search(text):
        return True
    return not text.isascii() and bool(_HIDDEN.search(text))


def joined(text: str) -> Unfolded | None:
    """Return a text with the pieces of long words put together, which a line end or a plus sign parts, if there are any."""
    if "\n" not in text and "+" not in text:
        return None
    folds = [*_breaks(text), *_sums(text)]
    return Unfolded(text, sorted(folds)) if folds else None


def wrapped(text: str) -> Unfolded | None:
    """Return a text with the pieces of long words put together, which indented, quoted or escaped lines part, if there are any."""
    if "\n" not in text and "\\n" not in text:
        return None
    folds = sorted(_wraps(text))
    return Unfolded(text, folds) if folds else None


def _wraps(text: str) -> Iterable[tuple[int, int, str]]:
    for pattern in _WRAPS:
        for found in pattern.finditer(text):
            place = found.start()
            before = _BEFORE_WRAP.search(text, max(0, place - _FARTHEST_BEFORE_WRAP), place)
            if before:
                yield before.start(1), found.end() - _WORD_BEHIND, ""


def _breaks(text: str) -> Iterable[tuple[int, int, str]]:
    for found in _BREAK.finditer(text):
        place = found.start()
        before = _BEFORE_BREAK.search(text, max(0, place - 10), place)
        if before:
            yield before.start(1), place + 1, ""


def _sums(text: str) -> Iterable[tuple[int, int, str]]:
    for found in _PLUS.finditer(text):
        before = _BEFORE_PLUS.search(text, max(0, found.start() - _FARTHEST_BEFORE), found.start())
        if before:
            yield before.start(1), found.end() - 1, ""


def without_marks(text: str) -> str:
    """Return a text without colour codes and invisible characters."""
    if text.isascii() and "\x1b" not in text:
        return text
    return Unfolded(text, _marks(text)).text


def _marks(text: str) -> Iterable[tuple[int, int, str]]:
    return (fold for fold in _folds(text) if not fold[2] and text[fold[0]] != "\\")
