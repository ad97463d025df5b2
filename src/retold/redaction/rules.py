"""Rules that look for a word in a text and for a secret beside it."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from retold.redaction.secrets import Secret

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


FREE = 1_000_000
"""Steps for any text, however short."""
PER_CHARACTER = 16
"""Steps for each character. Files of agents take two at most, and less than one on average."""


class OverBudget(Exception):  # noqa: N818 - it says what happened
    """A text takes more steps than it may: nobody knows whether it holds secrets."""


class Budget:
    """The steps that are left for one text."""

    def __init__(self, length: int, free: int = FREE) -> None:
        self.left = free + PER_CHARACTER * length

    def spend(self, steps: int) -> None:
        """Take the characters that a rule has read from what is left; raises OverBudget."""
        self.left -= steps
        if self.left < 0:
            raise OverBudget


ARGUMENT = r"(?:\\*'([^'\n]{1,200})'|\\*\"([^\"\n]{1,200})\"|([^\s'\"|;&<>]{1,200}))"
"""The argument of a command, in quotes or without."""
JUDGED = 8
"""How many times a value is read until it is judged."""
LONGEST_COMMAND = 400


class Rule(NamedTuple):
    """A word to look for in the text in lower case, a pattern with the secret, and what the secret has to look like."""

    anchor: str
    pattern: re.Pattern[str]
    is_meant: Callable[[str], bool]
    kind: str = "password"
    before: re.Pattern[str] | None = None
    """What has to stand before the word, in the same command in lower case."""


Groups = dict[str, tuple[Rule, ...]]


def grouped(rules: Iterable[Rule]) -> Groups:
    """Return rules by the word they look for."""
    groups: dict[str, list[Rule]] = {}
    for rule in rules:
        groups.setdefault(rule.anchor, []).append(rule)
    return {anchor: tuple(held) for anchor, held in groups.items()}


def matches(groups: Groups, text: str, low: str, seen: Places, budget: Budget) -> Iterator[Secret]:
    """Yield the secrets that rules find; `low` is the text in lower case, `seen` where the words stand."""
    for anchor, held in seen.items():
        rules = groups.get(anchor)
        for place in held if rules else ():
            yield from _at(place, rules or (), text, low, budget)


def _at(place: int, rules: tuple[Rule, ...], text: str, low: str, budget: Budget) -> Iterator[Secret]:
    command: str | None = None
    for rule in rules:
        found = rule.pattern.match(text, place)
        budget.spend(JUDGED * (found.end() - place) if found else len(rule.anchor))
        if found and rule.before:
            if command is None:
                command = _command(low, place)
                budget.spend(len(command))
            if not rule.before.search(command):
                continue
        group = found.lastindex if found else None
        if found and group and rule.is_meant(found[group]):
            yield Secret(*found.span(group), rule.kind)


def _command(low: str, place: int) -> str:
    """Return the part of a command that stands before a place."""
    first = max(0, place - LONGEST_COMMAND)
    return low[max(first, *(low.rfind(sign, first, place) + 1 for sign in "|;&\n")) : place]
