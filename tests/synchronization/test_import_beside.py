"""What a conversation needs besides its own file comes along: outputs, markers, the file that it goes on from, clues."""

import json
import sqlite3
from pathlib import Path

import pytest

from retold.archive.store import UNREAD, Store
from support.conversation_files import (
    FORMS,
    ROOT,
    as_lines,
    claude_records,
    codex_records,
    thread,
    turns,
    uuid,
    write_file,
)
from support.gemini_home import GeminiHome, session_id, user
from support.merged_archives import import_into
from support.person import Person, session_text


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    person = Person(tmp_path / "ann")
    person.sync()
    return person


def with_an_output(person: Person, output: str = "every heron of the shore", *words: str) -> Person:
    """Write a transcript from which a large output was moved to a file of its own."""
    records = claude_records(1, turns("heron", *words))
    moved = "<persisted-output>\nFull output saved to: b1.txt\n</persisted-output>"
    given = records[2]
    given["message"]["content"][0]["content"] = moved
    given["toolUseResult"] = {"persistedOutputPath": "b1.txt", "stdout": ""}
    path = person.folder / ".claude/projects/-home-ann-dev-almanac" / f"{uuid(1)}.jsonl"
    write_file(path, as_lines(records))
    if output:
        write_file(path.with_suffix("") / "tool-results" / "b1.txt", output)
    person.sync()
    return person


def test_an_output_that_lies_beside_its_session_comes_along(ann: Person, tmp_path: Path) -> None:
    ben = with_an_output(Person(tmp_path / "ben"))
    done = import_into(ann.archive, ben.archive)
    assert (done.files, done.problems) == (2, [])
    assert "every heron of the shore" in session_text(ann.show(FORMS["claude"].key(1)))
    ann.sync("--reindex")
    assert ann.keys("shore") == [FORMS["claude"].key(1)]


def test_an_output_that_is_found_later_comes_to_a_session_that_is_here(ann: Person, tmp_path: Path) -> None:
    before = with_an_output(Person(tmp_path / "ben", tmp_path / "before"), "")
    later = with_an_output(Person(tmp_path / "ben", tmp_path / "later"))
    import_into(ann.archive, before.archive)
    assert "every heron" not in session_text(ann.show(FORMS["claude"].key(1)))
    assert import_into(ann.archive, later.archive).files == 1
    assert "every heron of the shore" in session_text(ann.show(FORMS["claude"].key(1)))


def with_prompts(person: Person, *, is_marked: bool) -> Person:
    made = GeminiHome(person.folder)
    made.logs("almanac", [(1, "Where do herons nest?")])
    if is_marked:
        made.mark("almanac", ROOT)
    person.sync()
    return person


def test_a_marker_that_only_another_has_comes_to_prompts_that_are_here(ann: Person, tmp_path: Path) -> None:
    ben = with_prompts(Person(tmp_path / "ben"), is_marked=False)
    cy = with_prompts(Person(tmp_path / "cy"), is_marked=True)
    import_into(ann.archive, ben.archive)
    import_into(ann.archive, cy.archive)
    with Store(str(ann.archive)) as record:
        paths = [path for (path,) in record.rows("SELECT path FROM sources WHERE is_companion")]
    assert [path.rpartition("/")[2] for path in paths] == [".project_root"]
    assert f"gemini:lost-{session_id(1)}" in ann.rows()


def test_the_file_that_a_fork_goes_on_from_comes_along_though_its_thread_is_here(
    ann: Person, tmp_path: Path
) -> None:
    ben = Person(tmp_path / "ben")
    for person in (ann, ben):
        base = FORMS["codex"].write(person.folder, 1, turns("heron"))
        lines = [json.loads(line) for line in base.read_text().splitlines()]
        write_file(base, as_lines({**line, "ordinal": place} for place, line in enumerate(lines)))
    first, *rest = codex_records(2, turns("vole"))
    goes_on = {
        "history_mode": "paginated",
        "history_base": {"thread_id": thread(1), "end_ordinal_exclusive": 8},
    }
    first["payload"].update(goes_on)
    fork = [{**line, "ordinal": place} for place, line in enumerate([first, *rest], 8)]
    write_file(base.with_name(base.name.replace(thread(1), thread(2))), as_lines(fork))
    for person in (ann, ben):
        person.sync()
    done = import_into(ann.archive, ben.archive)
    assert (done.new_sessions, done.merged, done.unchanged) == (1, 0, 1)
    assert ann.show(FORMS["codex"].key(2))["timeline"] == ben.show(FORMS["codex"].key(2))["timeline"]
    assert "asked heron" in session_text(ann.show(FORMS["codex"].key(2)))


def test_what_a_home_said_of_its_projects_comes_along(ann: Person, tmp_path: Path) -> None:
    ben = Person(tmp_path / "ben")
    made = GeminiHome(ben.folder)
    made.register({ROOT: "almanac"})
    made.lines("almanac", 1, 0, [user("m1", 0, "Where do herons nest?")])
    ben.sync()
    import_into(ann.archive, ben.archive)
    for _ in range(2):
        assert [row["project"]["root"] for row in ann.rows().values()] == [ROOT]
        ann.sync("--reindex")


def test_an_earlier_output_that_is_damaged_stops_everything(ann: Person, tmp_path: Path) -> None:
    ben = with_an_output(Person(tmp_path / "ben"), "a heron")
    with_an_output(ben, "every heron of the shore", "vole")
    connection = sqlite3.connect(ben.archive / "archive.db")
    asked = "SELECT originals.id FROM originals JOIN sources ON sources.id = source WHERE is_companion AND is_latest = 0"
    ((earlier,),) = connection.execute(asked).fetchall()
    connection.execute(
        "DELETE FROM chunks WHERE id IN (SELECT chunk FROM pieces WHERE original = ?)", (earlier,)
    )
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    assert ann.run("import", str(ben.archive)).code == 4
    assert ann.rows() == {}
    with Store(str(ann.archive)) as record:
        assert (record.fact(UNREAD), list(record.rows("SELECT path FROM sources"))) == (None, [])
