"""Known-item search: two words of how a conversation began, and at which place it is found.

Run by itself it prints every query with the place.
"""

import random
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from corpora import MEDIUM, Corpus, plain_words, said
from measure import Measure, at_least
from ours import synced

import retold

SEED = 150
QUERIES, LOOKED_AT, TOP = 150, 20, 3
WORD = re.compile(r"[A-Za-z_]{3,}")


class Item(NamedTuple):
    """A query, and the session that is meant."""

    query: str
    session: str


class Ranked(NamedTuple):
    """A query, and the place at which what is meant is found: 0 if it is not."""

    item: Item
    place: int


def items(corpus: Corpus) -> list[Item]:
    """Return the queries: two words of a first prompt that are not among those that are everywhere."""
    dice = random.Random(SEED)  # noqa: S311 - the same queries every time are wanted
    files = corpus.files
    drawn = (_item(file, dice) for file in dice.sample(files, len(files)))
    return list(islice((item for item in drawn if item), QUERIES))


def _item(file: Path, dice: random.Random) -> Item | None:
    prompt = next((content for who, content in said(file) if who == "user"), "")
    words = sorted(set(WORD.findall(prompt)) - plain_words())
    return Item(" ".join(dice.sample(words, 2)), file.stem) if len(words) > 1 else None


def ranked(corpus: Corpus, asked: list[Item], limit: int = LOOKED_AT) -> Iterator[Ranked]:
    """Yield at which place each is found."""
    with retold.open(synced(corpus).archive) as archive:
        for item in asked:
            keys = [found.key.partition(":")[2] for found in archive.search(item.query, limit=limit)]
            yield Ranked(item, keys.index(item.session) + 1 if item.session in keys else 0)


def known_measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Measure how well what is meant is found."""
    places = [place for _, place in ranked(corpus, items(corpus))]
    score = sum(1 / place for place in places if place) / len(places)
    first, ten = places.count(1), sum(0 < place <= 10 for place in places)  # noqa: PLR2004 - the top ten
    detail = f"{len(places)} queries: {first} first, {ten} among the first ten"
    yield at_least("known-item search, mean reciprocal rank", score, 0.85, detail)
    for kind in ("term", "cjk"):
        asked = [needle for needle in needles(corpus) if needle[0] == kind]
        found = sum(0 < place <= TOP for _, place in ranked(corpus, [item for _, item in asked]))
        detail = f"{found} of {len(asked)}"
        yield at_least(f"needles ({kind}) among the first three", found / len(asked), 1, detail)


def needles(corpus: Corpus) -> list[tuple[str, Item]]:
    """Return what was hidden in the corpus, with its kind."""
    return [(needle["kind"], Item(needle["query"], Path(needle["path"]).stem)) for needle in corpus.needles]


def print_places(corpus: Corpus = MEDIUM) -> None:
    """Print each query with the place at which what is meant is found."""
    for item, place in ranked(corpus, items(corpus) + [item for _, item in needles(corpus)]):
        print(f"{place or '-':>3}  {item.session}  {item.query}")


if __name__ == "__main__":
    print_places()
