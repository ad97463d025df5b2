"""The tokenizer of the text index: it prepares texts for SQLite's FTS5, and splits queries as FTS5 does.

FTS5's tokenizer is `unicode61 remove_diacritics 2`. Its tables are of Unicode 6.1, and it takes any later code point for a
letter, a new emoji as well as a new script (SQLite 3.54.1, every code point tried); `prepare_text` blanks out those that are
none.

Texts and queries are split in the form NFKC: `ﬁ` is `fi`, and a full-width letter is a letter. Each picture, such as an emoji or
a tick, is a word: FTS5 is given a letter in its place. Raise `TOKENIZER_VERSION` when words change.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from itertools import accumulate, groupby

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any


class LazyPattern:
    """A regular expression that is compiled when it is first used: a search for plain words needs none, and `re` takes 3 ms."""

    def __init__(self, text: str | bytes) -> None:
        self.text = text

    def compile(self) -> re.Pattern[Any]:
        """Return the compiled expression."""
        import re

        return re.compile(self.text)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.compile(), name)
        setattr(self, name, method)  # is found without this method from now on
        return method


# First and last characters of scripts that write without spaces, or whose words are looked for by their parts: Thai,
# Lao, Burmese and Khmer with their vowel signs, Hangul, kana, bopomofo, Han.
_DENSE = (
    "\u0e00\u0eff\u1000\u109f\u1100\u11ff\u1780\u17ff\u3005\u3007\u3021\u3029\u3031\u3035\u303b\u303c\u3041\u3096"
    "\u309d\u309f\u30a1\u30fa\u30fc\u318e\u31a0\u31bf\u31f0\u31ff\u3400\u4dbf\u4e00\u9fff\ua960\ua97c\uaa60\uaa7f"
    "\uac00\ud7fb\uf900\ufaff\uff66\uffdc\U0001b000\U0001b16f\U00020000\U0003ffff"
)
ACCENTS = (
    "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u0309\u030a\u030b\u030c\u030f\u0311\u031b\u0323\u0324\u0325"
    "\u0326\u0327\u0328\u032d\u032e\u0330\u0331"
)
"""Characters that FTS5 removes from the letter before them; they begin no word."""
_WITHOUT_ACCENTS = dict.fromkeys(map(ord, ACCENTS))
# Letters of today that were signs in Unicode 6.1, of New Tai Lue and the Vedas: FTS5 cuts there.
_UNKNOWN = "".join(map(chr, [*range(0x19B0, 0x19C1), 0x19C8, 0x19C9, 0x1CF2, 0x1CF3]))

PICTURES = "\u231a-\u231b\u23e9-\u23fa\u2600-\u2775\u2794-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
"""Emoji, dingbats and signs, each a word of its own, as a character class of a regular expression."""
_PICTURE_RANGES = PICTURES.replace("-", "")
_AS_LETTER = 0x40000
"""Added to the code point of a picture: FTS5 takes code points without a character for letters."""

_LETTER, _DENSE_LETTER, _PICTURE, _NEITHER = range(4)

_ASCII = bytes(range(128))
_SEPARATORS = {code: " " for code in range(128) if not chr(code).isalnum()}
_UNSEPARATED = LazyPattern(r"[^\x00-/:-@\[-`{-\x7f]+")
_WORD = LazyPattern(r"[^\W_]+")
_DENSE_RUN = LazyPattern(
    "[" + "".join([f"{first}-{last}" for first, last in zip(_DENSE[::2], _DENSE[1::2], strict=True)]) + "]+"
)

# The shape of a text: small letters are `a`, capitals `A`, digits `0`, and all else is blank.
_SHAPE = b" " * 48 + b"0" * 10 + b" " * 7 + b"A" * 26 + b" " * 6 + b"a" * 26 + b" " * 133
# From a hump to the end of its word. It begins with one plain letter because that is found at the speed of C.
# `URLs` and `SHA256` have no hump.
_HUMPED = LazyPattern(rb"A(?:(?<=aA)|(?<=[A0]A)(?=aa))[aA0]*")
_DIGITS = "0123456789"

LONGEST_NAME = 64
"""Longer names are not split: they are base64."""
_MOST_INNER_NUMBERS = 1
_SHORTEST_WITH_PARTS = 3
"""Letters of a name with a hump of which two are in one part."""
_FEWEST_PIECES = 64
_FEW = 16


def prepare_text(text: str) -> str:
    """Return a text for FTS5, with spaces in dense scripts and where FTS5 would see no end of a word."""
    return text if text.isascii() else _insert_spaces(text)


def normalize(text: str) -> str:
    """Return a text in the form NFKC, without changing signs; a sign that becomes letters, as `™`, stays apart from other words."""
    return text if text.isascii() else _normalize(text, _beyond_ascii(text))


class IdentifierParts:
    """Finds identifiers with humps, as `timeZone`, each once, so that a search finds their parts.

    FTS5 knows an identifier as one word. Indexing its parts with every text would take more space than the words of all texts.
    """

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def find_new(self, texts: Sequence[bytes]) -> Iterator[tuple[str, int]]:
        """Yield identifiers that were not seen before, each with the index of the first text that has it."""
        import re

        raw = b"\n".join(texts)
        shape = raw.translate(_SHAPE)
        blank_before = shape.rfind
        spans = [
            (blank_before(b" ", 0, hump) + 1, end)
            for hump, end in map(re.Match.span, _HUMPED.finditer(shape))
        ]
        found = [raw[start:end] for start, end in spans]
        new = set(found) - self._seen
        if not new:
            return
        ends = list(accumulate([len(text) + 1 for text in texts]))
        starts = [start for start, _ in spans]
        last, is_encoded = -1, False
        for start, name in zip(starts, found, strict=True):
            if name not in new:
                continue
            number = bisect_right(ends, start)
            if number != last:
                first = bisect_left(starts, ends[number - 1]) if number else 0
                last, is_encoded = number, _are_encoded(found[first : bisect_left(starts, ends[number])])
            if is_encoded:
                continue
            new.remove(name)
            self._seen.add(name)
            if _has_parts(name):
                yield name.decode("ascii"), number


def tokenize(text: str) -> list[str]:
    """Return the words that FTS5 finds in a text, folded and in order, without the parts of identifiers."""
    return [fold(word) for word in split_words(text)]


def split_words(text: str) -> list[str]:
    """Return the words that FTS5 finds in a text, as they are written."""
    if text.isascii():
        return text.translate(_SEPARATORS).split()
    return [word for atom in split_runs(text) for word in _words_of_run(atom)]


def split_runs(text: str) -> list[str]:
    """Return the words of a text in its normal form; runs of dense script stay whole."""
    if text.isascii():
        return split_words(text)
    text = normalize(text)
    return [
        atom for run in _UNSEPARATED.findall(text) for atom in ([run] if run.isascii() else _split_run(run))
    ]


def query_words(text: str) -> tuple[list[str], bool]:
    """Return the words by which a text is found anywhere, and whether the last may only begin a word.

    A run of dense script may go on in the searched text, so its last character is no word by itself.
    """
    words = split_words(text)
    last = split_runs(text)[-1] if words else ""
    if not last or not is_dense(last[0]):
        return words, False
    if len(last) == 1:
        return words, True
    return (words[:-1] if last[-1].isalnum() else words), False


def fold(word: str) -> str:
    """Return a word without case and accents, as FTS5 does, except letters that are younger than its tables."""
    return word.lower() if word.isascii() else level(word).translate(_WITHOUT_ACCENTS)


def level(text: str) -> str:
    """Return a text of the same length without case and accents, except accents that are characters of their own."""
    if text.isascii():
        return text.lower()
    folds = {character: _FOLDS[character] for character in _beyond_ascii(text)}
    folded = _replace(text, {character: small for character, small in folds.items() if small != character})
    # Only ASCII is left, and bytes are lowered ten times as fast.
    return folded.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def find_part_spans(name: str) -> list[tuple[int, int]]:
    """Return the spans of an identifier's parts, with and without the number at their end; none for other names."""
    shape = name.encode("ascii", "replace").translate(_SHAPE)
    if len(name) > LONGEST_NAME or shape.count(b"0a") + shape.count(b"0A") > _MOST_INNER_NUMBERS:
        return []
    humps = []
    start = shape.find(b"A", 1)
    while start > 0:
        before = shape[start - 1 : start]
        if before == b"a" or (before != b" " and shape[start + 1 : start + 3] == b"aa"):
            humps.append(start)
        start = shape.find(b"A", start + 1)
    if not humps:
        return []
    spans = zip([0, *humps], [*humps, len(name)], strict=True)
    return [span for start, end in spans for span in _with_and_without_number(name, start, end)]


