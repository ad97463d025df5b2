"""The server over stdin and stdout: nothing but answers, whatever is said to it, and an end at once."""

import asyncio
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from retold.mcp.stdio import LONGEST, LineSplitter, OversizedLine
from support.mcp_process import (
    SLOW_PATTERN,
    LineClient,
    answer_text,
    is_running,
    person_with_slow_text,
    result_text,
    stdio_client,
)
from support.one_session import QUESTION, person_with_one_session
from support.person import Person

pytestmark = pytest.mark.slow

SOON, BEFORE_SCAN_ENDS = 15.0, 4.0
"""Seconds within which it ends on a busy machine: less than `SLOW`, and less than the bound of a scan, would let it wait."""
WORD = "herons"
SLOW = """
import sys, time
from retold.mcp.service import QueryService
async def answered(self, tool, arguments):
    sys.stderr.write("called\\n")
    sys.stderr.flush()
    await self.ask(lambda record: time.sleep(30))
QueryService.answer = answered
"""


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Person:
    return person_with_one_session(tmp_path_factory.mktemp("stdio"))


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Person:
    return person_with_slow_text(tmp_path_factory.mktemp("endless") / "ann")


@pytest.fixture
def lines(person: Person) -> Iterator[LineClient]:
    with LineClient(person) as spoken:
        spoken.greet()
        yield spoken


# Clients ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
def test_the_sdks_own_client_is_answered_in_every_era(person: Person, mode: str) -> None:
    async def ask() -> tuple[str, str]:
        async with stdio_client(person.env, mode=mode) as spoken:
            listed = await spoken.list_tools()
            assert "search_history" in [tool.name for tool in listed.tools]
            answer = await spoken.call_tool("search_history", {"query": WORD})
            assert not answer.is_error
            return str(spoken.protocol_version), answer_text(answer)

    version, answer = asyncio.run(ask())
    assert (version == "2026-07-28") == (mode != "legacy")
    assert QUESTION in answer


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_older_clients_are_answered_in_their_version(person: Person, version: str) -> None:
    with LineClient(person) as spoken:
        assert spoken.greet(version)["result"]["protocolVersion"] == version
        assert QUESTION in result_text(spoken.called(1, query=WORD))


def test_a_client_of_an_unknown_version_is_offered_one_that_is_known(person: Person) -> None:
    with LineClient(person) as spoken:
        offered = spoken.greet("1999-01-01")["result"]["protocolVersion"]
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", offered)
        assert QUESTION in result_text(spoken.called(1, query=WORD))


def test_a_hundred_calls_at_once_get_each_their_own_answer(person: Person) -> None:
    async def ask() -> None:
        async with stdio_client(person.env) as spoken:
            asked = [spoken.call_tool("search_history", {"query": f"no{place}such"}) for place in range(50)]
            asked += [
                spoken.call_tool("search_history", {"query": WORD, "cursor": f"x{place}"})
                for place in range(50)
            ]
            answers = await asyncio.gather(*asked)
            assert all(not answer.is_error and "Nothing" in answer_text(answer) for answer in answers[:50])
            told = [answer_text(answer) for answer in answers[50:]]
            assert all(f"'x{place}' is no cursor" in one for place, one in enumerate(told))

    asyncio.run(ask())


# What is no message -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code", "number"),
    [
        (b"garbage", -32700, None),
        (b'{"jsonrpc": "2.0", "id": 1', -32700, None),
        (b"\xff\xfe\x00", -32700, None),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "x": "\xff"}', -32700, None),
        (b"[" * 100_000, -32700, None),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600, None),
        (b"[]", -32600, None),
        (b"null", -32600, None),
        (b'{"jsonrpc": "2.0", "id": 9, "method": 5}', -32600, 9),
        (b'{"jsonrpc": "1.0", "id": 9, "method": "ping"}', -32600, 9),
        (b'{"id": true}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": 9, "method": "no/such"}', -32601, 9),
        (b'{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "none"}}', -32602, 9),
        (b'{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {}}', -32602, 9),
        (b'{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "x", "arguments": [1]}}', -32602, 9),
    ],
)  # fmt: skip
def test_what_is_no_message_is_told_so_and_the_server_goes_on(
    lines: LineClient, line: bytes, code: int, number: int | None
) -> None:
    lines.say(line)
    answer = lines.hear()
    assert (answer["error"]["code"], answer["id"]) == (code, number)
    assert QUESTION in result_text(lines.called(2, query=WORD))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"   ",
        b'{"jsonrpc": "2.0", "method": "notifications/no-such", "params": {"x": 1}}',
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}}',
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled"}',
        b'{"jsonrpc": "2.0", "id": 55, "result": {}}',
        b'{"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "x"}}',
    ],
)
def test_what_needs_no_answer_gets_none(lines: LineClient, line: bytes) -> None:
    lines.say(line)
    assert QUESTION in result_text(lines.called(2, query=WORD))


