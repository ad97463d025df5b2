"""Rules: a word to search for, and a pattern for the secret next to it; and the budget of steps for a text."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from retold.redaction.secrets import Secret

WordPositions = dict[str, list[int]]
"""The positions of each word in a text."""
CompiledWords = tuple[re.Pattern[str] | str, ...]
"""Words to search for: one pattern for words with the same first letter, and the other words as they are."""


def compile_words(words: Iterable[str]) -> CompiledWords:
    """Return words in the form in which a text is searched; of words with a common beginning, the longest is found."""
    groups: dict[str, list[str]] = {}
    for word in sorted(set(words), key=len, reverse=True):
        groups.setdefault(word[0], []).append(word)
    return tuple(
        re.compile(_tree(members)) if len(members) > 1 else members[0] for members in groups.values()
    )


def _tree(words: list[str]) -> str:
    """Return a pattern for words, the longest first, that reads a common beginning once."""
    groups: dict[str, list[str]] = {}
    for word in words:
        groups.setdefault(word[:1], []).append(word[1:])
    return "|".join(
        re.escape(first) + (re.escape(rest[0]) if len(rest) == 1 else f"(?:{_tree(rest)})")
        for first, rest in groups.items()
    )


def word_pattern(words: CompiledWords) -> str:
    """Return one pattern for all words. It is faster in short texts only: it takes longer for each character."""
    return "|".join(re.escape(word) if isinstance(word, str) else word.pattern for word in words)


def find_words(words: CompiledWords, text: str) -> WordPositions:
    """Return the positions of words in a text."""
    found: WordPositions = {}
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


class OverBudget(Exception):  # noqa: N818 - a limit, not an error
    """A text takes more steps than allowed, so it is unknown whether it holds secrets."""


class Budget:
    """The steps that are left for one text."""

    def __init__(self, length: int, free: int = FREE) -> None:
        self.left = free + PER_CHARACTER * length

    def spend(self, steps: int) -> None:
        """Subtract the characters that a rule has read; raise OverBudget if none are left."""
        self.left -= steps
        if self.left < 0:
            raise OverBudget


ARGUMENT = r"(?:\\*'([^'\n]{1,200})'|\\*\"([^\"\n]{1,200})\"|([^\s'\"|;&<>]{1,200}))"
"""The argument of a command, in quotes or without."""
JUDGED = 8
"""How many times a value is read until it is judged."""
LONGEST_COMMAND = 400


class Rule(NamedTuple):
    """A word to search for in the lowercase text, a pattern whose last group is the secret, and a check of its value."""

    anchor: str
    pattern: re.Pattern[str]
    is_secret: Callable[[str], bool]
    kind: str = "password"
    before: re.Pattern[str] | None = None
    """A pattern that must match before the word in the same lowercase command."""


Groups = dict[str, tuple[Rule, ...]]


def group_by_anchor(rules: Iterable[Rule]) -> Groups:
    """Return rules by the word that they search for."""
    groups: dict[str, list[Rule]] = {}
    for rule in rules:
        groups.setdefault(rule.anchor, []).append(rule)
    return {anchor: tuple(members) for anchor, members in groups.items()}


def apply_rules(
    groups: Groups, text: str, low: str, positions: WordPositions, budget: Budget
) -> Iterator[Secret]:
    """Yield the secrets that rules find; `positions` has those of the words in `low`, the lowercase text."""
    for anchor, rules in groups.items():
        for place in positions.get(anchor, ()):
            yield from _apply_at(place, rules, text, low, budget)


def _apply_at(place: int, rules: tuple[Rule, ...], text: str, low: str, budget: Budget) -> Iterator[Secret]:
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
        if found and group and rule.is_secret(found[group]):
            yield Secret(*found.span(group), rule.kind)


def _command(low: str, place: int) -> str:
    """Return the part of a command before a position."""
    first = max(0, place - LONGEST_COMMAND)
    return low[max(first, *(low.rfind(sign, first, place) + 1 for sign in "|;&\n")) : place]
