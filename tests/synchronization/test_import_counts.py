"""What an import tells of the other's conversations: each counts once, and whatever is left out is told."""

import shutil
from pathlib import Path

from retold.archive.store import Store
from retold.demo.home import make_home
from retold.synchronization.importer import ImportReport
from support.conversation_files import FORMS, ROOT, as_lines, claude_records, turns, uuid, write_file
from support.export_inputs import NOW
from support.gemini_home import GeminiHome
from support.merged_archives import import_into
from support.person import Person
from support.synced_archive import sync_archive


def with_a_sidechain(person: Person, *words: str, name: str = uuid(1)) -> None:
    """Write a transcript in which a subagent speaks as well."""
    side = [
        {**one, "isSidechain": True, "sessionId": name} for one in claude_records(0xFF000002, turns("otter"))
    ]
    path = person.folder / ".claude/projects/-home-ann-dev-almanac" / f"{name}.jsonl"
    own = [{**one, "sessionId": name} for one in claude_records(1, turns(*words))]
    write_file(path, as_lines([*own, *side]))


def counts(done: ImportReport) -> tuple[int, int, int, int]:
    return done.new_sessions, done.merged, done.unchanged, done.left


def size(archive: Path) -> int:
    with Store(str(archive)) as record:
        return len(list(record.rows("SELECT 1 FROM sessions")))


def test_a_conversation_that_shares_its_file_with_a_forgotten_one_is_not_said_to_grow(tmp_path: Path) -> None:
    ben, ann = Person(tmp_path / "ben"), Person(tmp_path / "ann")
    with_a_sidechain(ben, "heron")
    ben.sync()
    assert counts(import_into(ann.archive, ben.archive)) == (2, 0, 0, 0)
    (side,) = [key for key, row in ann.rows().items() if row["kind"] == "subagent"]
    ann.run("forget", "-y", side)
    with_a_sidechain(ben, "heron", "vole")
    ben.sync()
    for _ in range(2):
        done = import_into(ann.archive, ben.archive)
        assert (counts(done), done.files) == ((0, 0, 1, 1), 0)
        assert [one.code for one in done.problems] == ["unreadable-file"]
        assert "left out" in done.problems[0].message


def test_nothing_is_written_by_hand_about_a_conversation_that_is_left_with_a_forgotten_one(
    tmp_path: Path,
) -> None:
    ben, ann = Person(tmp_path / "ben"), Person(tmp_path / "ann")
    with_a_sidechain(ben, "heron")
    ben.sync()
    import_into(ann.archive, ben.archive)
    ann.run("forget", "-y", f"claude:{uuid(1)}")
    ben.run("name", f"claude:{uuid(1)}", "Of herons")
    with Store(str(ann.archive), can_write=True) as record:
        asked = "DELETE FROM tombstones WHERE uid_hash = (SELECT max(uid_hash) FROM tombstones)"
        record.connection.execute(asked)
    done = import_into(ann.archive, ben.archive)
    assert (counts(done), done.files, done.titles) == ((0, 0, 0, 2), 0, 0)
    assert len(done.problems) == 1


def test_each_conversation_counts_once_and_all_are_here_the_second_time(tmp_path: Path) -> None:
    make_home(tmp_path / "demo", NOW)
    home, half = tmp_path / "demo" / "home", tmp_path / "half"
    sync_archive(tmp_path / "other", {"HOME": str(home)})
    shutil.copytree(home, half)
    for number, path in enumerate(sorted(half.rglob("*.json*"))):
        if {"chats", "projects", "sessions"} & set(path.parts):
            lines = path.read_bytes().splitlines(keepends=True)
            path.write_bytes(b"".join(lines[: len(lines) // (1 + number % 3)]))
            if number % 4 == 0:
                path.unlink()
    sync_archive(tmp_path / "own", {"HOME": str(half)})
    done = import_into(tmp_path / "own", tmp_path / "other")
    assert sum(counts(done)) == size(tmp_path / "other")
    assert all(counts(done)[:3])
    again = import_into(tmp_path / "own", tmp_path / "other")
    assert counts(again) == (0, 0, size(tmp_path / "other"), 0)


def test_what_one_knows_by_prompts_and_the_other_in_full_counts_once(tmp_path: Path) -> None:
    ben, ann = Person(tmp_path / "ben"), Person(tmp_path / "ann")
    for number, person in enumerate((ben, ann), 1):
        made = GeminiHome(person.folder)
        made.mark("almanac", ROOT)
        made.logs("almanac", [(1, "Where do herons nest?"), (2, "And voles?")])
        FORMS["gemini-lines"].write(person.folder, number, turns("heron"))
        person.sync()
    assert counts(import_into(ann.archive, ben.archive)) == (0, 1, 1, 0)
    assert counts(import_into(ann.archive, ben.archive)) == (0, 0, 2, 0)


def test_conversations_that_only_their_place_names_are_here_the_second_time(tmp_path: Path) -> None:
    ben, ann = Person(tmp_path / "ben"), Person(tmp_path / "ann")
    with_a_sidechain(ben, "heron", name="night")
    ben.sync()
    assert counts(import_into(ann.archive, ben.archive)) == (2, 0, 0, 0)
    assert counts(import_into(ann.archive, ben.archive)) == (0, 0, 2, 0)


def with_prompts(person: Person) -> None:
    made = GeminiHome(person.folder)
    made.mark("almanac", ROOT)
    made.logs("almanac", [(1, "Where do herons nest?"), (2, "And voles?")])
    person.sync()


def test_prompts_that_are_forgotten_count_as_left(tmp_path: Path) -> None:
    ben, ann = Person(tmp_path / "ben"), Person(tmp_path / "ann")
    with_prompts(ben)
    assert counts(import_into(ann.archive, ben.archive)) == (2, 0, 0, 0)
    ann.run("forget", "-y", f"gemini:lost-{uuid(1)}")
    for _ in range(2):
        assert counts(import_into(ann.archive, ben.archive)) == (0, 0, 1, 1)


def test_prompts_of_excluded_projects_count_as_left_each_time(tmp_path: Path) -> None:
    ben, ann = Person(tmp_path / "ben"), Person(tmp_path / "ann")
    with_prompts(ben)
    for _ in range(2):
        assert counts(import_into(ann.archive, ben.archive, excluded=["almanac"])) == (0, 0, 0, 2)
