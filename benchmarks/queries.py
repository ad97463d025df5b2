"""Queries of several kinds, drawn from the messages of a corpus with a fixed seed."""

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from corpora import Corpus, read_messages

SEED = 20
MOST = 50
READ = 1000
"""Sessions from which the words are taken."""
RARE = range(2, 21)
"""The number of messages with a rare word."""
WORD = re.compile(r"(?<!\w)[A-Za-z]{4,}(?!\w)")
PHRASE = 3
FOLDED = str.lower


class Vocabulary(NamedTuple):
    """The messages and words that queries are drawn from."""

    messages: Sequence[str]
    counts: Counter[str]
    """The number of messages with each word."""


@cache
def vocabulary(corpus: Corpus) -> Vocabulary:
    """Return the prompts and answers in some sessions of a corpus, which both programs search."""
    files = corpus.files
    rng = random.Random(SEED)  # noqa: S311 - the same queries every time are wanted
    chosen = rng.sample(files, min(READ, len(files)))
    messages = [content for file in chosen for _, content in read_messages(file)]
    counts = Counter(word for message in messages for word in set(map(FOLDED, WORD.findall(message))))
    return Vocabulary(messages, counts)


def rare_terms(corpus: Corpus) -> list[str]:
    """Return words in few messages."""
    counts = vocabulary(corpus).counts
    rare = sorted(word for word, count in counts.items() if count in RARE)
    return _rng("rare").sample(rare, min(MOST, len(rare)))


def phrases(corpus: Corpus) -> list[str]:
    """Return three successive words of a message, in quotes."""

    def phrase(message: str, rng: random.Random) -> str | None:
        words = message.split()
        start = rng.randrange(max(1, len(words) - PHRASE))
        following = words[start : start + PHRASE]
        is_plain = len(following) == PHRASE and all(word.isascii() and word.isalpha() for word in following)
        return f'"{" ".join(following)}"' if is_plain else None

    return _draw(corpus, "phrases", phrase)


def three_words(corpus: Corpus) -> list[str]:
    """Return any three words of a message, rare or not."""

    def three(message: str, rng: random.Random) -> str | None:
        words = sorted(set(map(FOLDED, WORD.findall(message))))
        return " ".join(rng.sample(words, 3)) if len(words) >= PHRASE else None

    return _draw(corpus, "three", three)


def common_terms(corpus: Corpus) -> list[str]:
    """Return the words in most messages."""
    return [word for word, _ in vocabulary(corpus).counts.most_common(MOST)]


def prefixes(corpus: Corpus) -> list[str]:
    """Return the first three letters of words, drawn by frequency."""

    def prefix(message: str, rng: random.Random) -> str | None:
        words = WORD.findall(message)
        return f"{rng.choice(words)[:3].lower()}*" if words else None

    return _draw(corpus, "prefixes", prefix)


def substrings(corpus: Corpus) -> list[str]:
    """Return parts of rare words, parts of common words, and letters that no message contains."""
    rng, counts = _rng("substrings"), vocabulary(corpus).counts
    rare = [word[2:-1] for word in rare_terms(corpus) if len(word) > 9]  # noqa: PLR2004 - long enough to have a middle
    common = [word[1:] for word in common_terms(corpus) if len(word) > 5]  # noqa: PLR2004 - the same
    absent = ["".join(rng.choices("qxzvjkw", k=8)) for _ in range(6)]
    if any(letters in word for letters in absent for word in counts):
        raise ValueError("letters that were to stand nowhere are somewhere")
    return [*rare[:8], *common[:6], *absent]


def _draw(corpus: Corpus, kind: str, draw: Callable[[str, random.Random], str | None]) -> list[str]:
    """Return different queries, each drawn from a message."""
    rng, messages = _rng(kind), vocabulary(corpus).messages
    drawn: dict[str, None] = {}
    for _ in range(MOST * 100):
        query = draw(rng.choice(messages), rng)
        if query is not None:
            drawn[query] = None
        if len(drawn) == MOST:
            break
    return list(drawn)


def _rng(kind: str) -> random.Random:
    return random.Random(f"{SEED} {kind}")  # noqa: S311 - the same queries every time are wanted


KINDS: dict[str, Callable[[Corpus], list[str]]] = {
    "a rare term": rare_terms,
    "a phrase": phrases,
    "three words": three_words,
    "a common term": common_terms,
    "a prefix": prefixes,
}
"""The function that draws the queries of each kind."""
