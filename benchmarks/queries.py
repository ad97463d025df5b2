"""Queries of several kinds, drawn from what a corpus says: the same ones every time."""

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from corpora import Corpus, said

SEED = 20
MANY, SOME = 200, 40
READ = 1000
"""Sessions that are looked at: enough to know the words."""
RARE = range(2, 21)
"""Messages among them that have a rare word."""
WORD = re.compile(r"(?<!\w)[A-Za-z]{4,}(?!\w)")
PHRASE = 3
FOLDED = str.lower


class Text(NamedTuple):
    """What the drawing is from."""

    messages: Sequence[str]
    counts: Counter[str]
    """In how many messages a word is."""


@cache
def text(corpus: Corpus) -> Text:
    """Return what was said in some sessions of a corpus: prompts and answers, which is what both tools search."""
    files = corpus.files
    dice = random.Random(SEED)  # noqa: S311 - the same queries every time are wanted
    chosen = dice.sample(files, min(READ, len(files)))
    messages = [content for file in chosen for _, content in said(file)]
    counts = Counter(word for message in messages for word in set(map(FOLDED, WORD.findall(message))))
    return Text(messages, counts)


def rare_terms(corpus: Corpus) -> list[str]:
    """Return words that few messages have."""
    counts = text(corpus).counts
    rare = sorted(word for word, count in counts.items() if count in RARE)
    return _dice("rare").sample(rare, min(MANY, len(rare)))


def phrases(corpus: Corpus) -> list[str]:
    """Return words that follow each other in a message, in quotes."""

    def phrase(message: str, dice: random.Random) -> str | None:
        words = message.split()
        start = dice.randrange(max(1, len(words) - PHRASE))
        following = words[start : start + PHRASE]
        is_plain = len(following) == PHRASE and all(word.isascii() and word.isalpha() for word in following)
        return f'"{" ".join(following)}"' if is_plain else None

    return _drawn(corpus, "phrases", MANY, phrase)


def three_words(corpus: Corpus) -> list[str]:
    """Return any three words of a message, rare or not."""

    def three(message: str, dice: random.Random) -> str | None:
        words = sorted(set(map(FOLDED, WORD.findall(message))))
        return " ".join(dice.sample(words, 3)) if len(words) >= PHRASE else None

    return _drawn(corpus, "three", MANY, three)


def common_terms(corpus: Corpus) -> list[str]:
    """Return the words that most messages have."""
    return [word for word, _ in text(corpus).counts.most_common(SOME)]


def prefixes(corpus: Corpus) -> list[str]:
    """Return the first three letters of words, the more likely the more often these are said."""

    def prefix(message: str, dice: random.Random) -> str | None:
        words = WORD.findall(message)
        return f"{dice.choice(words)[:3].lower()}*" if words else None

    return _drawn(corpus, "prefixes", SOME, prefix)


def substrings(corpus: Corpus) -> list[str]:
    """Return parts of rare words, parts of common ones, and letters that stand nowhere."""
    dice, counts = _dice("substrings"), text(corpus).counts
    rare = [word[2:-1] for word in rare_terms(corpus) if len(word) > 9]  # noqa: PLR2004 - long enough to have a middle
    common = [word[1:] for word in common_terms(corpus) if len(word) > 5]  # noqa: PLR2004 - the same
    absent = ["".join(dice.choices("qxzvjkw", k=8)) for _ in range(6)]
    if any(letters in word for letters in absent for word in counts):
        raise ValueError("letters that were to stand nowhere are somewhere")
    return [*rare[:8], *common[:6], *absent]


def _drawn(
    corpus: Corpus, kind: str, number: int, draw: Callable[[str, random.Random], str | None]
) -> list[str]:
    """Return so many different queries, each drawn from a message."""
    dice, messages = _dice(kind), text(corpus).messages
    drawn: dict[str, None] = {}
    for _ in range(number * 100):
        query = draw(dice.choice(messages), dice)
        if query is not None:
            drawn[query] = None
        if len(drawn) == number:
            break
    return list(drawn)


def _dice(kind: str) -> random.Random:
    return random.Random(f"{SEED} {kind}")  # noqa: S311 - the same queries every time are wanted
