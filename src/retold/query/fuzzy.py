"""Words found in short texts though they are typed in haste: a beginning, a part, one slip, or only some of the letters."""

from __future__ import annotations

import re
from functools import lru_cache

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Sequence

_BEGINS, _PART, _SLIP, _LETTERS = 5, 4, 2, 1
"""How close a word comes."""
_LONGEST, _SOON = 400, 160
"""How much of a text is looked at, for words and for what comes near them."""
_MOST_WORDS = 8
_SLIPPERY = 4
"""Shorter words are close to too many others."""
_NAMES = 2
"""Fields that are names: in longer texts, some letters of every word stand somewhere."""
_SPELT = 24
"""How many letters of a word are looked at for slips."""
_PLACES = 8
"""At how many places of a text letters are looked for."""


def words_of(typed: str) -> list[str]:
    """Return the words that are looked for."""
    return folded(typed).split()[:_MOST_WORDS]


def folded(text: str) -> str:
    """Return a text as it is compared."""
    return " ".join(text[:_LONGEST].casefold().split())


def closeness(words: Sequence[str], fields: Sequence[str], *, strict: bool = False) -> tuple[int, int] | None:
    """Return how close folded fields come to words, the first field counting most; None if a word is in none of them.

    The first figure is that of the word that fits worst. If it is strict, only words count that stand there as they
    were typed.
    """
    worst, together = _BEGINS, 0
    for word in words:
        best, weight = 0, 0
        for place, field in enumerate(fields):
            found = _standing(word, field) or (
                0 if strict else _near_enough(word, field, is_name=place < _NAMES)
            )
            if found > best:
                best, weight = found, found * 4 - place
        if best == 0:
            return None
        worst, together = min(worst, best), together + weight
    return worst, together


def _standing(word: str, text: str) -> int:
    at = text.find(word)
    if at < 0:
        return 0
    return _BEGINS if at == 0 or not text[at - 1].isalnum() or f" {word}" in text else _PART


def _near_enough(word: str, text: str, *, is_name: bool) -> int:
    text = text[:_SOON]
    if len(word) >= _SLIPPERY and _has_slip(word, text):
        return _SLIP
    if not is_name:
        return 0
    return _LETTERS if (_has_letters if len(word) >= _SLIPPERY else _has_initials)(word, text) else 0


def _has_slip(word: str, text: str) -> bool:
    """Tell whether the text has the word but for one letter, or two that changed places."""
    return _slips(word[:_SPELT]).search(text) is not None


@lru_cache(maxsize=64)
def _slips(word: str) -> re.Pattern[str]:
    """Return what finds a word with one slip at the beginning of another.

    Not in its first letter: hardly anybody mistypes that, and too much would fit. Nothing repeats, so that the work is bounded.
    """
    first, rest = word[0], word[1:]
    ways = []
    for place in range(len(rest)):
        before, letter, after = rest[:place], rest[place], rest[place + 1 :]
        escaped = [re.escape(part) for part in (before, letter, after, after[:1], after[1:])]
        ways.append(f"{escaped[0]}.{escaped[1]}{escaped[2]}")  # one was left out
        ways.append(f"{escaped[0]}{escaped[2]}")  # one is too many
        ways.append(f"{escaped[0]}.{escaped[2]}")  # one is another
        ways.append(f"{escaped[0]}{escaped[3]}{escaped[1]}{escaped[4]}")  # two changed places
    begins = re.escape(first)
    # The letter before the look behind it: so places are found fast.
    return re.compile(rf"{begins}(?<![^\W_]{begins})(?:{'|'.join(ways)})")


def _has_letters(word: str, text: str) -> bool:
    """Tell whether the letters of a word stand close together in their order, as in `mgrtn` for migration."""
    at = text.find(word[0])
    for _ in range(_PLACES):
        if at < 0:
            return False
        end = _end(word, text, at)
        if end < 0:
            return False
        if end - at < 2 * len(word) and (at == 0 or not text[at - 1].isalnum()):
            return True
        at = text.find(word[0], at + 1)
    return False


def _end(word: str, text: str, start: int) -> int:
    place = start
    for letter in word[1:]:
        place = text.find(letter, place + 1)
        if place < 0:
            return -1
    return place


def _has_initials(word: str, text: str) -> bool:
    """Tell whether words that follow each other begin with these letters."""
    return len(word) > 1 and word in "".join(part[0] for part in text.split())
