"""The tools for agents: the first answer against an empty server's, and a search against the same one in process."""

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

from corpora import MEDIUM, Corpus
from measure import Measure, at_most, spread, told
from ours import Retold, synced
from processes import PYTHON, RETOLD
from queries import common_terms, phrases, rare_terms, three_words

from retold.archive.index.reader import kept_index
from retold.archive.store import Store
from retold.projects.matching import is_meant
from retold.search.engine import Search
from retold.search.filters import Filters
from retold.search.pages import short_query

STARTS, ROUNDS, DRAWN = 15, 2, 20
SHOWN = 20
"""Conversations that the command shows, and about as many as an agent is told of."""
FIRST, SEARCH = 1.5, 2.0
EMPTY = """
from mcp.server import MCPServer
server = MCPServer("empty")
@server.tool()
def echo(query: str) -> str:
    return query
server.run()
"""
OURS = (RETOLD, "mcp", "--scope", "all")
THEIRS = (PYTHON, "-c", EMPTY)
DRAWS = (rare_terms, phrases, three_words, common_terms)


class Speaker:
    """A client that takes next to no time itself."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process, self._number = process, 0
        about = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        self._asked("initialize", about)
        self._say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, query: str) -> dict[str, Any]:
        """Return a tool's answer."""
        return self._asked("tools/call", {"name": tool, "arguments": {"query": query}})

    def _asked(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._number += 1
        self._say({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self._process.stdout is not None  # noqa: S101 - for mypy: it is a pipe
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())["result"]
        if answer.get("isError"):
            raise RuntimeError(answer)
        return answer

    def _say(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None  # noqa: S101 - for mypy: it is a pipe
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()


@contextmanager
def spoken(command: Sequence[str], env: Mapping[str, str]) -> Iterator[Speaker]:
    """Start a server over pipes; it ends when they are closed."""
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=nowhere) as process:
        yield Speaker(process)


def measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Compare our server with an empty one, and with what it asks."""
    retold = synced(corpus)
    yield first_answer(retold, rare_terms(corpus)[0])
    yield searches(retold, [query for draw in DRAWS for query in draw(corpus)[:DRAWN]])


def first_answer(retold: Retold, query: str, starts: int = STARTS) -> Measure:
    """Compare the time from the start of a process to the first answer of a tool, by turns."""
    pairs = [
        (_first(OURS, "search_history", query, retold), _first(THEIRS, "echo", query, retold))
        for _ in range(starts)
    ]
    ours, theirs = (median(times) for times in zip(*pairs, strict=True))
    detail = f"median of {starts}: retold {told(ours)}, empty {told(theirs)}"
    return at_most("first answer of a tool, in an empty server's", ours / theirs, FIRST, detail)


def _first(command: Sequence[str], tool: str, query: str, retold: Retold) -> float:
    began = time.perf_counter()
    with spoken(command, retold.env) as speaker:
        speaker.call(tool, query)
        return time.perf_counter() - began


def searches(retold: Retold, queries: Sequence[str], rounds: int = ROUNDS) -> Measure:
    """Compare calls over pipes with the same searches in this process, by turns, each query at its best."""
    ours: list[float] = []
    here: list[float] = []
    with spoken(OURS, retold.env) as speaker, Store(str(retold.archive)) as record:
        for query in queries:
            times = [(_called(speaker, query), _searched(record, query)) for _ in range(rounds)]
            for best, found in zip((ours, here), zip(*times, strict=True), strict=True):
                best.append(min(found))
    there, alone = spread(ours), spread(here)
    detail = f"{len(queries)} queries: over pipes {there}, in process {alone}"
    return at_most("a search's p95 over pipes, in process", there.p95 / alone.p95, SEARCH, detail)


def _called(speaker: Speaker, query: str) -> float:
    began = time.perf_counter()
    speaker.call("search_history", query)
    return time.perf_counter() - began


def _searched(record: Store, query: str) -> float:
    began = time.perf_counter()
    asked = short_query(query)
    search = Search(record, asked, Filters(asked.fields), kept_index(record, is_meant))
    list(search.conversations(SHOWN))
    record.rest()
    return time.perf_counter() - began
