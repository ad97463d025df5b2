"""A word as others may have written it: in the plural, in the past, as what is done or who does it."""

from __future__ import annotations

_ENDINGS = ("ing", "ly", "ed", "es", "s", "e")
_VOWELS = "aeiou"
_SHORTEST, _STEM = 4, 3
"""Letters of a word that has other forms, and of what is left of it without its ending."""


def forms(word: str) -> list[str]:
    """Return other forms that an English word may have, none of which needs to be one."""
    if len(word) < _SHORTEST or not (word.isascii() and word.isalpha()):
        return []
    found: dict[str, None] = {}
    for stem in _stems(word.lower()):
        found |= dict.fromkeys(_grown(stem))
    found.pop(word.lower(), None)
    return list(found)


def _stems(word: str) -> list[str]:
    """Return what a word may have grown from: `stopped` from `stop`, `retries` from `retry`."""
    if word.endswith(("ies", "ied")) and len(word) > _STEM + 1:
        return [f"{word[:-3]}y"]
    ending = next(
        (one for one in _ENDINGS if word.endswith(one) and not word.endswith(("ss", "us", "is"))), ""
    )
    stem = word.removesuffix(ending)
    if len(stem) < _STEM:
        return [word]
    is_doubled = ending in {"ing", "ed"} and stem[-1] == stem[-2] and stem[-1] not in "lsz"
    return [stem[:-1]] if is_doubled else [stem]


def _grown(stem: str) -> list[str]:
    """Return a stem with the endings that go with it."""
    if stem.endswith("y") and stem[-2:-1] not in _VOWELS:
        return [stem, f"{stem}ing", f"{stem[:-1]}ies", f"{stem[:-1]}ied"]
    grown = [stem + ending for ending in ("", "s", "e", "es", "ed", "ing", "er", "ly")]
    is_short = len(stem) == _STEM + (stem[0] in "ptcsb" and stem[1] in "lrt") and stem[-2] in _VOWELS
    if is_short and stem[-1] not in f"{_VOWELS}wxy" and stem[-3] not in _VOWELS:
        grown += [stem + stem[-1] + ending for ending in ("ed", "ing")]
    return grown
