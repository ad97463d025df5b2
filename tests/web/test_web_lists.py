"""Lists of sessions of all sorts: long ones, empty ones, of other days, of enemies, of everything that there is."""

import re
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from retold.demo.home import make_home
from retold.web.pages.sessions import FOUND
from support.conversation_files import Turn, claude, claude_key
from support.gemini_home import GeminiHome, session_id, user
from support.person import Person
from support.session_list_page import facets, list_rows, session_count
from support.synced_archive import sync_archive
from support.web_server import run_web_server


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = make_home(tmp_path_factory.mktemp("made") / "demo", datetime.now(UTC))
    return sync_archive(made.variables["RETOLD_HOME"], made.variables).folder


@pytest.mark.parametrize(
    "address", ["/", "/?agent=claude", "/?q=test", "/?q=file&agent=codex", "/?q=order&mode=letters"]
)
def test_each_facet_counts_what_choosing_it_shows_whatever_the_agent(demo: str, address: str) -> None:
    with run_web_server(demo) as visit:
        visit.enter()
        for href, name, value, number in facets(visit.get(address).text):
            if name not in parse_qs(urlsplit(address).query):
                assert session_count(visit.get(href).text) == number, (name, value)


def test_fifty_at_a_time_and_each_once(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ann")
    for number in range(1, 61):
        home.lines(
            "den", number, number % 50, [user(f"u{number}", number % 50, f"otter {number}")], kind="main"
        )
    person = Person(home.folder)
    person.sync()
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        first = visit.get("/").text
        (more,) = re.findall(r'class="more"><a class="button" href="([^"]*)"', first)
        second = visit.get(unescape(more)).text
        assert (len(list_rows(first)), len(list_rows(second))) == (50, 10)
        assert list(list_rows(first) | list_rows(second)) == [
            row["key"] for row in person.run("list", "--json").objects
        ]
        assert 'class="more"' not in second
        piece = visit.get(f"{unescape(more)}&piece=rows").text
        assert list(list_rows(piece)) == list(list_rows(second))
        assert "<html" not in piece
        assert len(list_rows(visit.get("/?many=60").text)) == 60
        found = visit.get("/?q=otter").text
        assert session_count(found) == 60
        assert len(list_rows(found)) == FOUND


def test_a_search_that_did_not_read_all_outputs_says_how_to_read_them(tmp_path: Path) -> None:
    person, note = Person(tmp_path / "ann"), "`retold search --limit 1000` in a terminal reads them."
    for number in range(1, 71):
        output = "the otter and the heron" if number != 5 else "an otter heron"
        claude(person.folder, number, [Turn("q", output, "done")])
    person.sync()
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        assert note in unescape(visit.get("/?q=%22otter+heron%22").text)
        assert note not in unescape(visit.get("/?q=%22an+otter%22").text)
        assert note not in unescape(visit.get("/?q=otter").text)
    assert person.keys('"otter heron"', "--limit", "1000") == [claude_key(5)]


@pytest.fixture(params=["UTC", "Pacific/Kiritimati", "America/Los_Angeles"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("zone")
def test_yesterday_is_one_click_in_the_days_of_this_machine(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ann")
    midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    for number, hours in enumerate((-25, -23, -1, 0), start=1):
        moment = (midnight + timedelta(hours=hours)).isoformat()
        said = {**user(f"u{number}", 1, f"at {hours}"), "timestamp": moment}
        home.lines("den", number, number, [said], kind="main", startTime=moment, lastUpdated=moment)
    person = Person(home.folder)
    person.sync()
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        (href,) = re.findall(r'<a href="([^"]*)" data-facet="when=Yesterday">', visit.get("/").text)
        shown = list_rows(visit.get(unescape(href)).text)
        assert [row.partition(" gemini")[0] for row in shown.values()] == ["at -1", "at -23"]
        text = visit.get(unescape(href)).text
        assert 'data-facet="when=Yesterday" aria-current="true"' in text
        assert re.findall(r'data-chip="\w+"><bdi>([^<]*)', text) == ["Yesterday"]


def test_an_empty_archive_says_what_to_do(tmp_path: Path) -> None:
    person = Person(tmp_path / "ann")
    person.sync()
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        text = visit.get("/").text
        assert "<code>retold sync</code>" in text
        assert "<code>retold demo</code>" in text
        assert '<ol class="rows"' not in text


def test_nothing_of_a_transcript_or_an_address_is_taken_for_markup(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ann")
    evil = "<img src=x onerror=hit()>\"'&{{7*7}}"
    home.mark("den", f"/home/ann/{evil.replace('/', '')}")
    home.lines("den", 1, 1, [user("u1", 1, f"{evil} weasel \ud800 half")], kind="main")
    person = Person(home.folder)
    person.sync()
    person.run("tag", session_id(1), f"+{evil}")
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        pages = ["/", "/?q=weasel", f"/?q={quote(evil)}", f"/?project={quote(evil)}", f"/?tag={quote(evil)}"]
        pages += [
            "/?q=weasel&mode=letters",
            f"/?since={quote(evil)}",
            "/palette?q=weasel",
            f"/palette?q={quote(evil)}",
        ]
        for page in pages:
            answered = visit.get(page)
            assert answered.status == 200, page
            assert "<img" not in answered.text, page
            assert "{{7*7}}" in answered.text or "palette" in page, page
            assert len(list_rows(answered.text)) == ("/?q=weasel" in page) or "/?q=weasel" not in page, page
        assert visit.get("/?q=%00&mode=letters").status == 200
        assert "These are more than 24 words: write fewer." in visit.get("/?q=" + "a+" * 199).text
        assert visit.get("/palette?q=" + "a+" * 199).status == 200


def test_many_values_of_a_facet_are_folded(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ann")
    for number in range(1, 11):
        root = f"/home/ann/dev/nest{number}"
        home.mark(f"nest{number}", root)
        home.lines(f"nest{number}", number, number, [user("u1", 1, "eggs")], root=root, kind="main")
    person = Person(home.folder)
    person.sync()
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        text = visit.get("/").text
        assert "<summary>2 more</summary>" in text
        assert len([name for _, name, _, _ in facets(text) if name == "project"]) == 10


def test_without_its_index_the_list_is_there_and_says_how_to_search_again(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ann")
    home.lines("den", 1, 1, [user("u1", 1, "a badger")], kind="main")
    person = Person(home.folder)
    person.sync()
    shutil.rmtree(person.archive / "index")
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        assert len(list_rows(visit.get("/").text)) == 1
        for mode in ("", "&mode=letters", "&mode=regex"):
            assert "`retold sync --reindex` rebuilds it" in visit.get(f"/?q=badger{mode}").text
        assert visit.get("/palette?q=badger").status == 200
