"""Search: whole processes and pages against agentsview with a warm daemon, and the ranks of known items."""

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import quote

from agentsview import Agentsview, run_agentsview
from corpora import MEDIUM, Corpus, plain_words, read_messages
from measure import Cost, Measure, Work, at_least, at_most, describe, p95, ratios, summarize, take_turns
from page_client import PageClient, run_page_server
from queries import KINDS, substrings
from retold_command import FOUND, Retold, sync_corpus

import retold

ASKED, PAGES = 30, 20
"""Queries of each kind, as processes and as pages."""
THEIR_PORT = 8080
THEIR_PAGE = "/api/v1/search?limit=30&sort=relevance&q="
"""The call that agentsview's page makes for a search."""
SMALL, LONG = 20_000, 20_000_000
"""The size of a usual and of a long session in bytes."""
MEMORY = 150
SEED = 150
ITEMS, LOOKED_AT, TOP = 150, 20, 3
WORD = re.compile(r"[A-Za-z_]{3,}")


def search_measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Compare searches of every kind with the peer's."""
    ours = sync_corpus(corpus)
    with run_agentsview(corpus) as peer:
        peer.sync()
        for kind, draw in KINDS.items():
            yield _compare(ours, peer, kind, draw(corpus)[:ASKED])
        yield _compare(ours, peer, "a substring", substrings(corpus), is_substring=True)


def _compare(
    ours: Retold, peer: Agentsview, kind: str, queries: Sequence[str], *, is_substring: bool = False
) -> Measure:
    found = Counter[str]()

    def ask(query: str) -> Cost:
        result = ours.search(query, is_substring=is_substring)
        found["retold"] += result.code == FOUND
        return result.cost

    def ask_peer(query: str) -> Cost:
        result = peer.search(query, is_substring=is_substring)
        found["agentsview"] += bool(json.loads(result.output)["matches"])
        return result.cost

    works: dict[str, list[Work]] = {
        "retold": [partial(ask, query) for query in queries],
        "agentsview": [partial(ask_peer, query) for query in queries],
    }
    runs = take_turns(**works)
    slowest, usual = summarize(runs["retold"], p95), summarize(runs["agentsview"], median)
    costs = describe(p50=summarize(runs["retold"]), p95=slowest, agentsview=usual)
    same = "" if len(set(found.values())) == 1 else f", found {dict(found)} in all runs"
    what = f"search for {kind}, p95 in agentsview's p50"
    return at_most(what, ratios(slowest, usual), 1, f"{len(queries)} queries: {costs}{same}")


def page_measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Compare the pages' times with agentsview's and with each other."""
    ours = sync_corpus(corpus)
    with run_agentsview(corpus) as peer, run_page_server(ours.env) as client:
        peer.sync()
        theirs = PageClient(peer.daemons()[0], THEIR_PORT)
        for kind, draw in KINDS.items():
            queries = [quote(query) for query in draw(corpus)[:PAGES]]
            runs = take_turns(
                retold=[partial(client.get, f"/?q={query}") for query in queries],
                agentsview=[partial(theirs.get, f"{THEIR_PAGE}{query}") for query in queries],
            )
            costs = {name: summarize(of_name, sum) for name, of_name in runs.items()}
            what = f"page of a search for {kind}, in agentsview's"
            detail = f"{len(queries)} pages: {describe(**costs)}"
            yield at_most(what, ratios(costs["retold"], costs["agentsview"]), 1, detail)
        sizes = {"short": SMALL, "long": LONG}
        pages = {name: [partial(client.get, _session(ours, size))] * 5 for name, size in sizes.items()}
        times = {name: summarize(runs) for name, runs in take_turns(**pages).items()}
        what = "first page of a 20 MB session, in a 20 KB session's"
        yield at_most(what, ratios(times["long"], times["short"]), 5, describe(**times))
        peak = client.peak()
        if peak is not None:
            yield at_most(f"peak memory of the server, in {MEMORY} MB", [peak / MEMORY], 1, f"{peak:.0f} MB")


def _session(ours: Retold, size: int) -> str:
    """Return the address of the session whose size is nearest to the given one."""
    listed = [json.loads(line) for line in ours.run("list", "--json").output.splitlines()]
    nearest = min(listed, key=lambda one: abs(sum(file["bytes"] for file in one["sources"]) - size))
    return f"/session?key={quote(nearest['key'], safe='')}"


class Item(NamedTuple):
    """A query and the session that it should find."""

    query: str
    session: str


def known_measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Measure the ranks of sessions in searches for two words of their first prompt, and of hidden needles."""
    ranks = list(_rank_items(corpus, _items(corpus)))
    score = sum(1 / rank for rank in ranks if rank) / len(ranks)
    first, ten = ranks.count(1), sum(0 < rank <= 10 for rank in ranks)  # noqa: PLR2004 - the top ten
    detail = f"{len(ranks)} queries: {first} first, {ten} among the first ten"
    yield at_least("known-item search, mean reciprocal rank", [score], 0.85, detail)
    hidden = [Item(needle["query"], Path(needle["path"]).stem) for needle in corpus.needles]
    found = sum(0 < rank <= TOP for rank in _rank_items(corpus, hidden))
    yield at_least(
        "needles among the first three",
        [found / len(hidden)],
        1,
        f"{found} of {len(hidden)}, some in Chinese",
    )


def _items(corpus: Corpus) -> list[Item]:
    """Return the queries: two words of a first prompt that are not in every session."""
    rng = random.Random(SEED)  # noqa: S311 - the same queries every time are wanted
    files = corpus.files
    drawn = (_item(file, rng) for file in rng.sample(files, len(files)))
    return list(islice((item for item in drawn if item), ITEMS))


def _item(file: Path, rng: random.Random) -> Item | None:
    prompt = next((content for role, content in read_messages(file) if role == "user"), "")
    words = sorted(set(WORD.findall(prompt)) - plain_words())
    return Item(" ".join(rng.sample(words, 2)), file.stem) if len(words) > 1 else None


def _rank_items(corpus: Corpus, items: Sequence[Item]) -> Iterator[int]:
    """Yield the rank of each item; 0 if it is not found."""
    with retold.open(sync_corpus(corpus).archive) as archive:
        for item in items:
            keys = [match.key.partition(":")[2] for match in archive.search(item.query, limit=LOOKED_AT)]
            yield keys.index(item.session) + 1 if item.session in keys else 0
