"""Words found in short texts though they are typed in haste: a beginning, a part, one slip, or only some of the letters."""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Sequence

EXACT = 4
"""From this closeness on, a word stands there as it was typed."""
_BEGINS, _PART, _SLIP, _LETTERS = 5, EXACT, 2, 1
_LONGEST = 400
"""How much of a text is looked at."""
_MOST_WORDS = 8
_SLIPPERY = 4
"""Shorter words are close to too many others."""
_PLACES = 8
"""At how many places of a text a slip is looked for."""


def words_of(typed: str) -> list[str]:
    """Return the words that are looked for."""
    return folded(typed).split()[:_MOST_WORDS]


def folded(text: str) -> str:
    """Return a text as it is compared."""
    return " ".join(text[:_LONGEST].casefold().split())


def closeness(words: Sequence[str], fields: Sequence[str]) -> tuple[int, int] | None:
    """Return how close folded fields come to words, the first field counting most; None if a word is in none of them.

    The first figure is that of the word that fits worst: `EXACT` and above where all stand there as they were typed.
    """
    worst, together = _BEGINS, 0
    for word in words:
        best, weight = 0, 0
        for place, field in enumerate(fields):
            found = _found(word, field)
            if found > best:
                best, weight = found, found * 4 - place
        if best == 0:
            return None
        worst, together = min(worst, best), together + weight
    return worst, together


def _found(word: str, text: str) -> int:
    at = text.find(word)
    if at >= 0:
        return _BEGINS if at == 0 or not text[at - 1].isalnum() or f" {word}" in text else _PART
    if len(word) >= _SLIPPERY:
        if _has_slip(word, text):
            return _SLIP
        return _LETTERS if _has_letters(word, text) else 0
    return _LETTERS if _has_initials(word, text) else 0


def _has_slip(word: str, text: str) -> bool:
    """Tell whether the text has the word but for one letter, or two that changed places.

    A slip spoils one half of a word at most, or the seam between them: so only places with one half are looked at.
    """
    half = len(word) // 2
    return (
        _near(word, text, word[:half], 0)
        or _near(word, text, word[half:], half)
        or _near(word, text, word[: half - 1], 0)  # the seam itself was turned round
    )


def _near(word: str, text: str, sure: str, offset: int) -> bool:
    at, tries = text.find(sure) if sure else -1, 0
    while at >= 0 and tries < _PLACES:
        for shift in (0, -1, 1):
            start = at - offset + shift
            if start >= 0 and (start == 0 or not text[start - 1].isalnum()) and _is_close(word, text, start):
                return True
        at, tries = text.find(sure, at + 1), tries + 1
    return False


def _is_close(word: str, text: str, start: int) -> bool:
    """Tell whether the text goes on from a place with the word, but for one slip."""
    there = text[start : start + len(word) + 1]
    same = next((place for place, letter in enumerate(word) if there[place : place + 1] != letter), len(word))
    if same == 0:
        return False  # hardly anybody mistypes the first letter, and too much would fit
    rest = word[same:]
    return (
        there[same + 1 :].startswith(rest)  # one was left out
        or there[same:].startswith(rest[1:])  # one is too many
        or there[same + 1 :].startswith(rest[1:])  # one is another
        or there[same:].startswith(rest[1:2] + rest[:1] + rest[2:])  # two changed places
    )


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
