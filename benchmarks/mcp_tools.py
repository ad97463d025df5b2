"""The MCP server: its first answer against an empty server's, and a search against the same search in this process."""

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

from corpora import MEDIUM, Corpus
from measure import Measure, at_most, format_seconds, percentiles
from processes import PYTHON, RETOLD
from queries import common_terms, phrases, rare_terms, three_words
from retold_command import Retold, sync_corpus

from retold.archive.index.reader import open_shared_index
from retold.archive.store import Store
from retold.projects.matching import matches_project
from retold.search.engine import Search
from retold.search.filters import Filters
from retold.search.pages import parse_limited

STARTS, ROUNDS, DRAWN = 15, 2, 20
SHOWN = 20
"""Conversations in a result, about as many as the tool returns."""
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


class McpClient:
    """A minimal MCP client."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process, self._number = process, 0
        about = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        self._request("initialize", about)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, query: str) -> dict[str, Any]:
        """Return the result of a tool call."""
        return self._request("tools/call", {"name": tool, "arguments": {"query": query}})

    def _request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self._process.stdout is not None  # noqa: S101 - for mypy: it is a pipe
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())["result"]
        if answer.get("isError"):
            raise RuntimeError(answer)
        return answer

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None  # noqa: S101 - for mypy: it is a pipe
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()


@contextmanager
def run_server(command: Sequence[str], env: Mapping[str, str]) -> Iterator[McpClient]:
    """Run a server over pipes, and yield a client."""
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=nowhere) as process:
        yield McpClient(process)


def measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Compare our server with an empty one, and with searches in this process."""
    retold = sync_corpus(corpus)
    yield measure_first_answer(retold, rare_terms(corpus)[0])
    yield measure_searches(retold, [query for draw in DRAWS for query in draw(corpus)[:DRAWN]])


def measure_first_answer(retold: Retold, query: str, starts: int = STARTS) -> Measure:
    """Compare the times from the start of a process to the first result of a tool, in turns."""
    pairs = [
        (
            _time_first_answer(OURS, "search_history", query, retold),
            _time_first_answer(THEIRS, "echo", query, retold),
        )
        for _ in range(starts)
    ]
    ours, theirs = (median(times) for times in zip(*pairs, strict=True))
    detail = f"median of {starts}: retold {format_seconds(ours)}, empty {format_seconds(theirs)}"
    return at_most("first answer of a tool, in an empty server's", ours / theirs, FIRST, detail)


def _time_first_answer(command: Sequence[str], tool: str, query: str, retold: Retold) -> float:
    began = time.perf_counter()
    with run_server(command, retold.env) as client:
        client.call(tool, query)
        return time.perf_counter() - began


def measure_searches(retold: Retold, queries: Sequence[str], rounds: int = ROUNDS) -> Measure:
    """Compare calls over pipes with the same searches in this process, in turns, with the best time of each query."""
    ours: list[float] = []
    here: list[float] = []
    with run_server(OURS, retold.env) as client, Store(str(retold.archive)) as record:
        for query in queries:
            times = [(_time_call(client, query), _time_search(record, query)) for _ in range(rounds)]
            for best, found in zip((ours, here), zip(*times, strict=True), strict=True):
                best.append(min(found))
    there, alone = percentiles(ours), percentiles(here)
    detail = f"{len(queries)} queries: over pipes {there}, in process {alone}"
    return at_most("a search's p95 over pipes, in process", there.p95 / alone.p95, SEARCH, detail)


def _time_call(client: McpClient, query: str) -> float:
    began = time.perf_counter()
    client.call("search_history", query)
    return time.perf_counter() - began


def _time_search(record: Store, query: str) -> float:
    began = time.perf_counter()
    asked = parse_limited(query)
    search = Search(record, asked, Filters(asked.fields), open_shared_index(record, matches_project))
    list(search.find(SHOWN))
    record.release_snapshot()
    return time.perf_counter() - began
