"""Known-item search: the rank of a conversation in a search for two words of its first prompt.

As a program this module prints every query with its rank.
"""

import random
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from corpora import MEDIUM, Corpus, plain_words, read_messages
from measure import Measure, at_least
from retold_command import sync_corpus

import retold

SEED = 150
QUERIES, LOOKED_AT, TOP = 150, 20, 3
WORD = re.compile(r"[A-Za-z_]{3,}")


class Item(NamedTuple):
    """A query and the session that it should find."""

    query: str
    session: str


class RankedItem(NamedTuple):
    """A query and the rank of its session; 0 if it is not found."""

    item: Item
    rank: int


def items(corpus: Corpus) -> list[Item]:
    """Return the queries: two words of a first prompt that are not in every session."""
    rng = random.Random(SEED)  # noqa: S311 - the same queries every time are wanted
    files = corpus.files
    drawn = (_item(file, rng) for file in rng.sample(files, len(files)))
    return list(islice((item for item in drawn if item), QUERIES))


def _item(file: Path, rng: random.Random) -> Item | None:
    prompt = next((content for who, content in read_messages(file) if who == "user"), "")
    words = sorted(set(WORD.findall(prompt)) - plain_words())
    return Item(" ".join(rng.sample(words, 2)), file.stem) if len(words) > 1 else None


def rank_items(corpus: Corpus, asked: list[Item], limit: int = LOOKED_AT) -> Iterator[RankedItem]:
    """Yield each item with its rank."""
    with retold.open(sync_corpus(corpus).archive) as archive:
        for item in asked:
            keys = [found.key.partition(":")[2] for found in archive.search(item.query, limit=limit)]
            yield RankedItem(item, keys.index(item.session) + 1 if item.session in keys else 0)


def known_measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Measure the ranks of known items and of hidden needles."""
    ranks = [rank for _, rank in rank_items(corpus, items(corpus))]
    score = sum(1 / rank for rank in ranks if rank) / len(ranks)
    first, ten = ranks.count(1), sum(0 < rank <= 10 for rank in ranks)  # noqa: PLR2004 - the top ten
    detail = f"{len(ranks)} queries: {first} first, {ten} among the first ten"
    yield at_least("known-item search, mean reciprocal rank", score, 0.85, detail)
    for kind in ("term", "cjk"):
        asked = [needle for needle in needles(corpus) if needle[0] == kind]
        found = sum(0 < rank <= TOP for _, rank in rank_items(corpus, [item for _, item in asked]))
        detail = f"{found} of {len(asked)}"
        yield at_least(f"needles ({kind}) among the first three", found / len(asked), 1, detail)


def needles(corpus: Corpus) -> list[tuple[str, Item]]:
    """Return the needles hidden in the corpus, with their kinds."""
    return [(needle["kind"], Item(needle["query"], Path(needle["path"]).stem)) for needle in corpus.needles]


def print_ranks(corpus: Corpus = MEDIUM) -> None:
    """Print each query with its rank."""
    for item, rank in rank_items(corpus, items(corpus) + [item for _, item in needles(corpus)]):
        print(f"{rank or '-':>3}  {item.session}  {item.query}")


if __name__ == "__main__":
    print_ranks()