def is_letter(character: str) -> bool:
    """Return whether a character is part of a word that other characters delimit."""
    return _KINDS[character] == _LETTER


def is_dense(character: str) -> bool:
    """Return whether a character is of a script that is written without spaces."""
    return _is_in(_DENSE, character)


def _is_in(ranges: str, character: str) -> bool:
    """Return whether a character is in a range; each range is its first and its last character."""
    offset = bisect_right(ranges, character)
    return offset % 2 == 1 or (offset > 0 and ranges[offset - 1] == character)


def is_picture(character: str) -> bool:
    """Return whether a character is a word by itself."""
    return _KINDS[character] == _PICTURE


def _words_of_run(atom: str) -> list[str]:
    if is_dense(atom[0]):
        return _pairs(atom)
    return [_as_letter(atom)] if is_picture(atom[0]) else [atom]


def _are_encoded(names: Sequence[bytes]) -> bool:
    """Return whether the identifiers of a text are pieces of base64 with signs between."""
    different = set(names) if len(names) >= _FEWEST_PIECES else ()
    return len(different) >= _FEWEST_PIECES and sum(map(_has_parts, different)) < len(different) // 2


def _has_parts(name: bytes) -> bool:
    """Return whether a name with a hump has parts that are worth searching."""
    if name.isalpha() and _SHORTEST_WITH_PARTS <= len(name) <= LONGEST_NAME:
        return True
    return any(end - start > 1 for start, end in find_part_spans(name.decode("ascii")))


