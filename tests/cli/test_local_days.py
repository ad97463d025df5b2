"""Every command and page agrees on what happened today, yesterday and in the last seven days.

The expected days come from `zoneinfo`; retold asks the C library and SQLite.
"""

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import pytest

import retold
from retold.export.text.amounts import format_count
from retold.export.text.formatting import format_short_number
from retold.search.listing import FolderScope
from retold.tui import data
from retold.tui.list_rows import session_facts as card_facts
from support.gemini_home import GeminiHome, Json, gemini, user
from support.local_clock import local_clock
from support.person import Person
from support.report_pages import summary_cards
from support.session_list_page import facets, list_rows, session_count
from support.web_server import Visit, run_web_server

pytestmark = pytest.mark.skipif(not hasattr(time, "tzset"), reason="this system takes no zone from TZ")

ZONES = ("America/Los_Angeles", "Asia/Kathmandu", "UTC")
MIDNIGHTS = ("2026-03-20T23:50", "2026-03-21T00:10")
CHANGES = ("2026-03-08T23:50", "2026-03-09T00:10", "2026-11-01T23:50", "2026-11-02T00:10")
"""Around the ends of the days of 23 and of 25 hours in Los Angeles."""
CASES = [
    *((zone, at) for zone in ZONES for at in MIDNIGHTS),
    *((ZONES[0], at) for at in CHANGES),
]
WORDS: dict[str, dict[str, Any]] = {
    "today": {"since": "today"},
    "yesterday": {"since": "yesterday", "until": "yesterday"},
    "7d": {"since": "7d"},
}
CHIPS = {"today": "Today", "yesterday": "Yesterday", "7d": "7 days"}
TOKENS = 115
"""Of an answer of `gemini`."""


class Turn(NamedTuple):
    """A prompt and, a minute later, its answer; both on one day."""

    at: datetime

    @property
    def messages(self) -> list[Json]:
        name = f"{self.at:%m%d%H%M}{self.at.fold}"
        return [
            {**user(f"u{name}", 1, f"otter {name}"), "timestamp": _text(self.at)},
            {**gemini(f"g{name}", 1, "Done."), "timestamp": _text(self.answered_at)},
        ]

    @property
    def answered_at(self) -> datetime:
        return self.at.astimezone(UTC) + timedelta(minutes=1)


Talk = Sequence[Turn]
"""The turns of one session."""


class Week(NamedTuple):
    """Sessions around a midnight, the archive of them, and the time that it is."""

    person: Person
    talks: dict[str, Talk]
    """By the key of the session."""
    now: datetime
    visit: Visit

    def days(self, word: str) -> set[date]:
        """Return the days that a word means."""
        today = self.now.date()
        ago = {"today": (0,), "yesterday": (1,), "7d": range(7)}[word]
        return {today - timedelta(days=number) for number in ago}

    def turns(self, word: str) -> list[Turn]:
        """Return the turns of these days."""
        days = self.days(word)
        return [turn for talk in self.talks.values() for turn in talk if turn.at.date() in days]

    def keys(self, word: str) -> set[str]:
        """Return the sessions that have a turn on these days."""
        turns = self.turns(word)
        return {key for key, talk in self.talks.items() if any(turn in turns for turn in talk)}


def zone_name(at: datetime) -> str:
    """Return what the time zone is called at a time."""
    name = at.tzname() or ""
    return f"UTC{name[:3]}:{name[3:]}" if name.startswith("+") else name


