"""Texts for people have local times, data and answers for agents have UTC."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from textual.pilot import Pilot

import retold
from retold.export.formats.registry import ExportOptions
from retold.export.html.page import encode_index
from retold.tui.data import ArchiveQueries
from support.gemini_home import GeminiHome, gemini, user
from support.local_clock import local_clock
from support.mcp_client import connect
from support.person import Person
from support.terminal_browser import drive, press, screen_text

pytestmark = pytest.mark.skipif(not hasattr(time, "tzset"), reason="this system takes no zone from TZ")

ZONE = ZoneInfo("America/Los_Angeles")
NOW = datetime(2026, 3, 2, 3, 0, tzinfo=UTC)
"""19:00 on 1 March in Los Angeles."""
PROMPT, ANSWER = "2026-03-02T01:30:00.000Z", "2026-03-02T01:31:00.000Z"


@pytest.fixture
def ann(tmp_path: Path) -> Iterator[Person]:
    home = GeminiHome(tmp_path / "ann")
    home.mark("den", "/home/ann/den")
    messages = [
        {**user("u1", 1, "Feed the otter"), "timestamp": PROMPT},
        {**gemini("g1", 1, "It is fed."), "timestamp": ANSWER},
    ]
    home.lines("den", 1, 1, messages, kind="main", startTime=PROMPT, lastUpdated=ANSWER)
    person = Person(home.folder)
    with local_clock(str(ZONE), NOW):
        person.sync()
        yield person


def test_a_brief_tells_local_days(ann: Person) -> None:
    page = ann.run("brief", "den").out
    assert "1 session on 2026-03-01 (" in page
    assert "- 2026-03-01 Feed the otter" in page


def test_an_export_to_read_has_local_times_and_names_the_zone(ann: Person, tmp_path: Path) -> None:
    (key,) = ann.rows()
    markdown = ann.run("export", key, "--format", "md").out
    assert "- **Time:** 2026-03-01 17:30 to 17:31 PST\n" in markdown
    assert "## You · 2026-03-01 17:30\n" in markdown
    assert '"at":"2026-03-02T01:30:00+00:00"' in markdown.replace(" ", "")
    page = ann.run("export", key, "--format", "html").out
    assert "2026-03-01 17:30 to 17:31 PST" in page
    assert '<time datetime="2026-03-02T01:30:00+00:00">17:30</time>' in page
    assert "Times are PST/PDT." in page
    folder = tmp_path / "out"
    assert ann.run("export", "--all", "--format", "html", "--output", f"{folder}/").code == 0
    (name,) = [path.name for path in folder.rglob("*otter*")]
    assert name.startswith("2026-03-01-feed-the-otter")
    with retold.open(ann.archive) as archive:
        index = b"".join(encode_index([("a.html", next(archive.sessions()))], ExportOptions())).decode()
    assert "<td>2026-03-01 17:31</td>" in index
    assert "Times are PST/PDT." in index


def test_an_export_for_programs_has_utc(ann: Person) -> None:
    (key,) = ann.rows()
    for form in ("json", "jsonl", "atif"):
        told = ann.run("export", key, "--format", form).out
        assert PROMPT in told
        assert "17:30" not in told


def test_the_outline_of_the_terminal_browser_tells_local_times(ann: Person) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, "enter", "u")
        assert "17:30 Feed the otter" in screen_text(pilot)

    drive(ArchiveQueries(str(ann.archive)), play)


def test_the_doctor_tells_local_days(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ben")
    at = "2026-02-05T01:30:00.000Z"  # Gemini CLI deletes it 30 days later
    home.lines("den", 1, 1, [{**user("u1", 1, "Hello"), "timestamp": at}], startTime=at, lastUpdated=at)
    person = Person(home.folder)
    with local_clock(str(ZONE), NOW):
        person.sync()
        (finding,) = [one for one in person.run("doctor", "--json").objects if one["finding"] == "deletion"]
        assert finding["when"] == "2026-03-07T01:30:00.000Z"
        assert "goes on 2026-03-06;" in finding["text"]


def test_agents_get_utc_and_ask_for_local_days(ann: Person) -> None:
    with connect(ann.folder, "/home/ann/den") as client:
        for tool in ("recent_work", "project_brief"):
            assert "no such conversations" in client.ask(tool, until="yesterday").text
            assert "Feed the otter" in client.ask(tool, since="today").text
        assert "2026-03-02 01:31 UTC" in client.ask("recent_work").text
        assert "- 2026-03-02 Feed the otter" in client.ask("project_brief").text
        (key,) = ann.rows()
        told = client.ask("read_session", session=key).text
        assert "2026-03-02 01:30 UTC" in told
        assert "17:30" not in told


def test_a_session_without_anything_on_a_day_is_listed_and_not_counted(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ben")
    times = [NOW - timedelta(days=2), NOW]
    texts = [at.strftime("%Y-%m-%dT%H:%M:%S.000Z") for at in times]
    messages = [
        {**gemini(f"g{number}", 1, "Hi."), "timestamp": text} for number, text in enumerate(texts, start=1)
    ]
    prompt = {**user("u1", 1, "Hello"), "timestamp": texts[0]}
    home.lines("den", 1, 1, [prompt, *messages], kind="main", startTime=texts[0], lastUpdated=texts[1])
    person = Person(home.folder)
    with local_clock(str(ZONE), NOW):
        person.sync()
        yesterday = ("--since", "yesterday", "--until", "yesterday")
        assert len(person.run("list", "--json", *yesterday).objects) == 1
        assert person.run("stats", "--json", *yesterday).out == ""
        days = {line["of"]: line["requests"] for line in person.run("stats", "--json").objects}
        assert days == {"2026-02-27": 1, "2026-03-01": 1}


def test_stats_in_utc_has_another_today(ann: Person) -> None:
    assert [line["of"] for line in ann.run("stats", "--json", "--since", "today").objects] == ["2026-03-01"]
    assert ann.run("stats", "--json", "--utc", "--until", "yesterday").out == ""
    utc = ann.run("stats", "--json", "--utc", "--since", "today").objects
    assert [(line["of"], line["zone"]) for line in utc] == [("2026-03-02", "UTC")]