def _with_and_without_number(name: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield a part, and its letters without a number: `Utf8` is found as it is, and `Server2` by `server` too."""
    yield start, end
    letters = start + len(name[start:end].rstrip(_DIGITS))
    if start < letters < end:
        yield start, letters


def _insert_spaces(text: str) -> str:
    """Return a text with spaces where words end and FTS5 would not see it."""
    characters = _beyond_ascii(text)
    if any(map(_CHANGES.__getitem__, characters)):
        text = _normalize(text, characters)
        characters = _beyond_ascii(text)
    if any(map(is_dense, characters)):
        text = _DENSE_RUN.sub(_space_pairs, text)
    blanks = dict.fromkeys(filter(_GLUE.__getitem__, characters), " ")
    return _replace(text, blanks | {one: f" {_as_letter(one)} " for one in filter(is_picture, characters)})


def _normalize(text: str, characters: set[str]) -> str:
    """Return the normal form of a text that has these characters beyond ASCII."""
    text = _replace(text, {one: _PLAIN[one] for one in characters if _PLAIN[one] != one})
    return unicodedata.normalize("NFC", text) if any(map(is_joined, characters)) else text


def _beyond_ascii(text: str) -> set[str]:
    """Return the characters of a text that are not ASCII; most texts have few."""
    rest = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    return set(rest.decode("utf-8", "surrogatepass"))


def _replace(text: str, changes: dict[str, str]) -> str:
    if len(changes) > _FEW:
        return text.translate({ord(old): new for old, new in changes.items()})
    for old, new in changes.items():  # for a few, this is faster
        text = text.replace(old, new)
    return text


def _space_pairs(found: re.Match[str]) -> str:
    """Return a run as overlapping pairs of characters, and its last one, so that each character begins a word."""
    text, run, (start, end) = found.string, found[0], found.span()
    pairs = " ".join([run[offset : offset + 2] for offset in range(len(run))])
    left = "" if start == 0 or text[start - 1].isspace() else " "
    right = "" if end == len(text) or text[end].isspace() else " "
    return left + pairs + right


def _pairs(run: str) -> list[str]:
    """Return the words that FTS5 finds in the pairs of a run: it splits at vowel signs."""
    return [word for offset in range(len(run)) for word in _WORD.findall(run[offset : offset + 2])]


def _as_letter(picture: str) -> str:
    """Return the letter that FTS5 is given for a picture."""
    return chr(ord(picture) + _AS_LETTER)


def _changes_in_normal_form(character: str) -> bool:
    """Return whether the normal form of a text with this character may differ from the text."""
    return _PLAIN[character] != character or _JOINED[character]


def is_joined(character: str) -> bool:
    """Return whether a character may become one with the character before it: a mark, or a Hangul vowel or final."""
    return _JOINED[character]


def _is_joined(character: str) -> bool:
    plain = unicodedata.normalize("NFKC", character)[0]
    return unicodedata.category(plain)[0] == "M" or "\u1160" <= plain <= "\u11ff"


def _is_glue(character: str) -> bool:
    """Return whether a character is no part of a word, and FTS5 may take it for one."""
    is_known = character < "\u0100" or "\u2010" <= character <= "\u2064" or "\u2190" <= character <= "\u23f3"
    is_known = is_known or "\u2500" <= character <= "\u26ff" or "\u3000" <= character <= "\u303f"
    return not (is_known or character.isalnum() or character in ACCENTS or is_picture(character))


def _split_run(run: str) -> Iterator[str]:
    """Yield the words and dense runs of a text without ASCII separators."""
    for kind, characters in groupby(run, _KINDS.__getitem__):
        atom = "".join(characters)
        word = atom.lstrip(ACCENTS)  # accents without a letter
        if kind == _PICTURE:
            yield from atom
        elif (kind == _LETTER and word) or (kind == _DENSE_LETTER and _WORD.search(atom)):
            yield word


def _kind(character: str) -> int:
    """Return the role of a character for the words around it."""
    if is_dense(character):
        return _DENSE_LETTER
    if _is_in(_PICTURE_RANGES, character):
        return _PICTURE
    is_word = character.isalnum() and character not in _UNKNOWN
    return _LETTER if is_word or character in ACCENTS else _NEITHER


def _folded(character: str) -> str:
    """Return the small letter without accents, one character."""
    small = character.casefold()
    if len(small) != 1:
        small = character.lower()[0]
    plain = unicodedata.normalize("NFD", small)
    # FTS5 takes accents off Latin letters only.
    return plain[0] if len(plain) > 1 and plain[0].isascii() else small


def _plain_form(character: str) -> str:
    """Return the form NFKC of one character; with blanks around it if a sign becomes letters; other signs stay."""
    plain = unicodedata.normalize("NFKC", character)
    if character.isalnum() or unicodedata.category(character)[0] == "M":
        return plain
    return f" {plain} " if any(map(str.isalnum, plain)) else character


class _Table(dict[str, "Any"]):
    """The results of a function of a character; each is computed once."""

    def __init__(self, function: Callable[[str], Any]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, character: str) -> Any:
        self[character] = result = self._function(character)
        return result


_PLAIN: dict[str, str] = _Table(_plain_form)
_KINDS: dict[str, int] = _Table(_kind)
_FOLDS: dict[str, str] = _Table(_folded)
_JOINED: dict[str, bool] = _Table(_is_joined)
_GLUE: dict[str, bool] = _Table(_is_glue)
_CHANGES: dict[str, bool] = _Table(_changes_in_normal_form)
