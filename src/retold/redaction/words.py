"""Where many words stand in a text: `re` looks for words with the same first letter at once, as fast as for one."""

import re
from collections.abc import Iterable

Places = dict[str, list[int]]
"""For each word that a text has, where it stands."""
Wanted = tuple[re.Pattern[str] | str, ...]
"""Words to look for: a pattern for those that begin alike, and the others."""


def wanted(words: Iterable[str]) -> Wanted:
    """Return what to look for; where one word begins like another, the longer one is found."""
    groups: dict[str, list[str]] = {}
    for word in sorted(set(words), key=len, reverse=True):
        groups.setdefault(word[0], []).append(word)
    return tuple(re.compile(_tree(held)) if len(held) > 1 else held[0] for held in groups.values())


def _tree(words: list[str]) -> str:
    """Return a pattern for words, the longest first, that reads what several of them begin with once."""
    groups: dict[str, list[str]] = {}
    for word in words:
        groups.setdefault(word[:1], []).append(word[1:])
    return "|".join(
        re.escape(first) + (re.escape(rest[0]) if len(rest) == 1 else f"(?:{_tree(rest)})")
        for first, rest in groups.items()
    )


def alternatives(words: Wanted) -> str:
    """Return one pattern for words, for short texts: it takes longer for each character, and is tried once."""
    return "|".join(re.escape(word) if isinstance(word, str) else word.pattern for word in words)


def places(words: Wanted, text: str) -> Places:
    """Return where words stand in a text."""
    found: Places = {}
    for word in words:
        if isinstance(word, str):
            place = text.find(word)
            while place >= 0:
                found.setdefault(word, []).append(place)
                place = text.find(word, place + len(word))
        else:
            for match in word.finditer(text):
                found.setdefault(match[0], []).append(match.start())
    return found
