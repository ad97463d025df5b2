"""`--project NAME` of a project that only its hash is known of: folders of that name are looked for, and remembered."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from retold.archive.store import Store
from retold.projects import scan
from retold.projects.scan import find_roots_named
from retold.synchronization.update import Lock
from support.gemini_home import ROOT, GeminiHome, gemini, session_id, sha, user
from support.person import CommandResult, Person

TALK = [user("u1", 1, "How high is the tide?"), gemini("g1", 2, "Two metres.")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a project in the home of a person."""
    folder = tmp_path / "ann" / "dev" / "sea" / "Tide-Tables"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def person(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    """Somebody with a session in that folder and one in a project whose root is known."""
    made = GeminiHome(tmp_path / "ann")
    made.json(sha(str(folder)), 1, 1, TALK, root=str(folder))
    made.mark("almanac", ROOT)
    made.json("almanac", 2, 2, TALK)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    person = Person(tmp_path / "ann", tmp_path / "retold")
    assert person.run("sync").code == 0
    return person


def ids(done: CommandResult) -> list[str]:
    return [one["native_id"] for one in done.objects]


def kept_roots(person: Person) -> dict[str, str]:
    with Store(str(person.archive)) as record:
        return dict(record.rows("SELECT hash, root FROM roots"))


@pytest.mark.parametrize("name", ["tide-tables", "TIDE", "tables"])
def test_a_name_in_any_case_finds_the_folder_and_its_sessions(
    person: Person, folder: Path, name: str
) -> None:
    found = person.run("list", "--json", "--project", name)
    assert ids(found) == [session_id(1)]
    assert found.objects[0]["project"]["root"] == str(folder)
    assert len(found.err.splitlines()) == 1
    assert str(folder) in found.err


def test_what_was_found_is_remembered_and_not_looked_for_again(
    person: Person, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.run("list", "--project", "tide")
    assert kept_roots(person)[sha(str(folder))] == str(folder)
    forbid_walks(monkeypatch)
    again = person.run("list", "--json", "--project", "tide")
    assert (ids(again), again.err) == ([session_id(1)], "")


@pytest.mark.parametrize("name", ["almanac", ROOT, ".", sha(ROOT), sha(ROOT)[:8], "ALMA"])
def test_a_known_project_a_path_and_a_hash_cost_no_walk(
    person: Person, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    forbid_walks(monkeypatch)
    assert person.run("list", "--json", "--project", name).code == (1 if name == "." else 0)


def test_without_an_unknown_root_nothing_is_looked_for(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.run("list", "--project", "tide")
    forbid_walks(monkeypatch)
    done = person.run("list", "--json", "--project", "harbour")
    assert (done.code, done.objects) == (1, [])


def test_a_folder_of_the_name_without_sessions_is_not_taken(person: Person, folder: Path) -> None:
    (folder.parent / "harbour").mkdir()
    done = person.run("list", "--json", "--project", "harbour")
    assert (done.code, done.objects) == (1, [])
    assert "found none" in done.err
    assert str(folder) not in kept_roots(person).values()


@pytest.mark.parametrize(
    "command",
    [
        ("list", "--json", "--project", "tide"),
        ("search", "tide", "--json", "--project", "tide"),
        ("search", "tide", "--substring", "--json", "--project", "tide"),
        ("search", "tide project:tide-tables", "--json"),
        ("stats", "--by", "session", "--json", "--project", "tide"),
        ("export", "--format", "jsonl", "--project", "tide"),
        ("brief", "tide", "--json"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_every_command_with_the_filter_finds_it(person: Person, command: tuple[str, ...]) -> None:
    done = person.run(*command)
    assert done.code == 0, done
    assert session_id(1)[:8] in done.out
    assert session_id(2)[:8] not in done.out
    assert "folders" in done.err.splitlines()[0]


def test_forget_finds_it_too(person: Person) -> None:
    done = person.run("forget", "--project", "tide", "--dry-run")
    assert (done.code, session_id(1)[:8] in done.err, session_id(2)[:8] in done.err) == (0, True, False)


def test_stats_without_an_archive_sync_first_and_find_it(person: Person, tmp_path: Path) -> None:
    bare = Person(person.folder, tmp_path / "none")
    done = bare.run("stats", "--by", "session", "--json", "--project", "tide")
    assert [session_id(1)[:8] in one["of"] for one in done.objects] == [True]
    assert "files found" in done.err
    assert bare.keys("-n", "9", "role:user")


def test_a_busy_archive_answers_without_remembering(person: Person, folder: Path) -> None:
    with Lock(str(person.archive), lambda: None):
        done = person.run("list", "--json", "--project", "tide")
    assert ids(done) == [session_id(1)]
    assert len(done.err.splitlines()) == 1
    assert str(folder) not in kept_roots(person).values()


def test_the_walk_is_bounded_in_folders_and_time(tmp_path: Path) -> None:
    deep = tmp_path / "one" / "two" / "three" / "tides"
    (deep / "four" / "tides").mkdir(parents=True)
    hashes = {sha(str(deep)), sha(str(deep / "four" / "tides"))}
    whole = find_roots_named(tmp_path, "TIDES", hashes)
    assert (whole.roots, whole.is_done) == ({sha(str(deep)): str(deep)}, True)
    assert whole.seen > 3
    few = find_roots_named(tmp_path, "tides", hashes, most=3)
    assert (few.roots, few.seen, few.is_done) == ({}, 3, False)
    late = find_roots_named(tmp_path, "tides", hashes, seconds=-1)
    assert (late.roots, late.is_done) == ({}, False)


def forbid_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    def walk(*_: object, **__: object) -> Iterator[str]:
        raise AssertionError("a walk through folders")

    monkeypatch.setattr(scan, "find_roots_named", walk)
