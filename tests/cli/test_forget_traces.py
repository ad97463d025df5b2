"""After `retold forget`, no byte below RETOLD_HOME names the session or the folder in which it took place."""

import json
import shutil
from pathlib import Path

import apsw
import pytest

from retold.archive.schema import STEPS
from retold.archive.store import digest
from support.conversation_files import (
    FORMS,
    ROOT,
    Form,
    as_lines,
    claude,
    claude_key,
    claude_records,
    turns,
    uuid,
    write_file,
)
from support.gemini_home import GeminiHome, sha, user
from support.person import Person, archive_tables, renames_undone
from support.traces import traces

FOLDER = "almanac"
"""The folder of every session that a form writes."""
OTHER = "/home/ann/dev/charts"


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path / "ann")
    made = GeminiHome(person.folder)
    made.mark("charts", OTHER)
    made.json("charts", 3, 1, [user("u1", 1, "otherwise")], root=OTHER)
    return person


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Form:
    return FORMS[request.param]


def names(form: Form, number: int) -> list[str]:
    """Return what names a session: the agent's id, and the name of its file."""
    return [form.key(number).partition(":")[2], uuid(number)]


def left(person: Person, *words: str) -> dict[str, list[str]]:
    found = {word: [*traces(person, word.lower())] for word in words}
    return {word: places for word, places in found.items() if places}


def test_the_ids_and_folders_are_there_before(person: Person, form: Form) -> None:
    """Else the search would prove nothing."""
    form.write(person.folder, 1, turns("xyloidal"))
    person.sync()
    assert {*left(person, names(form, 1)[0], FOLDER)} == {names(form, 1)[0], FOLDER}


def test_no_byte_names_a_forgotten_session_or_its_folder(person: Person, form: Form) -> None:
    file = form.write(person.folder, 1, turns("xyloidal"))
    person.sync()
    assert person.run("forget", "-y", form.key(1)).code == 0
    for _ in range(3):
        assert left(person, *names(form, 1), file.stem, FOLDER, sha(ROOT)) == {}
        person.sync()
    person.sync("--reindex")
    assert left(person, *names(form, 1), file.stem, FOLDER, sha(ROOT)) == {}
    assert [*person.rows()] == [row for row in person.rows() if "00000003" in row]
    assert len(person.rows()) == 1


def test_what_was_forgotten_stays_forgotten_and_unnamed(person: Person, form: Form) -> None:
    file = form.write(person.folder, 1, turns("xyloidal"))
    person.sync()
    person.run("forget", "-y", form.key(1))
    form.write(person.folder, 1, turns("xyloidal", "growing"))
    person.sync()
    shutil.copytree(file.parent, file.parent.with_name("copy-of-it"), dirs_exist_ok=True)
    person.sync()
    file.unlink()
    person.sync()
    assert left(person, *names(form, 1), file.stem, "growing", "copy-of-it") == {}
    assert form.key(1) not in person.rows()
    assert len(person.rows()) == 1


def test_another_session_of_the_folder_keeps_its_own_names(person: Person, form: Form) -> None:
    file = form.write(person.folder, 1, turns("xyloidal"))
    form.write(person.folder, 2, turns("lighthouse"))
    person.sync()
    before = person.show(form.key(2))
    person.run("forget", "-y", form.key(1))
    person.sync()
    assert left(person, *names(form, 1), file.stem) == {}
    assert person.show(form.key(2)) == before
    assert left(person, FOLDER)


def test_a_new_session_in_a_forgotten_folder_is_archived(person: Person, form: Form) -> None:
    form.write(person.folder, 1, turns("xyloidal"))
    person.age()
    person.sync()
    person.run("forget", "-y", form.key(1))
    person.sync()
    form.write(person.folder, 2, turns("lighthouse"))
    person.sync()
    assert form.key(2) in person.rows()
    assert person.show(form.key(2))["project"]["root"] == ROOT
    person.sync("--reindex")
    assert form.key(2) in person.rows()


