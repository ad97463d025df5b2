"""Detector: the positions of secrets in a text."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from operator import attrgetter

from retold.redaction import assignments, blocks, persons, surroundings, tokens
from retold.redaction.blocks import SHORTEST, decode_block, decode_run, find_base64_blocks, find_base64_runs
from retold.redaction.rules import Budget, compile_words, find_words, word_pattern
from retold.redaction.secrets import PLACEHOLDER, Secret, is_mixed, merge_overlaps

_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_CODE = r"\[[0-9;:?]{0,40}[A-Za-z]"
"""A colour code without its escape character."""
_INVISIBLE_ESCAPE = r"u(?:00(?:0[0-8eEfF]|1[0-9acdefACDEF]|[aA][dD])|034[fF]|061[cC]|180[b-eB-E]|20(?:0[b-fB-F]|2[a-eA-E]|6[0-9a-fA-F])|[fF][eE](?:0[0-9a-fA-F]|[fF]{2}))"
_FOLD = re.compile(
    rf"(?<!\\)\\++(?:u00([2-7][0-9a-fA-F])|(/)|(?:u001[bB]|x1[bB]|033|e){_CODE}|{_INVISIBLE_ESCAPE}|\r?\n)|%([2-7][0-9a-fA-F])"
    rf"|(?:\x1b|\^\[){_CODE}|\x9b{_CODE[2:]}|\x1b[()*+][0-9A-Za-z]|\x1b\][^\x07\x1b\n]{{0,400}}(?:\x07|\x1b\\)"
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
"""A line end before an indented, quoted or boxed line, and a line end written as an escape."""
_BEFORE_WRAP = re.compile(
    r"[0-9A-Z][a-z_.-]{0,20}(?<=[A-Za-z0-9_.-]{8})((?:[ \t]{0,40}[|│┃])?[ \t]{0,8}=?(?:\r|\\{1,8}r)?\\{0,7})$"
)
_WORD_BEHIND = 8
_FARTHEST_BEFORE_WRAP = 90
_PLUS = re.compile(r"\+[ \t\r\n]{0,80}[\"'`][A-Za-z0-9_-]")
_BEFORE_PLUS = re.compile(r"[A-Za-z0-9_-]([\"'`][ \t\r\n]{0,80})$")
_FARTHEST_BEFORE = 90


class UnfoldedText:
    """A text without some of its pieces; it maps each position to the position in the original text."""

    def __init__(self, text: str, folds: Iterable[tuple[int, int, str]] | None = None) -> None:
        """Replace pieces of a text, each by one character or none; by default, all pieces that can hide a secret."""
        self._starts: list[int] = []
        self._shifts: list[int] = []
        self._ends: dict[int, int] = {}
        """The end of the original piece, by the position of the character that replaces it."""
        self.begins_escapes = False
        """Whether a piece was an escaped `%` or backslash, with which another escape begins."""
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

    def position(self, position: int) -> int:
        """Return the position of a character in the original text, or the end of that text."""
        before = bisect_right(self._starts, position) - 1
        return position + self._shifts[before] if before >= 0 else position

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of the original text that a range of this text comes from."""
        last = end - 1
        return self.position(start), self._ends.get(last, self.position(last) + 1)

    def last_cut(self, start: int, end: int) -> int | None:
        """Return the last position within a range at which a piece was removed; None if there is none."""
        before = bisect_right(self._starts, end - 1) - 1
        return self._starts[before] if before >= 0 and self._starts[before] > start else None


def _folds(text: str) -> Iterable[tuple[int, int, str]]:
    for fold in _FOLD.finditer(text):
        code = fold[1] or fold[3]
        yield fold.start(), fold.end(), chr(int(code, 16)) if code else fold[2] or ""


def unfold(text: str) -> UnfoldedText | None:
    """Return a text without escapes, colour codes, invisible characters and continued lines; None if it has none."""
    return UnfoldedText(text) if _is_folded(text) else None


def _is_folded(text: str) -> bool:
    if any(sign in text for sign in _CONTROLS) or (
        "\\" in text and any(sign in text for sign in _BACKSLASHED)
    ):
        return True
    if "%" in text and _PERCENT.search(text):
        return True
    return not text.isascii() and bool(_HIDDEN.search(text))


def join_lines(text: str) -> UnfoldedText | None:
    """Return a text in which long words that a line end or a plus sign divides are whole; None if it has none."""
    if "\n" not in text and "+" not in text:
        return None
    folds = [*_breaks(text), *_sums(text)]
    return UnfoldedText(text, sorted(folds)) if folds else None


def join_wrapped_lines(text: str) -> UnfoldedText | None:
    """Return a text in which long words that indented, quoted or escaped lines divide are whole; None if it has none."""
    if "\n" not in text and "\\n" not in text:
        return None
    folds = sorted(_wraps(text))
    return UnfoldedText(text, folds) if folds else None


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


def strip_marks(text: str) -> str:
    """Return a text without colour codes and invisible characters."""
    if text.isascii() and "\x1b" not in text:
        return text
    return UnfoldedText(text, _marks(text)).text


def _marks(text: str) -> Iterable[tuple[int, int, str]]:
    return (fold for fold in _folds(text) if not fold[2] and text[fold[0]] != "\\")


