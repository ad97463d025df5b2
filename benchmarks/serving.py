"""The local page: a first paint against the calls that the peer's page makes for the same, long sessions, many readers."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from corpora import MEDIUM, Corpus
from measure import Measure, at_most, spread, told
from ours import Retold, synced
from peers import agentsview
from processes import RETOLD
from queries import common_terms, phrases, rare_terms, three_words
from visits import GOOD, Page, Visitor, at_once, served

LIST = (
    "/api/v1/sessions/sidebar-index?timezone=UTC&include_one_shot=true&limit=500",
    "/api/v1/projects?include_one_shot=true",
    "/api/v1/agents?include_one_shot=true",
    "/api/v1/machines?include_one_shot=true",
    "/api/v1/starred",
    "/api/v1/stats?include_one_shot=true",
)
"""What agentsview's page asks for before it shows its list, as a browser was seen to; not its charts, nor each session."""
SEARCH = "/api/v1/search?limit=30&sort=relevance&q="
"""And for what is typed into its search."""
THEIR_PORT = 8080
ROUNDS, DRAWN, READERS, CROWD = 7, 20, 8, 50
SMALL, LONG = 20_000, 20_000_000
"""Bytes of a usual and of a long session."""
MEMORY = 150
KINDS = {
    "a rare term": rare_terms,
    "a phrase": phrases,
    "three words": three_words,
    "a common term": common_terms,
}


def measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Compare the page's answers with the peer's, and with each other."""
    retold = synced(corpus)
    kinds = {kind: draw(corpus)[:DRAWN] for kind, draw in KINDS.items()}
    with agentsview(corpus) as peer, served(retold.env) as page:
        peer.sync()
        yield _list_paint(corpus, page.visitor(), Visitor(THEIR_PORT))
        for kind, queries in kinds.items():
            yield _search_paint(kind, queries, page.visitor(), Visitor(THEIR_PORT))
    with served(retold.env) as page:
        small, long = _session(retold, SMALL), _session(retold, LONG)
        yield _first_page(page.visitor(), small, long)
        yield from _crowds(page, retold, ["/", "/?q=error", "/spend", small, long])
        peak = page.peak()
        if peak is not None:
            yield at_most("peak memory of the server, in 150 MB", peak / MEMORY, 1, f"{peak:.0f} MB")


def _list_paint(corpus: Corpus, ours: Visitor, theirs: Visitor) -> Measure:
    first, their_first = ours.best("/", ROUNDS), sum(theirs.best(path, ROUNDS) for path in LIST)
    detail = f"{corpus}: retold {told(first)}, agentsview {told(their_first)} in {len(LIST)} calls"
    return at_most("the list's first paint, in agentsview's calls", first / their_first, 1, detail)


def _search_paint(kind: str, queries: Sequence[str], ours: Visitor, theirs: Visitor) -> Measure:
    pairs = [_searched(ours, theirs, query) for query in queries]
    mine, their = (sum(times) for times in zip(*pairs, strict=True))
    detail = f"{len(pairs)} searches: retold {told(mine)}, agentsview {told(their)}"
    return at_most(f"a search's first paint, {kind}, in agentsview's", mine / their, 1, detail)


def _searched(ours: Visitor, theirs: Visitor, query: str) -> tuple[float, float]:
    return ours.best(f"/?q={quote(query)}", 3), theirs.best(f"{SEARCH}{quote(query)}", 3)


def _session(retold: Retold, size: int) -> str:
    """Return the page of the session whose files are nearest to a size."""
    listed = [json.loads(line) for line in retold.list("--json").output.splitlines()]
    nearest = min(listed, key=lambda one: abs(sum(file["bytes"] for file in one["sources"]) - size))
    return f"/session?key={quote(nearest['key'], safe='')}"


def _first_page(visitor: Visitor, small: str, long: str) -> Measure:
    """Compare the first pages; each session is opened for the first time, so the first answer counts too."""
    visitor.best("/", 1)
    at_first = visitor.get(long).seconds
    short, lasting = visitor.best(small, ROUNDS), visitor.best(long, ROUNDS)
    detail = f"20 KB {told(short)}, 20 MB {told(lasting)}; opened for the first time {told(at_first)}"
    return at_most("first page of a 20 MB session, in a 20 KB session's", lasting / short, 5, detail)


def _crowds(page: Page, retold: Retold, paths: Sequence[str]) -> Iterator[Measure]:
    """Compare what eight readers wait for with what one does, and count what goes wrong for fifty during a sync."""
    alone = spread([answer.seconds for answer in at_once(page, 1, paths, 4)])
    eight = spread([answer.seconds for answer in at_once(page, READERS, paths, 2)])
    detail = f"alone {alone}, eight at once {eight}"
    yield at_most("eight readers' p95, in a single one's", eight.p95 / alone.p95, 12, detail)
    with subprocess.Popen([RETOLD, "sync", "--reindex"], env=retold.env, stderr=subprocess.DEVNULL) as sync:
        answers = at_once(page, CROWD, paths, 1)
        while sync.poll() is None:
            answers += at_once(page, CROWD, paths, 1)
    failed = [answer for answer in answers if answer.status != GOOD]
    detail = f"{len(answers):,} answers during a sync, {len(failed)} errors"
    yield at_most("errors of fifty readers during a sync", len(failed), 0, detail)