def test_a_line_of_50_mb_is_not_kept_and_the_server_goes_on(lines: LineClient) -> None:
    before = _memory(lines.process.pid)
    lines.say(b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"a" * 50_000_000 + b'"}')
    assert lines.hear()["error"]["message"] == "this message is longer than any may be"
    assert QUESTION in result_text(lines.called(2, query=WORD))
    assert _memory(lines.process.pid) - before < 30_000


def _memory(number: int) -> int:
    """Return the most kilobytes that a process had; 0 where the system does not tell."""
    try:
        told = Path(f"/proc/{number}/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    return int(next(line.split()[1] for line in told.splitlines() if line.startswith("VmHWM")))


def test_lines_are_the_same_however_they_come() -> None:
    given = b"one\n\ntwo\r\n" + b"x" * 30 + b"\nlast"
    for size in range(1, len(given)):
        cutter = LineSplitter(20)
        pieces = [given[start : start + size] for start in range(0, len(given), size)]
        found = [line for piece in pieces for line in cutter.lines(piece)] + list(cutter.last())
        assert [line if isinstance(line, bytes) else "long" for line in found] == [
            b"one", b"", b"two\r", "long", b"last",
        ]  # fmt: skip
    assert isinstance(next(LineSplitter().lines(b"x" * (LONGEST + 1) + b"\n")), OversizedLine)


# What is no answer ------------------------------------------------------------------------------------------------


def test_what_anybody_prints_is_not_on_the_wire(person: Person) -> None:
    code = """
import os, subprocess, sys, warnings
from retold.mcp.service import QueryService
once = QueryService.answer
async def answered(self, tool, arguments):
    print("a print")
    sys.stdout.write("a write"); sys.stdout.flush()
    os.write(1, b"bytes")
    subprocess.run([sys.executable, "-c", "print('a child', input() if False else '')"])
    assert sys.stdin.read() == ""
    warnings.warn("a warning")
    return await once(self, tool, arguments)
QueryService.answer = answered
"""
    with LineClient(person, code=code) as spoken:
        spoken.greet()
        for number in range(3):
            assert QUESTION in result_text(spoken.called(number, query=WORD))
        spoken.close()
        assert spoken.ended()[0] == 0
        assert spoken.process.stderr is not None
        told = spoken.process.stderr.read().decode()
        assert all(word in told for word in ("a print", "a write", "bytes", "a child", "a warning"))


def test_a_bug_of_ours_is_told_without_content_and_the_server_goes_on(tmp_path: Path) -> None:
    ann = person_with_one_session(tmp_path)
    code = """
import sys
from retold.mcp.service import QueryService
once = QueryService.answer
async def answered(self, tool, arguments):
    if arguments.query == "crash":
        raise ZeroDivisionError("quoted words")
    return await once(self, tool, arguments)
QueryService.answer = answered
"""
    with LineClient(ann, code=code) as spoken:
        spoken.greet()
        for number in range(3):  # within a second, too
            failed = spoken.called(number, query="crash")
            assert failed["isError"]
            assert "a bug of retold's own (ZeroDivisionError)" in result_text(failed)
            assert "quoted words" not in result_text(failed)
            log = Path(result_text(failed).rpartition("log: ")[2])
            assert "quoted words" in log.read_text(encoding="utf-8")
            assert log.stat().st_mode & 0o777 == 0o600
        assert QUESTION in result_text(spoken.called(9, query=WORD))


def test_a_bug_of_ours_outside_the_tools_is_an_error_without_content(person: Person) -> None:
    code = """
from retold.mcp.server import ToolHandlers
async def tools(self, context, params):
    raise ZeroDivisionError("quoted words")
ToolHandlers.list_tools = tools
"""
    with LineClient(person, code=code) as spoken:
        spoken.greet()
        spoken.say({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        error = spoken.hear()["error"]
        assert error["code"] == -32603
        assert "a bug of retold's own (ZeroDivisionError)" in error["message"]
        assert "quoted words" not in str(error)
        assert QUESTION in result_text(spoken.called(9, query=WORD))


# The end ----------------------------------------------------------------------------------------------------------


def _has_ended(spoken: LineClient, code: int, soon: float = SOON) -> None:
    scanner = [int(line.split()[1]) for line in spoken.scanners()]
    found, seconds = spoken.ended()
    assert (found, seconds < soon) == (code, True), seconds
    assert not any(map(is_running, scanner))


def _closed(spoken: LineClient) -> None:
    spoken.close()


def _terminated(spoken: LineClient) -> None:
    spoken.process.send_signal(signal.SIGTERM)


def _interrupted(spoken: LineClient) -> None:
    spoken.process.send_signal(signal.SIGINT)


ENDS = [(_closed, 0), (_terminated, 0), (_interrupted, 130)]


@pytest.mark.parametrize(("end", "code"), ENDS)
def test_it_ends_at_once_when_nothing_is_asked(lines: LineClient, end: type, code: int) -> None:
    end(lines)
    _has_ended(lines, code)


def test_it_ends_before_anything_was_said(person: Person) -> None:
    with LineClient(person) as spoken:
        spoken.close()
        assert spoken.ended()[0] == 0


@pytest.mark.parametrize(("end", "code"), ENDS)
def test_it_ends_at_once_while_calls_run(person: Person, end: type, code: int) -> None:
    with LineClient(person, code=SLOW) as spoken:
        spoken.greet()
        for number in range(10):
            spoken.call(number, query=WORD)
        spoken.wait_for_stderr(b"called\n", 10)
        end(spoken)
        _has_ended(spoken, code)


@pytest.mark.parametrize(("end", "code"), ENDS)
def test_it_ends_at_once_while_a_scan_runs_and_leaves_no_process(
    endless: Person, end: type, code: int
) -> None:
    with LineClient(endless) as spoken:
        spoken.greet()
        spoken.call(1, query=SLOW_PATTERN, mode="regex")
        spoken.wait_for_scanners(1)
        end(spoken)
        _has_ended(spoken, code, BEFORE_SCAN_ENDS)


@pytest.mark.parametrize(("end", "code"), ENDS)
def test_it_ends_at_once_though_nobody_reads_its_answers(lines: LineClient, end: type, code: int) -> None:
    for number in range(100):
        lines.say({"jsonrpc": "2.0", "id": number, "method": "tools/list"})
    lines.wait_for_full_stdout()
    end(lines)
    _has_ended(lines, code)


def test_it_ends_when_whoever_reads_has_gone(lines: LineClient) -> None:
    assert lines.process.stdout is not None
    lines.process.stdout.close()
    lines.call(1, query=WORD)
    time.sleep(0.3)
    lines.close()
    assert lines.ended()[0] == 0


# Scans ------------------------------------------------------------------------------------------------------------


def test_a_pattern_that_never_ends_is_ended_and_said_to_be(endless: Person) -> None:
    with LineClient(endless) as spoken:
        spoken.greet()
        began = time.monotonic()
        answer = spoken.called(1, query=SLOW_PATTERN, mode="regex")
        assert 4.5 < time.monotonic() - began < 20
        assert "The scan was ended before it had seen everything" in result_text(answer)
        assert spoken.scanners() == []
        assert "So say sheep" in result_text(spoken.called(2, query="sheep"))


def test_a_scan_that_is_cancelled_is_gone_and_the_next_call_is_answered(endless: Person) -> None:
    with LineClient(endless) as spoken:
        spoken.greet()
        for number in range(8):
            spoken.call(number, query=SLOW_PATTERN, mode="regex")
        spoken.wait_for_scanners(2)
        for number in range(8):
            about = {"requestId": number, "reason": "no more"}
            spoken.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": about})
        began = time.monotonic()
        assert "sheep" in result_text(spoken.called(20, query="sheep", mode="regex"))
        assert time.monotonic() - began < 4
        spoken.wait_for_scanners(0)


def test_a_call_that_the_sdks_client_gives_up_does_not_disturb_others(endless: Person) -> None:
    async def ask() -> None:
        async with stdio_client(endless.env) as spoken:
            with anyio.move_on_after(0.5):
                await spoken.call_tool("search_history", {"query": SLOW_PATTERN, "mode": "regex"})
            assert "So say sheep" in answer_text(await spoken.call_tool("search_history", {"query": "sheep"}))

    asyncio.run(ask())


def test_questions_that_were_cancelled_leave_the_threads_to_others(person: Person) -> None:
    code = """
import sys
from retold.mcp.service import QueryService
once = QueryService.answer
async def answered(self, tool, arguments):
    if arguments.query == "slow":
        sys.stderr.write("called\\n")
        sys.stderr.flush()
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
        return await self.ask(lambda record: record.row(endless))
    return await once(self, tool, arguments)
QueryService.answer = answered
"""
    with LineClient(person, code=code) as spoken:
        spoken.greet()
        for number in range(10):
            spoken.call(number, query="slow")
        spoken.wait_for_stderr(b"called\n", 10)
        for number in range(10):
            about = {"requestId": number}
            spoken.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": about})
        assert QUESTION in result_text(spoken.called(20, query=WORD))