def _text(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _talks(now: datetime) -> Iterator[Talk]:
    """Yield sessions just after and just before each midnight, and one across the last of them."""
    midnight = now.replace(hour=0, minute=0)
    times = [
        midnight - timedelta(days=days) + timedelta(hours=hours, minutes=minutes)
        for days in range(10)
        for hours, minutes in ((0, 5), (1, 30), (23, 45))
    ]
    for at in times:
        again = [at.replace(fold=1)] if at.utcoffset() != at.replace(fold=1).utcoffset() else []
        yield from ([Turn(one)] for one in (at, *again) if one < now)
    yield Turn(midnight - timedelta(minutes=3)), Turn(midnight + timedelta(minutes=2))


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def week(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Week]:
    zone, at = request.param
    now = datetime.fromisoformat(at).replace(tzinfo=ZoneInfo(zone))
    home = GeminiHome(tmp_path_factory.mktemp("week") / "ann")
    talks = {}
    for number, talk in enumerate(_talks(now), start=1):
        messages = [message for turn in talk for message in turn.messages]
        begin, end = _text(talk[0].at), _text(talk[-1].answered_at)
        file = home.lines("den", number, number, messages, kind="main", startTime=begin, lastUpdated=end)
        talks[f"gemini:{file.stem}"] = talk
    person = Person(home.folder)
    with local_clock(zone, now):
        person.sync()
        assert set(person.rows()) == set(talks)
        with run_web_server(str(person.archive)) as visit:
            visit.enter()
            yield Week(person, talks, now, visit)


def options(word: str) -> list[str]:
    return [f"--{name}={value}" for name, value in WORDS[word].items()]


def fields(word: str) -> str:
    return " ".join(f"{name}:{value}" for name, value in WORDS[word].items())


@pytest.mark.parametrize("word", WORDS)
def test_list_and_search_find_the_sessions_of_these_days(week: Week, word: str) -> None:
    keys = week.keys(word)
    person = week.person
    assert {row["key"] for row in person.run("list", "--json", *options(word)).objects} == keys
    assert set(person.keys("otter", "-n", "99", *options(word))) == keys
    assert set(person.keys(f"otter {fields(word)}", "-n", "99")) == keys
    assert set(person.keys("otter", "--substring", "-n", "99", *options(word))) == keys
    with retold.open(person.archive) as archive:
        assert {session.key for session in archive.sessions(**WORDS[word])} == keys


@pytest.mark.parametrize("word", WORDS)
def test_tables_show_the_local_day_on_which_a_session_ended(week: Week, word: str) -> None:
    ends = {key: week.talks[key][-1].at.date() for key in week.keys(word)}
    _, *rows = week.person.run("list", *options(word)).out.splitlines()
    assert Counter(row[:10] for row in rows) == Counter(map(str, ends.values()))
    found = week.person.run("search", "otter", "-n", "99", *options(word)).out
    told = re.findall(r"^(\d{4}-\d\d-\d\d)  \S+  (gemini:\S+)$", found, re.MULTILINE)
    assert {key: day for day, key in told} == {key: str(day) for key, day in ends.items()}
    (project,) = week.person.run("projects").out.splitlines()
    assert str(max(talk[-1].at for talk in week.talks.values()).date()) in project


@pytest.mark.parametrize("word", WORDS)
def test_stats_counts_the_requests_of_these_days(week: Week, word: str) -> None:
    turns = week.turns(word)
    (line,) = week.person.run("stats", "--json", "--by", "agent", *options(word)).objects
    assert (line["sessions"], line["requests"], line["prompts"], line["usage"]["total"]) == (
        len(week.keys(word)),
        len(turns),
        len(turns),
        len(turns) * TOKENS,
    )
    days = {
        line["of"]: line["requests"] for line in week.person.run("stats", "--json", *options(word)).objects
    }
    assert days == Counter(str(turn.at.date()) for turn in turns)


@pytest.mark.parametrize("word", WORDS)
def test_the_terminal_browser_shows_the_sessions_of_these_days(week: Week, word: str) -> None:
    folder, everywhere = str(week.person.archive), FolderScope("all")
    archive = data.ArchiveQueries(folder, tuple(WORDS[word].items()))
    keys, turns = week.keys(word), week.turns(word)
    cards = [named.card for named in data.load_titles(archive, everywhere)]
    assert {card.key for card in cards} == keys
    for card in cards:
        at = week.talks[card.key][0].at
        facts = "\n".join(text for line in card_facts(card, {}, week.now) for _, text in line)
        assert f"{at:%Y-%m-%d %H:%M} {zone_name(at)}, " in facts
    typed = f"otter {fields(word)}"
    assert {one.key for one in data.search_text(data.ArchiveQueries(folder), everywhere, typed)} == keys
    text = "\n".join(
        "".join(piece for _, piece in line) for line in data.stats_lines(archive, everywhere, "", 100)
    )
    assert f"{len(turns)} request" in text
    assert f"{len(keys)} session" in text


@pytest.mark.parametrize("word", WORDS)
def test_the_page_shows_the_sessions_of_these_days(week: Week, word: str) -> None:
    keys, turns = week.keys(word), week.turns(word)
    for query in ({}, {"q": "otter"}):
        text = week.visit.get(f"/?{urlencode({**query, **WORDS[word], 'many': 100})}").text
        assert session_count(text) == len(keys)
        assert set(list_rows(text)) == keys
    assert ("when", CHIPS[word], len(keys)) in [facet[1:] for facet in facets(week.visit.get("/").text)]
    days = week.days(word)
    chosen = {"period": word} if word == "7d" else {"since": min(days), "until": max(days)}
    cards = summary_cards(week.visit.get(f"/spend?{urlencode(chosen)}").text)
    assert (cards["Sessions"], cards["Requests"], cards["Prompts"], cards["Tokens"]) == (
        format_count(len(keys)),
        format_count(len(turns)),
        format_count(len(turns)),
        format_short_number(len(turns) * TOKENS),
    )


def test_a_transcript_and_its_events_tell_the_local_time(week: Week) -> None:
    for key in week.keys("today") | week.keys("yesterday"):
        talk = week.talks[key]
        times = [f"{turn.at:%Y-%m-%d %H:%M:%S}" for turn in talk]
        head = week.person.run("show", key).out
        name = zone_name(talk[0].at)
        assert f"{key} · {times[0][:16]} {name} ·" in head
        # The day stands only where it is not the first.
        said = [at if at[:10] != times[0][:10] else at[11:] for at in times]
        assert re.findall(r"^── you · (.*)$", head, re.MULTILINE) == said
        events = week.person.run("events", key).out
        assert re.findall(r"^ *\d+  (\S+ \S+)  user_prompt", events, re.MULTILINE) == times
        # The page is seen on the machine whose time it tells, and names no zone.
        page = week.visit.get(f"/session?{urlencode({'key': key})}").text
        end = f"{talk[-1].answered_at.astimezone(week.now.tzinfo):%Y-%m-%d %H:%M}"
        assert f"{times[0][:16]} to {end if end[:10] != times[0][:10] else end[11:]}<" in page


def test_json_has_utc(week: Week) -> None:
    for key in week.keys("today"):
        talk = week.talks[key]
        (row,) = week.person.run("show", "--json", key).objects
        assert (row["started_at"], row["ended_at"]) == (_text(talk[0].at), _text(talk[-1].answered_at))
        at = [
            event["at"]
            for event in week.person.run("events", "--json", key).objects
            if event["event"] == "user_prompt"
        ]
        assert at == [_text(turn.at) for turn in talk]
