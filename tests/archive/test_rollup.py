"""Sums that reports are made of: equal to the ledger and to what was said, after every sync."""

import json
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from retold.archive.schema import STEPS
from retold.archive.store import Store
from retold.demo.home import make_home
from retold.model import FIGURES
from support.gemini_home import GeminiHome, call, gemini, user
from support.person import Json, Person, renames_undone

QUARTER = 900 * 10**6
AWAY = 300 * 10**6


def rows(person: Person, asked: str) -> list[tuple[Any, ...]]:
    with Store(str(person.archive)) as record:
        return list(record.rows(asked))


def plus(one: int | None, other: int | None) -> int | None:
    return one if other is None else (one or 0) + other


def micros(text: str | None) -> int | None:
    if text is None:
        return None
    at = datetime.fromisoformat(text)
    return int(at.timestamp()) * 10**6 + at.microsecond


def summed_ledger(person: Person) -> dict[tuple[Any, ...], list[int | None]]:
    """Add the ledger up, request by request."""
    figures = ", ".join(f"requests.{figure}" for figure in FIGURES)
    asked = f"SELECT key, started_at, at, model, requests.estimated, {figures}, picos FROM requests JOIN sessions ON id = session WHERE own"  # noqa: S608 - ours
    found: dict[tuple[Any, ...], list[int | None]] = {}
    for key, started, at, model, estimated, *counted, picos in rows(person, asked):
        when = micros(started) if at is None else at
        quarter = None if when is None else when // QUARTER
        line = found.setdefault((key, quarter, model, estimated), [0, 0, *[None] * len(FIGURES), None])
        told = [1, int(picos is None), *counted, picos]
        line[:] = [plus(one, other) for one, other in zip(line, told, strict=True)]
    return found


def rolled_ledger(person: Person) -> dict[tuple[Any, ...], list[int | None]]:
    figures = ", ".join(f"request_sums.{figure}" for figure in FIGURES)
    asked = f"SELECT key, quarter, model, request_sums.estimated, requests, unpriced, {figures}, micros, request_sums.picos FROM request_sums JOIN sessions ON id = session"  # noqa: S608 - ours
    return {
        tuple(which): [*counted, None if whole is None else whole * 10**6 + rest]
        for *which, requests, unpriced, a, b, c, d, e, f, g, h, whole, rest in rows(person, asked)
        for counted in [[requests, unpriced, a, b, c, d, e, f, g, h]]
    }


def own(session: Json) -> list[Json]:
    return [entry for entry in session["timeline"] if entry.get("own", True)]


def calls_of(session: Json) -> list[tuple[Json, Json]]:
    return [
        (entry, part)
        for entry in own(session)
        for part in entry.get("parts", ())
        if part["type"] == "tool_call"
    ]


def worked(session: Json) -> tuple[int, int, int]:
    """Count prompts, milliseconds at work and compactions of a session, from what is shown of it."""
    entries = own(session)
    times = [micros(entry["at"]) for entry in entries] + [micros(one["at"]) for _, one in calls_of(session)]
    gaps = [later - sooner for sooner, later in pairwise(sorted(time for time in times if time is not None))]
    prompts = sum(entry.get("prompt") is not None for entry in entries)
    compactions = sum(entry.get("kind") == "compaction" for entry in entries)
    return prompts, sum(gap for gap in gaps if gap <= AWAY) // 1000, compactions


def assert_equal(person: Person) -> None:
    assert rolled_ledger(person) == summed_ledger(person)
    sessions = person.sessions()
    tools: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for key, tool, calls, errors in rows(
        person, "SELECT key, tool, calls, errors FROM tool_sums JOIN sessions ON id = session"
    ):
        tools[key][tool, "calls"] += calls
        tools[key][tool, "errors"] += errors
    work = {
        key: counted
        for key, *counted in rows(
            person,
            "SELECT key, sum(prompts), sum(active_ms), sum(compactions) FROM activity_sums JOIN sessions ON id = session GROUP BY key",
        )
    }
    assert rows(
        person, "SELECT session, sum(calls), sum(errors), sum(retries) FROM tool_sums GROUP BY 1"
    ) == rows(
        person,
        "SELECT session, sum(calls), sum(errors), sum(retries) FROM activity_sums GROUP BY 1 HAVING sum(calls) > 0",
    )
    assert sessions
    for key, session in sessions.items():
        expected: Counter[tuple[str, str]] = Counter()
        for _, part in calls_of(session):
            expected[part["name"], "calls"] += 1
            expected[part["name"], "errors"] += part["status"] == "error"
        assert +tools[key] == +expected, key
        prompts, active_ms, compactions = work.get(key, [0, 0, 0])
        assert (prompts, compactions) == (worked(session)[0], worked(session)[2]), key
        assert abs(active_ms - worked(session)[1]) <= len(session["timeline"]), key  # each quarter is rounded


@pytest.mark.shared
def test_on_the_made_home_sums_are_the_ledger(tmp_path: Path, shared: Path) -> None:
    home = tmp_path / "ann"
    subprocess.run(
        [sys.executable, str(shared / "truth" / "make_home.py"), str(home)], check=True, capture_output=True
    )
    person = Person(home, tmp_path / "archive")
    person.sync()
    assert_equal(person)


