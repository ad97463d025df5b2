"""Commands as new processes, against the least that such a process can do, and the MCP server against an empty one."""

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from corpora import CACHE, MEDIUM, Corpus
from measure import Cost, Measure, Work, at_most, describe, ratios, summarize, take_turns
from processes import PYTHON, RETOLD, children_cpu, environment, run
from queries import rare_terms
from retold_command import Retold, sync_corpus

TURNS = 20
FLOOR = """
import sys, apsw
archive = apsw.Connection(sys.argv[1], flags=apsw.SQLITE_OPEN_READONLY)
archive.execute("SELECT key FROM sessions LIMIT 1").fetchall()
"""
"""Python, apsw, an archive opened, and one query."""
EMPTY = """
from mcp.server import MCPServer
server = MCPServer("empty")
@server.tool()
def echo(query: str) -> str:
    return query
server.run()
"""


def measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Compare commands with one query in a new Python."""
    ours = sync_corpus(corpus)
    needles = [needle["query"] for needle in corpus.needles if needle["kind"] == "term"]
    floor = (PYTHON, "-c", FLOOR, ours.archive / "archive.db")
    works: dict[str, list[Work]] = {
        "floor": [lambda: run(floor, environment(CACHE)).cost] * TURNS,
        "search for a rare word": [partial(_search, ours, query) for query in rare_terms(corpus)[:TURNS]],
        "search for three words": [partial(_search, ours, query) for query in needles[:TURNS]],
        "stats": [lambda: ours.run("stats").cost] * TURNS,
        "list": [lambda: ours.run("list").cost] * TURNS,
        "sql": [lambda: ours.run("sql", "SELECT count(*) FROM sessions").cost] * TURNS,
    }
    runs = take_turns(**works)
    base = summarize(runs["floor"])
    for name, bound, goal in (
        ("search for a rare word", 2.5, 2),
        ("search for three words", 3.5, None),
        ("stats", 2.5, None),
        ("list", 2.5, None),
        ("sql", 2.5, None),
    ):
        costs = summarize(runs[name])
        what = f"{name}, in Python + apsw + open + one query"
        yield at_most(what, ratios(costs, base), bound, describe(retold=costs, floor=base), goal)
    query = rare_terms(corpus)[0]
    servers = take_turns(
        retold=[partial(_first_answer, (RETOLD, "mcp", "--scope", "all"), "search_history", query, ours.env)],
        empty=[partial(_first_answer, (PYTHON, "-c", EMPTY), "echo", query, ours.env)],
    )
    costs, empty = summarize(servers["retold"]), summarize(servers["empty"])
    what = "MCP, first answer of a tool, in an empty server's"
    yield at_most(what, ratios(costs, empty), 1.5, describe(retold=costs, empty=empty))


def _search(ours: Retold, query: str) -> Cost:
    return ours.search(query).cost


def _first_answer(command: Sequence[str], tool: str, query: str, env: Mapping[str, str]) -> Cost:
    """Return the cost from the start of a server to the first result of a tool."""
    wall, cpu = time.perf_counter(), children_cpu()
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    client = {"name": "bench", "version": "1"}
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    with subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=nowhere) as server:
        _request(server, 1, "initialize", about)
        _send(server, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        _request(server, 2, "tools/call", {"name": tool, "arguments": {"query": query}})
        seconds = time.perf_counter() - wall
    return Cost(seconds, children_cpu() - cpu)


def _request(server: subprocess.Popen[bytes], number: int, method: str, params: Mapping[str, Any]) -> None:
    _send(server, {"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    assert server.stdout is not None  # noqa: S101 - for mypy: it is a pipe
    answer = json.loads(server.stdout.readline())["result"]
    if answer.get("isError"):
        raise RuntimeError(answer)


def _send(server: subprocess.Popen[bytes], message: Mapping[str, Any]) -> None:
    assert server.stdin is not None  # noqa: S101 - for mypy: it is a pipe
    server.stdin.write(json.dumps(message).encode() + b"\n")
    server.stdin.flush()
