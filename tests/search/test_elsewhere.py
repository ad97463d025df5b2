"""Sessions that have something to do with another, and why."""

from datetime import UTC, datetime
from pathlib import Path

from retold.archive.store import Store
from retold.demo.home import make_home
from retold.search.related import RelatedSession, find_related
from support.gemini_home import GeminiHome, call, gemini, user
from support.person import Person
from support.synced_archive import sync_archive

NOW = datetime(2026, 11, 16, 2, 10, tzinfo=UTC)


def key(number: int, minute: int) -> str:
    return f"gemini:session-2026-03-01T09-{minute:02}-{number:08x}"


def told(person: Person, of: str) -> dict[str, RelatedSession]:
    with Store(str(person.archive)) as record:
        return {one.key: one for one in find_related(record, of)}


def changed(home: GeminiHome, project: str, number: int, *paths: str) -> None:
    """Let a session change files; in each project of its own."""
    calls = [call("replace", {"file_path": path, "old_string": "a", "new_string": "b"}, 2) for path in paths]
    records = [user("u1", 1, f"Mend {number}"), gemini("g1", 2, "Done", calls)]
    home.lines(project, number, number, records, kind="main", root=f"/home/ann/{project}")


def test_those_that_changed_rare_files_as_well_come_before_those_that_changed_what_all_do(
    tmp_path: Path,
) -> None:
    home = GeminiHome(tmp_path / "ann")
    changed(home, "den", 1, "README.md", "heron.py")
    changed(home, "den", 2, "README.md")
    changed(home, "den", 3, "README.md", "heron.py")
    changed(home, "den", 4, "README.md")
    changed(home, "moor", 5, "heron.py")
    person = Person(home.folder)
    person.sync()
    found = told(person, key(1, 1))
    by_files = [one for one in found.values() if one.why == "files"]
    assert [one.key for one in by_files] == [key(3, 3), key(2, 2), key(4, 4)]
    assert (by_files[0].shared, by_files[0].files) == (2, ("heron.py", "README.md"))
    assert key(5, 5) not in found, "the same name in another project is another file"


def test_what_lies_on_the_disk_is_the_same_file_in_every_project(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ann")
    changed(home, "den", 1, "/etc/heron.conf")
    changed(home, "moor", 2, "/etc/heron.conf")
    person = Person(home.folder)
    person.sync()
    assert told(person, key(1, 1))[key(2, 2)].why == "files"


def test_whoever_only_read_a_file_did_not_change_it(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ann")
    changed(home, "den", 1, "/etc/heron.conf")
    looked = call("read_file", {"file_path": "/etc/heron.conf"}, 2)
    records = [user("u1", 1, "Look"), gemini("g1", 2, "Seen", [looked])]
    home.lines("moor", 2, 2, records, kind="main", root="/home/ann/moor")
    person = Person(home.folder)
    person.sync()
    assert person.show(key(2, 2))["counts"]["tool_calls"] == 1
    assert told(person, key(1, 1)) == {}


def test_those_of_the_same_project_are_told_by_when_they_began(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ann")
    for number in (1, 9, 4):
        changed(home, "den", number)
    person = Person(home.folder)
    person.sync()
    found = told(person, key(4, 4))
    assert [(one.key, one.why, one.later) for one in found.values()] == [
        (key(1, 1), "time", -180),
        (key(9, 9), "time", 300),
    ]
    assert told(person, "gemini:nowhere") == {}


def test_parents_and_children_are_named_first_and_each_once(tmp_path: Path) -> None:
    made = make_home(tmp_path / "demo", NOW)
    archive = sync_archive(made.variables["RETOLD_HOME"], made.variables)
    with Store(archive.folder) as record:
        for one in archive.summaries():
            found = find_related(record, one.key)
            keys = [other.key for other in found]
            assert len(set(keys)) == len(keys)
            assert one.key not in keys
            if one.parent:
                assert found[0].why in ("parent", "child", "subagent"), one.key
                assert one.parent in keys
            assert set(one.children) <= set(keys)
