"""Rules that look for a word in a text and for a secret beside it."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from retold.redaction.budget import Budget
from retold.redaction.finding import Secret
from retold.redaction.words import Places

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
