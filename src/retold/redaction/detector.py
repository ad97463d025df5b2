"""Where the secrets of a text are."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from operator import attrgetter

from retold.redaction import assignments, blocks, calls, commands, persons, phrases, surroundings, tokens
from retold.redaction.encoded import SHORTEST, blocks_of, encoded, encoded_block, runs
from retold.redaction.rules import Budget, alternatives, places, wanted
from retold.redaction.secrets import PLACEHOLDER, Secret, apart, is_mixed

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


_DULL = re.compile(r"[A-Za-z0-9_-]{0,19}$|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""What most texts of a session are, counted and not measured: names of tools, words, ids."""
_CASED = re.compile(f"{alternatives(wanted((*tokens.ANCHORS, *persons.ANCHORS)))}|[_.-][A-Za-z0-9_-]{{20}}")

_CASELESS_RULES = (assignments, surroundings, commands, calls, blocks, phrases)
_ANCHORS = tuple(anchor for rules in _CASELESS_RULES for anchor in rules.ANCHORS)
_CASELESS = wanted(_ANCHORS)
_ANY = re.compile(alternatives(_CASELESS))
_LAYERS = 2
"""How many times a text is read without what hides something."""
_start_of = attrgetter("start")
_SHORT = 400
"""In a short text, it takes longer to look for each anchor than to look for all at once; in a long one it is far faster."""


def findings(text: str, budget: Budget | None = None) -> list[Secret]:
    """Return the secrets of a text, in order, none over another; raises OverBudget where it takes too many steps."""
    if _DULL.match(text):
        return []
    budget = budget or Budget(len(text))
    found = _found(text, budget)
    found += _unfolded(text, budget)
    found += _parted(text, found, budget)
    if found and "[redacted:" in text:
        found = _outside_placeholders(text, found)
    return apart(found) if found else found


def _outside_placeholders(text: str, found: list[Secret]) -> list[Secret]:
    """Leave out what begins in a placeholder: `url-password:1]@host` names no password."""
    holders = [holder.span() for holder in PLACEHOLDER.finditer(text)]
    starts = [start for start, _ in holders]

    def is_outside(finding: Secret) -> bool:
        before = bisect_right(starts, finding.start) - 1
        return before < 0 or finding.start >= holders[before][1]

    return [*filter(is_outside, found)]


def _found(text: str, budget: Budget) -> list[Secret]:
    found: list[Secret] = []
    is_short = len(text) < _SHORT
    if not is_short or _CASED.search(text):
        found += tokens.tokens(text, budget)
        found += persons.persons(text, budget)
    if len(text) >= SHORTEST:
        found += _runs(text, budget)
    low = lower(text)
    seen = places(_CASELESS, low) if not is_short or _ANY.search(low) else {}
    if seen:
        found += surroundings.surrounded(text, low, seen, budget)
        found += assignments.assigned(text, low, seen, budget)
        found += commands.commanded(text, low, seen, budget)
        found += calls.called(text, low, seen, budget)
        found += blocks.blocked(text, low, seen, budget)
        found += phrases.phrased(text, low, seen, budget)
    return found


def _unfolded(text: str, budget: Budget) -> Iterator[Secret]:
    """Yield what is found without what hides it; an address in an address is escaped twice."""
    layers: list[Unfolded] = []
    layer = unfolded(text)
    while layer and len(layers) < _LAYERS:
        layers.append(layer)
        for start, end, kind in _found(layer.text, budget):
            place = start, end
            for one in reversed(layers):
                place = one.span(*place)
            yield Secret(*place, kind)
        layer = unfolded(layer.text) if layer.begins_escapes else None


def _parted(text: str, found: list[Secret], budget: Budget) -> Iterator[Secret]:
    """Yield the tokens that a line end or a plus sign parts; a token that is whole does not go on in an indented line."""
    known: list[Secret] | None = None
    for whole, may_go_on in ((joined(text), True), (wrapped(text), False)):
        if not whole:
            continue
        budget.spend(len(text))
        known = apart([*found]) if known is None else known
        for start, end, kind in tokens.tokens(whole.text, budget):
            cut = whole.crosses(start, end)
            if cut is None:
                continue
            first, last = whole.span(start, end)
            before = bisect_right(known, last - 1, key=_start_of) - 1
            is_known = before >= 0 and known[before].end > first
            if not is_known or (may_go_on and is_mixed(whole.text[cut:end])):
                yield Secret(first, last, kind)


def _runs(text: str, budget: Budget) -> Iterator[Secret]:
    """Yield the tokens in long runs of letters and digits, and the values in base64 in which there is a secret."""
    lines = list(runs(text))
    for start, end in lines:
        budget.spend(end - start)
        token = tokens.run_token(text, start, end)
        if token:
            yield token
        yield from _decoded(start, encoded(text, start, end), budget)
    for start, end in blocks_of(text, lines):
        budget.spend(end - start)
        yield from _decoded(start, encoded_block(text, start, end), budget)


def _decoded(start: int, inner: tuple[int, str] | None, budget: Budget) -> Iterator[Secret]:
    found = _found(inner[1], budget) if inner else []
    if inner and found:
        yield Secret(start, inner[0], found[0].kind)


def lower(text: str) -> str:
    """Return a text with the letters of ASCII in lower case, so that all places stay."""
    if text.isascii():
        return text.lower()
    return text.encode(errors="surrogatepass").lower().decode(errors="surrogatepass")
