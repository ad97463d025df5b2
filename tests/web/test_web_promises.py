"""What people rely on without asking for it: the index is never stale, pictures are shown, and a look that was chosen stays."""

from pathlib import Path
from urllib.parse import quote

import pytest

from retold.archive.index.reader import open_shared_index
from retold.archive.store import Store
from retold.projects.matching import matches_project
from support.gemini_home import GeminiHome, gemini, user
from support.html_sessions import PIXEL
from support.person import Person
from support.session_list_page import list_rows, session_count
from support.web_server import run_web_server


@pytest.fixture
def home(tmp_path: Path) -> GeminiHome:
    home = GeminiHome(tmp_path / "ann")
    picture = {"inlineData": {"mimeType": "image/png", "data": PIXEL}}
    asked = user("u1", 1, "") | {"content": [{"text": "What bird is this?"}, picture]}
    home.lines("den", 1, 1, [asked, gemini("g1", 2, "A heron.")], kind="main")
    return home


def test_what_was_just_archived_is_found_by_an_index_that_stays_open(home: GeminiHome) -> None:
    person = Person(home.folder)
    person.sync()
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        assert session_count(visit.get("/?q=heron").text) == 1
        home.lines("den", 2, 20, [user("u2", 21, "Another heron"), gemini("g2", 22, "Yes.")], kind="main")
        person.sync()
        assert session_count(visit.get("/?q=heron").text) == 2
        person.sync("--reindex")
        assert session_count(visit.get("/?q=heron").text) == 2


def test_an_index_that_rests_holds_on_to_no_moment(home: GeminiHome) -> None:
    person = Person(home.folder)
    person.sync()
    with Store(str(person.archive)) as record:
        index = open_shared_index(record, matches_project)
        assert all(file.connection.in_transaction for file in index.files)
        record.release_snapshot()
        assert not any(file.connection.in_transaction for file in index.files)
        assert open_shared_index(record, matches_project) is index
        assert all(file.connection.in_transaction for file in index.files)


def test_a_picture_that_came_along_is_shown(home: GeminiHome) -> None:
    person = Person(home.folder)
    person.sync()
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        (key,) = list_rows(visit.get("/").text)
        assert f'src="data:image/png;base64,{PIXEL}"' in visit.get(f"/session?key={quote(key, safe='')}").text


def test_a_look_that_was_chosen_is_there_from_the_first_byte(home: GeminiHome) -> None:
    person = Person(home.folder)
    person.sync()
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        for look, told in (("dark", ' data-look="dark"'), ("light", ' data-look="light"'), ('x"><b', "")):
            text = visit.get("/", {"Cookie": f"{visit.cookie}; retold-look={look}"}).text
            assert f'<html lang="en"{told}>' in text


def test_sessions_of_no_known_project_are_found_by_that(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ann")
    home.lines("den", 1, 1, [user("u1", 1, "A heron")], kind="main", root="/home/ann/dev/almanac")
    codex = home.folder / ".codex" / "history.jsonl"
    codex.parent.mkdir()
    codex.write_text(
        '{"session_id":"01984f6e-21c0-7b3a-9c41-6f5e2d8a7b10","ts":1772355600,"text":"Where was that?"}\n'
    )
    person = Person(home.folder)
    person.sync()
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        shown = visit.get("/?project=unknown").text
        assert session_count(shown) == 1
        assert "Where was that?" in shown
        assert 'data-facet="project=unknown"' in visit.get("/").text
