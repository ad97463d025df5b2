"""A word as others may have written it: in the plural, in the past, as what is done, or shorter.

Nothing here is a grammar. A form that is no word is in no text and costs one look; one that is another word weighs less
than the word itself.
"""

from __future__ import annotations

from functools import cache

_ENDINGS = ("ions", "ion", "ing", "ly", "ed", "es", "s", "e")
_VOWELS = "aeiou"
_SHORTEST, _STEM = 4, 3
"""Letters of a word that has endings, and of what is left of it without them."""
_WITH_ION = "st"
"""Letters behind which `ion` makes what is done: `compression`, `migration`."""
_KIN = """
break broke broken, write wrote written, run ran, lose lost, find found, build built, send sent, begin began begun, make made,
take took taken, give gave given, choose chose chosen, freeze froze frozen, throw threw thrown, fall fell fallen, grow grew grown,
hold held, lead led, leave left, pay paid, speak spoke spoken, spend spent, stick stuck, sell sold, keep kept, wake woke woken,
draw drew drawn, drive drove driven, forget forgot forgotten, hang hung, hide hid hidden, shrink shrank shrunk, think thought,
steal stole stolen, tear tore torn, bring brought, catch caught, teach taught, buy bought, sleep slept, mean meant, bind bound,
db database databases, config configuration configure, repo repository repositories, docs documentation, env environment,
auth authentication authenticate, prod production, deps dependency dependencies, k8s kubernetes, postgres postgresql,
dir directory directories, cmd command commands, msg message messages, param parameter parameters, args arguments,
perf performance, regex regexp, img image images, pkg package packages, lib library libraries, func function functions,
var variable variables, app application, admin administrator, info information, spec specification, sync synchronize
"""


def forms(word: str) -> list[str]:
    """Return other forms that an English word may have, none of which needs to be one."""
    small = word.lower()
    found = dict.fromkeys(_kin().get(small, ()))
    if len(word) >= _SHORTEST and word.isascii() and word.isalpha():
        found |= dict.fromkeys(_grown(_stem(small)))
    found.pop(small, None)
    return list(found)


@cache
def _kin() -> dict[str, list[str]]:
    """Return the words that no rule leads to, by each of those they belong to."""
    groups = [group.split() for group in _KIN.split(",")]
    return {word: group for group in groups for word in group}


def _stem(word: str) -> str:
    """Return what a word may have grown from: `stopped` from `stop`, `retries` from `retry`."""
    if word.endswith(("ies", "ied")) and len(word) > _STEM + 1:
        return f"{word[:-3]}y"
    if word.endswith(("ss", "us", "is")):
        return word
    ending = next((one for one in _ENDINGS if word.endswith(one)), "")
    stem = word.removesuffix(ending)
    if ending.startswith("ion") and stem[-1:] not in _WITH_ION:
        stem = word.removesuffix("s")
    if len(stem) < _STEM:
        return word
    is_doubled = ending in {"ing", "ed"} and stem[-1] == stem[-2] and stem[-1] not in "lsz"
    return stem[:-1] if is_doubled else stem


def _grown(stem: str) -> list[str]:
    """Return a stem with the endings that go with it."""
    if stem.endswith("y") and stem[-2:-1] not in _VOWELS:
        return [stem, f"{stem}ing", f"{stem[:-1]}ies", f"{stem[:-1]}ied"]
    grown = [stem + ending for ending in ("", "s", "e", "es", "ed", "ing", "er", "ly")]
    if stem[-1] in _WITH_ION:
        grown += [f"{stem}ion", f"{stem}ions"]
    if stem[-1] not in f"{_VOWELS}wxy" and stem[-2] in _VOWELS and stem[-3:-2] not in _VOWELS:
        grown += [stem + stem[-1] + ending for ending in ("ed", "ing")]
    return grown
