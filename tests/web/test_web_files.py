"""Files on the page: who changed them, and how; nothing on the disk is ever looked at."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retold.archive.queries.related import WHOLE_PATH
from retold.archive.store import Store
from retold.export.html.tool_calls import MOST
from retold.projects.matching import absolute_path
from support.gemini_home import GeminiHome, call, gemini, user
from support.person import Person
from support.report_pages import archive_demo, page_links, table_rows, visible_text
from support.web_server import Visit, run_web_server

ROOT = "/home/ann/dev/almanac"
HOSTILE = "<img src=x onerror=hit()>"


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Person:
    return archive_demo(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def visit(person: Person) -> Iterator[Visit]:
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        yield visit


def edit(path: str, old: str, new: str, minute: int = 2) -> dict[str, object]:
    return call("replace", {"file_path": path, "old_string": old, "new_string": new}, minute)


@pytest.fixture
def almanac(tmp_path: Path) -> Iterator[Visit]:
    """One file, called by three names in two sessions."""
    home = GeminiHome(tmp_path / "ann")
    home.mark("almanac", ROOT)
    calls = [edit(f"{ROOT}/moon.py", "waxing", "waning"), edit("moon.py", "half", "full")]
    home.lines(
        "almanac", 1, 1, [user("u1", 1, "Fix the moon."), gemini("g1", 2, "Done.", calls)], kind="main"
    )
    others = [edit("./moon.py", HOSTILE, "new moon"), edit("/elsewhere/moon.py", "a", "b")]
    home.lines(
        "almanac", 2, 11, [user("u2", 11, "Once more."), gemini("g2", 12, "Done.", others)], kind="main"
    )
    person = Person(home.folder)
    person.sync()
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        yield visit


def test_one_file_is_one_however_it_is_called(almanac: Visit) -> None:
    found = [row[:4] for row in table_rows(almanac.get("/files").text)]
    assert found == [["almanac/moon.py", "", "3", "2"], ["/elsewhere/moon.py", "", "1", "1"]]


def test_the_sessions_that_changed_a_file_come_newest_first(almanac: Visit) -> None:
    page = almanac.get(f"/files?path={quote(f'{ROOT}/moon.py')}").text
    folds = page.split("<details")[1:]
    assert [visible_text(f"<{fold}".partition("</summary>")[0]) for fold in folds] == [
        "Once more. gemini 1 change 2026-03-01",
        "Fix the moon. gemini 2 changes 2026-03-01",
    ]


def test_what_a_session_changed_is_shown_when_it_is_asked_for(almanac: Visit) -> None:
    page = almanac.get(f"/files?path={quote(f'{ROOT}/moon.py')}").text
    newest, oldest = [link for link in page_links(page) if link.startswith("/files/changes")]
    told = almanac.get(oldest).text
    assert [word in told for word in ("-waxing", "+waning", "-half", "+full", "new moon")] == [True] * 4 + [
        False
    ]
    assert any(link.endswith("at=1#e1") for link in page_links(told)), "the place of the call"
    piece = almanac.get(f"{newest}&piece=1").text
    assert "<html" not in piece
    assert "-&lt;img src=x onerror=hit()&gt;" in piece
    assert "<img" not in piece


def test_no_path_of_an_address_is_opened(almanac: Visit, tmp_path: Path) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text("herons = 3")
    for path in (str(secret), "../secret.py", "moon.py", f"{ROOT}/../almanac/moon.py", ROOT, "%", "_" * 40):
        answered = almanac.get(f"/files?{urlencode({'path': path})}")
        assert (answered.status, "herons" in answered.text) == (404, False)
        key = (
            almanac.get(f"/files?path={quote(f'{ROOT}/moon.py')}").text.partition("key=")[2].partition("&")[0]
        )
        changes = almanac.get(f"/files/changes?{urlencode({'path': path})}&key={key}")
        assert "herons" not in changes.text
        assert "Nothing is recorded" in changes.text
    assert almanac.get(f"/files/changes?path={quote(f'{ROOT}/moon.py')}&key=gemini:none").status == 404


def test_files_are_narrowed_by_a_part_of_their_path(almanac: Visit) -> None:
    assert [row[0] for row in table_rows(almanac.get("/files?q=ALMANAC").text)] == ["almanac/moon.py"]
    assert [row[0] for row in table_rows(almanac.get("/files?q=elsewhere").text)] == ["/elsewhere/moon.py"]
    assert "No file was changed" in almanac.get("/files?q=%25").text


def test_changes_are_counted_as_the_sessions_tell_them(person: Person, visit: Visit) -> None:
    told: Counter[str] = Counter()
    for key, row in person.rows().items():
        if row["kind"] in ("checkpoint", "capture"):
            continue
        session = person.show(key)
        for entry in session["timeline"]:
            for part in entry.get("parts", ()):
                if (
                    part["type"] == "tool_call"
                    and part["category"] == "Edit"
                    and "file_path" in part["arguments"]
                ):
                    told[absolute_path(part["arguments"]["file_path"], session["project"]["root"])] += 1
    found: dict[str, int] = {}
    for number in range(3):
        page = visit.get(f"/files?page={number}").text
        paths = [one.partition('"')[0] for one in page.split('title="')[1:]]
        found |= {path: int(row[2]) for path, row in zip(paths, table_rows(page), strict=True)}
    for path, changes in told.items():
        assert found[path] >= changes, "patches change files as well"
    assert sum(found.values()) >= sum(told.values()) > 20


def test_very_many_changes_are_not_all_shown(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ann")
    home.mark("almanac", ROOT)
    calls = [{**edit("moon.py", f"old {n}", f"new {n}"), "id": f"replace-{n}"} for n in range(MOST + 5)]
    home.lines("almanac", 1, 1, [user("u1", 1, "Go."), gemini("g1", 2, "Done.", calls)], kind="main")
    person = Person(home.folder)
    person.sync()
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        (link,) = [
            one for one in page_links(visit.get(f"/files?path={ROOT}/moon.py").text) if "/changes" in one
        ]
        told = visit.get(link).text
        assert (f"+new {MOST - 1}" in told, f"+new {MOST}" in told) == (True, False)
        assert "5 more" in told


PATHS = st.text(st.sampled_from("ab./\\~: é%_"), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def record(person: Person) -> Iterator[Store]:
    with Store(str(person.archive)) as record:
        yield record


@given(PATHS, st.none() | PATHS)
@example(".\\src\\a.py", "C:\\dev\\p")
@example("C:/x/a.py", "C:\\dev\\p\\")
@example("../a.py", "/p")
def test_sql_calls_a_file_by_the_same_path(record: Store, path: str, root: str | None) -> None:
    asked = f"SELECT {WHOLE_PATH} FROM (SELECT ? AS path) files, (SELECT ? AS root) sessions"  # noqa: S608 - ours
    assert record.row(asked, (path, root)) == (absolute_path(path, root),)