_DULL = re.compile(r"[A-Za-z0-9_-]{0,19}$|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""Most texts of a session, by number and not by size: names of tools, words, ids. They hold no secrets."""
_CASED = re.compile(
    f"{word_pattern(compile_words((*tokens.ANCHORS, *persons.ANCHORS)))}|[_.-][A-Za-z0-9_-]{{20}}"
)
_CASELESS = compile_words((*assignments.ANCHORS, *surroundings.ANCHORS, *blocks.ANCHORS))
_ANY_CASELESS = re.compile(word_pattern(_CASELESS))
_CASELESS_FINDERS = (
    surroundings.find_in_headers,
    blocks.find_private_keys,
    surroundings.find_cookies,
    assignments.find_assignments,
    surroundings.find_in_commands,
    surroundings.find_in_calls,
    blocks.find_blocks,
    surroundings.find_in_sentences,
)
"""The rules for lowercase text. Of two secrets at the same place, the one of the earlier rule gives the kind."""
_LAYERS = 2
"""How many times escapes are removed from a text: an address within an address is escaped twice."""
_get_start = attrgetter("start")
_SHORT = 400
"""Characters up to which one pattern of all words is faster than a search for each word."""


def find_secrets(text: str, budget: Budget | None = None) -> list[Secret]:
    """Return the secrets of a text in order, without overlaps; raise OverBudget if it takes too many steps."""
    if _DULL.match(text):
        return []
    budget = budget or Budget(len(text))
    found = _find_in_layer(text, budget)
    found += _find_escaped(text, budget)
    found += _find_divided(text, found, budget)
    if found and "[redacted:" in text:
        found = _outside_placeholders(text, found)
    return merge_overlaps(found) if found else found


def _outside_placeholders(text: str, found: list[Secret]) -> list[Secret]:
    """Return the secrets that do not begin inside a placeholder: `url-password:1]@host` is no password."""
    holders = [holder.span() for holder in PLACEHOLDER.finditer(text)]
    starts = [start for start, _ in holders]

    def is_outside(finding: Secret) -> bool:
        before = bisect_right(starts, finding.start) - 1
        return before < 0 or finding.start >= holders[before][1]

    return [*filter(is_outside, found)]


def _find_in_layer(text: str, budget: Budget) -> list[Secret]:
    found: list[Secret] = []
    is_short = len(text) < _SHORT
    if not is_short or _CASED.search(text):
        found += tokens.find_tokens(text, budget)
        found += persons.find_personal_data(text, budget)
    if len(text) >= SHORTEST:
        found += _find_in_runs(text, budget)
    low = lower_ascii(text)
    positions = find_words(_CASELESS, low) if not is_short or _ANY_CASELESS.search(low) else {}
    if positions:
        for find in _CASELESS_FINDERS:
            found += find(text, low, positions, budget)
    return found


def _find_escaped(text: str, budget: Budget) -> Iterator[Secret]:
    """Yield the secrets of the text without escapes, with their positions in the text itself."""
    layers: list[UnfoldedText] = []
    layer = unfold(text)
    while layer and len(layers) < _LAYERS:
        layers.append(layer)
        for start, end, kind in _find_in_layer(layer.text, budget):
            span = start, end
            for outer in reversed(layers):
                span = outer.span(*span)
            yield Secret(*span, kind)
        layer = unfold(layer.text) if layer.begins_escapes else None


def _find_divided(text: str, found: list[Secret], budget: Budget) -> Iterator[Secret]:
    """Yield the tokens that a line end or a plus sign divides; a token that is whole does not continue in an indented line."""
    known: list[Secret] | None = None
    for whole, may_continue in ((join_lines(text), True), (join_wrapped_lines(text), False)):
        if not whole:
            continue
        budget.spend(len(text))
        known = merge_overlaps([*found]) if known is None else known
        for start, end, kind in tokens.find_tokens(whole.text, budget):
            cut = whole.last_cut(start, end)
            if cut is None:
                continue
            first, last = whole.span(start, end)
            before = bisect_right(known, last - 1, key=_get_start) - 1
            is_known = before >= 0 and known[before].end > first
            if not is_known or (may_continue and is_mixed(whole.text[cut:end])):
                yield Secret(first, last, kind)


def _find_in_runs(text: str, budget: Budget) -> Iterator[Secret]:
    """Yield the tokens in long runs of letters and digits, and the values in base64 that contain a secret."""
    lines = list(find_base64_runs(text))
    for start, end in lines:
        budget.spend(end - start)
        token = tokens.find_run_token(text, start, end)
        if token:
            yield token
        yield from _find_encoded(start, decode_run(text, start, end), budget)
    for start, end in find_base64_blocks(text, lines):
        budget.spend(end - start)
        yield from _find_encoded(start, decode_block(text, start, end), budget)


def _find_encoded(start: int, inner: tuple[int, str] | None, budget: Budget) -> Iterator[Secret]:
    found = _find_in_layer(inner[1], budget) if inner else []
    if inner and found:
        yield Secret(start, inner[0], found[0].kind)


def lower_ascii(text: str) -> str:
    """Return a text with its ASCII letters in lower case, so that no position changes."""
    if text.isascii():
        return text.lower()
    return text.encode(errors="surrogatepass").lower().decode(errors="surrogatepass")
