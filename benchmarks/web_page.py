"""The web pages: first paints against the calls of agentsview's page, long sessions, and many readers."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from agentsview import run_agentsview
from corpora import MEDIUM, Corpus
from measure import Measure, at_most, format_seconds, percentiles
from processes import RETOLD
from queries import common_terms, phrases, rare_terms, three_words
from retold_command import Retold, sync_corpus
from web_client import OK, PageServer, WebClient, request_in_parallel, run_page_server

LIST = (
    "/api/v1/sessions/sidebar-index?timezone=UTC&include_one_shot=true&limit=500",
    "/api/v1/projects?include_one_shot=true",
    "/api/v1/agents?include_one_shot=true",
    "/api/v1/machines?include_one_shot=true",
    "/api/v1/starred",
    "/api/v1/stats?include_one_shot=true",
)
"""The calls that agentsview's page makes before it shows its list, as seen in a browser; without charts and single sessions."""
SEARCH = "/api/v1/search?limit=30&sort=relevance&q="
"""The call for a search."""
THEIR_PORT = 8080
ROUNDS, DRAWN, READERS, CROWD = 7, 20, 8, 50
SMALL, LONG = 20_000, 20_000_000
"""The size of a usual and of a long session in bytes."""
MEMORY = 150
KINDS = {
    "a rare term": rare_terms,
    "a phrase": phrases,
    "three words": three_words,
    "a common term": common_terms,
}


def measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Compare the pages' times with agentsview's and with each other."""
    retold = sync_corpus(corpus)
    kinds = {kind: draw(corpus)[:DRAWN] for kind, draw in KINDS.items()}
    with run_agentsview(corpus) as peer, run_page_server(retold.env) as page:
        peer.sync()
        yield _measure_list(corpus, page.visitor(), WebClient(THEIR_PORT))
        for kind, queries in kinds.items():
            yield _measure_search(kind, queries, page.visitor(), WebClient(THEIR_PORT))
    with run_page_server(retold.env) as page:
        small, long = _session(retold, SMALL), _session(retold, LONG)
        yield _measure_first_page(page.visitor(), small, long)
        yield from _measure_readers(page, retold, ["/", "/?q=error", "/spend", small, long])
        peak = page.peak()
        if peak is not None:
            yield at_most("peak memory of the server, in 150 MB", peak / MEMORY, 1, f"{peak:.0f} MB")


def _measure_list(corpus: Corpus, ours: WebClient, theirs: WebClient) -> Measure:
    first, their_first = ours.best("/", ROUNDS), sum(theirs.best(path, ROUNDS) for path in LIST)
    detail = f"{corpus}: retold {format_seconds(first)}, agentsview {format_seconds(their_first)} in {len(LIST)} calls"
    return at_most("the list's first paint, in agentsview's calls", first / their_first, 1, detail)


def _measure_search(kind: str, queries: Sequence[str], ours: WebClient, theirs: WebClient) -> Measure:
    pairs = [_time_search(ours, theirs, query) for query in queries]
    mine, their = (sum(times) for times in zip(*pairs, strict=True))
    detail = f"{len(pairs)} searches: retold {format_seconds(mine)}, agentsview {format_seconds(their)}"
    return at_most(f"a search's first paint, {kind}, in agentsview's", mine / their, 1, detail)


def _time_search(ours: WebClient, theirs: WebClient, query: str) -> tuple[float, float]:
    return ours.best(f"/?q={quote(query)}", 3), theirs.best(f"{SEARCH}{quote(query)}", 3)


def _session(retold: Retold, size: int) -> str:
    """Return the address of the session whose size is nearest to the given one."""
    listed = [json.loads(line) for line in retold.list("--json").output.splitlines()]
    nearest = min(listed, key=lambda one: abs(sum(file["bytes"] for file in one["sources"]) - size))
    return f"/session?key={quote(nearest['key'], safe='')}"


def _measure_first_page(visitor: WebClient, small: str, long: str) -> Measure:
    """Compare the first pages of a short and a long session, opened for the first time."""
    visitor.best("/", 1)
    at_first = visitor.get(long).seconds
    short, lasting = visitor.best(small, ROUNDS), visitor.best(long, ROUNDS)
    detail = f"20 KB {format_seconds(short)}, 20 MB {format_seconds(lasting)}; opened for the first time {format_seconds(at_first)}"
    return at_most("first page of a 20 MB session, in a 20 KB session's", lasting / short, 5, detail)


def _measure_readers(page: PageServer, retold: Retold, paths: Sequence[str]) -> Iterator[Measure]:
    """Compare the times of eight readers with those of one, and count errors for fifty readers during a sync."""
    alone = percentiles([response.seconds for response in request_in_parallel(page, 1, paths, 4)])
    eight = percentiles([response.seconds for response in request_in_parallel(page, READERS, paths, 2)])
    detail = f"alone {alone}, eight at once {eight}"
    yield at_most("eight readers' p95, in a single one's", eight.p95 / alone.p95, 12, detail)
    with subprocess.Popen([RETOLD, "sync", "--reindex"], env=retold.env, stderr=subprocess.DEVNULL) as sync:
        responses = request_in_parallel(page, CROWD, paths, 1)
        while sync.poll() is None:
            responses += request_in_parallel(page, CROWD, paths, 1)
    failed = [response for response in responses if response.status != OK]
    detail = f"{len(responses):,} answers during a sync, {len(failed)} errors"
    yield at_most("errors of fifty readers during a sync", len(failed), 0, detail)