def test_on_weeks_of_made_up_work_sums_are_the_ledger(tmp_path: Path) -> None:
    make_home(tmp_path / "demo", datetime(2026, 3, 1, tzinfo=UTC))
    person = Person(tmp_path / "demo" / "home", tmp_path / "archive")
    person.sync()
    assert len(summed_ledger(person)) > 50
    assert_equal(person)


def test_what_another_session_holds_moves_with_its_owner(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ann")
    shared = [user("a-long-id-of-a-prompt-1", 1, "Hello"), gemini("a-long-id-of-an-answer", 2, "Hi.")]
    later = home.lines("den", 2, 20, [*shared, gemini("another-long-answer-id", 25, "Later.")], kind="main")
    person = Person(home.folder)
    person.sync()
    assert_equal(person)
    earlier = home.lines("den", 1, 1, shared, kind="main")
    person.sync()
    assert_equal(person)
    person.run("forget", "-y", next(key for key in person.rows() if "00000001" in key))
    assert_equal(person)
    assert later.exists()
    assert earlier.exists()


def test_a_retry_is_a_call_of_a_tool_that_had_failed(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ann")

    def told(number: int, tool: str, status: str) -> Json:
        return {**call(tool, {}, 2), "id": f"{tool}-{number}", "status": status}

    calls = [
        told(1, "shell", "error"),
        told(2, "grep", "success"),
        told(3, "shell", "error"),
        told(4, "shell", "success"),
    ]
    calls += [told(5, "shell", "success"), told(6, "grep", "error")]
    home.lines("den", 1, 1, [user("u1", 1, "Hello"), gemini("g1", 2, "Hi.", calls)], kind="main")
    person = Person(home.folder)
    person.sync()
    asked = "SELECT tool, sum(calls), sum(errors), sum(retries) FROM tool_sums GROUP BY tool ORDER BY tool"
    assert rows(person, asked) == [("grep", 2, 1, 0), ("shell", 4, 2, 2)]


def test_a_pause_is_no_work(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ann")
    minutes = (1, 2, 7, 13, 14)  # a minute, five, six, a minute
    home.lines("den", 1, 1, [user(f"u{minute}", minute, "Hello") for minute in minutes], kind="main")
    person = Person(home.folder)
    person.sync()
    assert rows(person, "SELECT sum(active_ms), sum(prompts) FROM activity_sums") == [
        ((1 + 5 + 1) * 60_000, 5)
    ]


@pytest.mark.parametrize("tokens", [10**30, 2**63 - 1, 2**62, 10**13])
def test_figures_that_nobody_believes_stop_nothing(tmp_path: Path, tokens: int) -> None:
    home = GeminiHome(tmp_path / "ann")
    counted = {"input": tokens, "output": tokens, "cached": 0, "thoughts": 0, "tool": 0, "total": tokens}
    answers = [{**gemini(f"g{number}", 2, "Hi."), "tokens": counted} for number in range(20)]
    home.lines("den", 1, 1, [user("u1", 1, "Hello"), *answers], kind="main")
    person = Person(home.folder)
    person.sync()
    assert rows(person, "SELECT requests, unpriced, input FROM request_sums") == [(20, 20, 20 * 10**12)]


def test_without_times_work_counts_when_the_session_began(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ann")
    timeless = {name: value for name, value in gemini("g1", 2, "Hi.").items() if name != "timestamp"}
    home.lines("den", 1, 31, [timeless], kind="main")
    person = Person(home.folder)
    person.sync()
    began = micros("2026-03-01T09:31:00Z")
    assert began is not None
    assert rows(person, "SELECT quarter, requests FROM request_sums") == [(began // QUARTER, 1)]


def test_an_archive_of_an_earlier_version_gets_its_sums_by_a_sync(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ann")
    home.lines("den", 1, 1, [user("u1", 1, "Hello"), gemini("g1", 2, "Hi.")], kind="main")
    person = Person(home.folder)
    person.sync()
    with Store(str(person.archive), can_write=True) as record:
        for asked in renames_undone(STEPS[-2]):
            record.connection.execute(asked)
        for table in ("spent", "used", "worked", "rates", "hidden", "bookmarks"):
            record.connection.execute(f"DROP TABLE {table}")
        record.connection.execute("ALTER TABLE requests DROP COLUMN picos")
        record.connection.execute("ALTER TABLE tool_calls DROP COLUMN took_ms")
        record.connection.execute("ALTER TABLE files DROP COLUMN changes")
        record.connection.execute("ALTER TABLE sources DROP COLUMN identity")
        record.connection.execute("ALTER TABLE sessions DROP COLUMN is_spoken")
        record.connection.execute("DELETE FROM facts WHERE name LIKE 'priced%'")
        record.connection.execute("UPDATE answers SET answer = 0 WHERE asked = 'revision'")
        record.connection.execute("UPDATE sources SET revision = 0")
        record.connection.execute("PRAGMA user_version = 1")
    person.sync()
    assert_equal(person)
    assert [json.dumps(row["cost_usd"]) for row in person.rows().values()] == ['"0.000275"']