def test_a_sync_that_finds_nothing_new_still_looks_at_nothing_else(
    person: Person, form: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    form.write(person.folder, 1, turns("xyloidal"))
    person.age()
    person.sync()
    person.run("forget", "-y", form.key(1))
    person.sync()
    monkeypatch.setattr(
        "retold.synchronization.update.sync_or_rebuild", lambda *_: pytest.fail("it looked again")
    )
    assert person.sync()["read"] == 0


def test_a_prompt_log_loses_the_folder_with_its_last_session(person: Person) -> None:
    made = GeminiHome(person.folder)
    made.mark("quokka", "/home/ann/dev/quokka")
    made.logs("quokka", [(7, "xyloidal prompt")])
    person.sync()
    (key,) = [key for key in person.rows() if key.startswith("gemini:lost-")]
    assert person.run("forget", "-y", key).code == 0
    for _ in range(2):
        assert left(person, "quokka", key.partition("lost-")[2], "xyloidal") == {}
        person.sync()
    made.logs("quokka", [(7, "xyloidal prompt"), (8, "a new one")])
    person.sync()
    assert len(person.rows()) == 2
    assert left(person, "xyloidal") == {}


def marked_folders(person: Person) -> set[str]:
    """Return the folders whose marker the archive holds."""
    connection = apsw.Connection(str(person.archive / "archive.db"))
    rows = list(connection.execute("SELECT path FROM sources WHERE path LIKE '%/.project_root'"))
    connection.close()
    return {Path(path).parent.name for (path,) in rows}


@pytest.fixture
def marked(person: Person) -> Person:
    """Return who has three marked folders, of which two have a log with a prompt that no file of a session tells."""
    made = GeminiHome(person.folder)
    for number, name in ((7, "quokka"), (9, "wombat")):
        root = f"/home/ann/dev/{name}"
        made.mark(name, root)
        told = user(f"u{number}", 1, f"xyloidal {number}")
        made.json(name, number, 1, [told], projectHash=sha(root))
        made.logs(name, [(number, f"xyloidal {number}"), (number + 1, "a prompt alone")])
    person.sync()
    assert marked_folders(person) >= {"quokka", "wombat"}
    return person


def test_a_marker_goes_with_the_last_session_of_its_own_folder(marked: Person) -> None:
    assert marked.run("forget", "-y", "--project", "quokka").code == 0
    for _ in range(2):
        assert left(marked, "quokka") == {}
        assert "wombat" in marked_folders(marked)
        GeminiHome(marked.folder).logs("wombat", [(9, "xyloidal 9"), (10, "a prompt alone"), (11, "more")])
        marked.sync()


def test_a_marker_stays_with_the_other_sessions_of_its_folder(marked: Person) -> None:
    before = marked_folders(marked)
    for key in [key for key in marked.rows() if key.startswith("gemini:lost-")]:
        assert marked.run("forget", "-y", key).code == 0
    assert marked_folders(marked) == before


def test_a_marker_stays_when_a_checkpoint_of_its_folder_goes(marked: Person) -> None:
    checkpoint = [{"role": "user", "parts": [{"text": "a checkpoint"}]}]
    GeminiHome(marked.folder).write("tmp/quokka/checkpoint-one.json", json.dumps(checkpoint))
    marked.sync()
    before = marked_folders(marked)
    (key,) = [key for key in marked.rows() if "checkpoint-one" in key]
    assert marked.run("forget", "-y", key).code == 0
    assert marked_folders(marked) == before
    assert left(marked, "checkpoint-one") == {}


def test_the_registry_of_a_home_does_not_bring_the_folder_back(person: Person) -> None:
    made = GeminiHome(person.folder)
    made.json("quokka", 7, 1, [user("u1", 1, "xyloidal")], root="/home/ann/dev/quokka")
    write_file(person.folder / ".gemini/projects.json", '{"projects": {"/home/ann/dev/quokka": "quokka"}}')
    person.age()
    person.sync()
    assert left(person, "quokka")
    assert person.run("forget", "-y", "--project", "quokka").code == 0
    person.sync()
    assert left(person, "quokka") == {}
    assert person.sync()["read"] == 0
    made.json("quokka", 8, 1, [user("u1", 1, "lighthouse")])
    person.sync()
    roots = {row["project"]["root"] for row in person.rows().values()}
    assert roots == {OTHER, "/home/ann/dev/quokka"}


def test_the_marker_among_the_histories_does_not_bring_the_folder_back(person: Person) -> None:
    """Gemini CLI marks a project's folder in `history` as well as the one in `tmp`."""
    made = GeminiHome(person.folder)
    root = "/home/ann/dev/quokka"
    made.mark("quokka", root)
    made.write("history/quokka/.project_root", root)
    made.json("quokka", 7, 1, [user("u1", 1, "xyloidal")], root=root)
    person.age()
    person.sync()
    assert person.run("forget", "-y", "--project", "quokka").code == 0
    for _ in range(2):
        person.sync()
        assert left(person, "quokka") == {}
    assert person.sync()["read"] == 0


def test_what_lies_beside_a_forgotten_session_is_not_kept_when_it_grows(person: Person) -> None:
    file = claude(person.folder, 1, turns("xyloidal"))
    lines = [{**one, "isSidechain": True, "agentId": "a1"} for one in claude_records(1, turns("sounding"))]
    write_file(file.with_suffix("") / "subagents/agent-a1.jsonl", as_lines(lines))
    output = write_file(file.with_suffix("") / "tool-results/toolu_1.txt", "xyloidal output")
    person.sync()
    person.run("forget", "-y", claude_key(1))
    write_file(output, "xyloidal output and more")
    claude(person.folder, 1, turns("xyloidal", "growing"))
    person.sync()
    assert left(person, "xyloidal", uuid(1), FOLDER, "growing", "sounding") == {}


def test_doctor_does_not_miss_what_was_forgotten(person: Person, form: Form) -> None:
    form.write(person.folder, 1, turns("xyloidal"))
    person.age()
    person.sync()
    person.run("forget", "-y", form.key(1))
    person.sync()
    found = [one for one in person.run("doctor", "--json").objects if one["finding"] == "unarchived"]
    assert found == []


# Archives of earlier versions -----------------------------------------------------------------------------------


def as_earlier_version_left_it(person: Person, key: str) -> None:
    """Forget a session, and put into the archive what an earlier version left of it in clear."""
    path = str(person.archive / "archive.db")
    connection = apsw.Connection(path)
    (gone,) = connection.execute("SELECT id, uid, native_id FROM sessions WHERE key = ?", (key,))
    asked = "SELECT sources.* FROM sources JOIN session_sources ON source = sources.id WHERE session = ?"
    sources = list(connection.execute(asked, (gone[0],)))
    tables = {"answers": "dependencies", "clues": "clues", "roots": "roots"}
    kept = {name: list(connection.execute(f"SELECT * FROM {now}")) for name, now in tables.items()}  # noqa: S608 - fixed names
    connection.close()
    assert person.run("forget", "-y", key).code == 0
    connection = apsw.Connection(path)
    connection.execute("DROP TABLE bookmarks")
    connection.execute("; ".join(renames_undone(STEPS[-2])))
    connection.execute(
        "DROP TABLE hidden; DROP TABLE forgotten; DELETE FROM facts WHERE name = 'forgotten key'"
    )
    connection.execute(
        "CREATE TABLE forgotten (name INTEGER PRIMARY KEY, native BLOB, forgotten_at TEXT NOT NULL)"
    )
    row = (gone[1], digest(gone[2].encode()), "2026-03-01T09:00:00+00:00")
    connection.execute("INSERT INTO forgotten VALUES (?, ?, ?)", row)
    for table, rows in {**kept, "sources": sources}.items():
        for one in rows:
            marks = ", ".join("?" * len(one))
            connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", one)  # noqa: S608 - fixed names
    connection.pragma("user_version", len(STEPS) - 3)
    connection.close()


def test_an_archive_of_an_earlier_version_loses_the_names_and_forgets_nothing_again(
    person: Person, form: Form
) -> None:
    file = form.write(person.folder, 1, turns("xyloidal"))
    person.sync()
    as_earlier_version_left_it(person, form.key(1))
    assert left(person, file.stem)
    for _ in range(2):
        person.sync()
        assert left(person, *names(form, 1), file.stem, FOLDER, "xyloidal") == {}
        assert len(person.rows()) == 1
    form.write(person.folder, 1, turns("xyloidal", "growing"))
    person.sync()
    assert left(person, *names(form, 1), "xyloidal") == {}
    assert len(person.rows()) == 1


def test_an_archive_of_an_earlier_version_without_a_tombstone_keeps_all_it_has(
    person: Person, form: Form
) -> None:
    form.write(person.folder, 1, turns("xyloidal"))
    person.age()
    person.sync()
    before = archive_tables(person.archive)
    connection = apsw.Connection(str(person.archive / "archive.db"))
    connection.execute("DROP TABLE bookmarks")
    connection.execute("; ".join(renames_undone(STEPS[-2])))
    connection.execute(
        "DROP TABLE hidden; DROP TABLE forgotten; DELETE FROM facts WHERE name = 'forgotten key'"
    )
    connection.execute(
        "CREATE TABLE forgotten (name INTEGER PRIMARY KEY, native BLOB, forgotten_at TEXT NOT NULL)"
    )
    connection.pragma("user_version", len(STEPS) - 3)
    connection.close()
    assert len(person.rows()) == 2
    assert archive_tables(person.archive) == before
    assert person.sync()["read"] == 0


def test_what_lies_beside_an_excluded_session_is_not_kept(person: Person) -> None:
    person.archive.mkdir()
    (person.archive / "config.toml").write_text(f'exclude = ["{FOLDER}"]\n')
    file = claude(person.folder, 1, turns("xyloidal"))
    lines = [{**one, "isSidechain": True, "agentId": "a1"} for one in claude_records(1, turns("sounding"))]
    write_file(file.with_suffix("") / "subagents/agent-a1.jsonl", as_lines(lines))
    write_file(file.with_suffix("") / "subagents/agent-a1.meta.json", '{"description": "zeugmatic"}')
    person.sync()
    assert left(person, "xyloidal", "sounding", "zeugmatic") == {}
