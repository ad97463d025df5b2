"""Archives of strangers: nothing in them is trusted, nothing of them is changed, and what is no archive is told so."""

import hashlib
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
import zstandard

from retold.archive.foreign import remove_copies
from retold.archive.schema import STEPS
from retold.archive.store import digest
from support.conversation_files import FORMS, turns
from support.person import CommandResult, Person

Harm = Callable[[sqlite3.Connection], object]
ZEROS = bytes(1 << 20)


@pytest.fixture
def ben(tmp_path: Path) -> Person:
    """Somebody with an archive of sessions of every agent."""
    person = Person(tmp_path / "ben")
    for number, form in enumerate(FORMS.values()):
        form.write(person.folder, number, turns("perigee", "tithe"))
    person.sync()
    return person


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    """Who imports it."""
    person = Person(tmp_path / "ann")
    person.sync()
    return person


def harmed(person: Person, harm: Harm) -> Path:
    path = person.archive / "archive.db"
    connection = sqlite3.connect(path)
    harm(connection)
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path


def held(folder: Path) -> dict[str, str]:
    """Return every file of a folder with a digest of what it holds."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.glob("*")
        if path.is_file()
    }


def is_empty(person: Person) -> bool:
    return person.run("list", "--json", "--all").out == ""


def refused(ann: Person, path: Path, code: int) -> CommandResult:
    before = held(path.parent) if path.parent.is_dir() else {}
    done = ann.run("import", str(path))
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("retold: ")
    assert "internal error" not in done.err
    assert is_empty(ann)
    assert (held(path.parent) if path.parent.is_dir() else {}) == before
    return done


def tampered(sql: str, *values: object) -> Harm:
    return lambda connection: connection.execute(sql, values)


def replaced_by_a_view(connection: sqlite3.Connection) -> None:
    connection.executescript(
        "ALTER TABLE originals RENAME TO kept; CREATE VIEW originals AS SELECT * FROM kept;"
    )


def with_a_bomb(connection: sqlite3.Connection) -> None:
    """Let a chunk claim a size that it has, and hold a thousand times as much."""
    packed = zstandard.ZstdCompressor(level=19, write_content_size=False).compress(ZEROS * 64)
    connection.execute("UPDATE chunks SET packed = ?", (packed,))


def with_an_honest_bomb(connection: sqlite3.Connection) -> None:
    """Let a chunk hold as much as it says, which is more than any of ours."""
    data = ZEROS * 64
    packed = zstandard.ZstdCompressor(level=19).compress(data)
    state = (packed, len(data), digest(data))
    connection.execute(
        "UPDATE chunks SET packed = ?, size = ?, digest = ? WHERE id = (SELECT min(chunk) FROM pieces)",
        state,
    )
    connection.execute("UPDATE originals SET size = ?", (len(data),))


def with_one_chunk_for_all(connection: sqlite3.Connection) -> None:
    """Let an original be larger by far than all that the archive holds of it."""
    (original,) = connection.execute("SELECT min(id) FROM originals WHERE is_latest = 1").fetchone()
    packed = zstandard.ZstdCompressor().compress(ZEROS)
    state = (digest(ZEROS), len(ZEROS), packed)
    chunk = connection.execute("INSERT INTO chunks (digest, size, packed) VALUES (?, ?, ?)", state).lastrowid
    connection.execute("DELETE FROM pieces WHERE original = ?", (original,))
    pieces = [(original, place, chunk) for place in range(65)]
    connection.executemany("INSERT INTO pieces VALUES (?, ?, ?)", pieces)
    connection.execute("UPDATE originals SET size = ? WHERE id = ?", (65 * len(ZEROS), original))


def with_chunks_of_nothing(connection: sqlite3.Connection) -> None:
    """Let an original be as large, of chunks that differ and hold next to nothing."""
    (original,) = connection.execute("SELECT min(id) FROM originals WHERE is_latest = 1").fetchone()
    connection.execute("DELETE FROM pieces WHERE original = ?", (original,))
    for place in range(65):
        data = place.to_bytes(8, "big") + ZEROS[8:]
        state = (digest(data), len(data), zstandard.ZstdCompressor().compress(data))
        asked = "INSERT INTO chunks (digest, size, packed) VALUES (?, ?, ?)"
        chunk = connection.execute(asked, state).lastrowid
        connection.execute("INSERT INTO pieces VALUES (?, ?, ?)", (original, place, chunk))
    connection.execute("UPDATE originals SET size = ? WHERE id = ?", (65 * len(ZEROS), original))


def with_pages_of_two_tables(connection: sqlite3.Connection) -> None:
    """Break what an import does not look into."""
    connection.execute("PRAGMA writable_schema = 1")
    connection.execute(
        "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'messages')"
        " WHERE name = 'requests'"
    )


def with_no_text_in_the_schema(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TRIGGER late AFTER INSERT ON titles BEGIN SELECT 1; END")
    connection.execute("PRAGMA writable_schema = 1")
    connection.execute("UPDATE sqlite_schema SET sql = sql || CAST(x'2d2dff' AS TEXT) WHERE name = 'late'")


HARMS: dict[str, Harm] = {
    "a view in a table's place": replaced_by_a_view,
    "a trigger": tampered("CREATE TRIGGER late AFTER INSERT ON originals BEGIN DELETE FROM sources; END"),
    "another column": tampered("ALTER TABLE sources ADD COLUMN extra"),
    "a later version": tampered(f"PRAGMA user_version = {len(STEPS) + 1}"),
    "a digest that lies": tampered("UPDATE chunks SET digest = randomblob(16)"),
    "a size that lies": tampered("UPDATE chunks SET size = size + 1"),
    "an original that is longer than its pieces": tampered("UPDATE originals SET size = size + 1"),
    "a chunk that is missing": tampered("DELETE FROM chunks"),
    "a chunk that is none": tampered("UPDATE chunks SET packed = x'00ff'"),
    "a chunk that is text": tampered("UPDATE chunks SET packed = 'words'"),
    "a bomb": with_a_bomb,
    "an honest bomb": with_an_honest_bomb,
    "an agent that is bytes": tampered("UPDATE sources SET agent = x'07'"),
    "a title that is bytes": tampered("INSERT INTO titles VALUES (1, x'ff')"),
    "a root that is bytes": tampered("INSERT INTO clues VALUES ('/home', NULL, x'ff', 'recorded')"),
    "a key of a project that is bytes": tampered(
        "INSERT INTO clues VALUES ('/home', x'ff', '/x', 'recorded')"
    ),
    "evidence that is none": tampered("INSERT INTO clues VALUES ('/home', NULL, '/x', 'rumoured')"),
    "a label that is bytes": tampered("UPDATE sources SET label = x'07'"),
    "a cluster that is bytes": tampered("UPDATE sources SET cluster = x'07'"),
    "a size that is a word": tampered("UPDATE originals SET size = 'many'"),
    "a size below nothing": tampered("UPDATE originals SET size = -1"),
    "a time that is a word": tampered("UPDATE originals SET modified_ns = 'late'"),
    "a session whose name is a word": tampered("UPDATE sessions SET uid = 'perigee' WHERE id = 1"),
    "a title that is too long for any": tampered(
        "INSERT INTO titles VALUES (1, printf('%.*c', 17000000, 'x'))"
    ),
    "a chunk that is named over and over": with_one_chunk_for_all,
    "chunks of next to nothing": with_chunks_of_nothing,
    "a page of two tables": with_pages_of_two_tables,
}
HARMS |= {
    f"no text for the {column} of a file": tampered(
        f"UPDATE sources SET {column} = CAST(x'ff' AS TEXT) WHERE id = 1"  # noqa: S608 - ours
    )
    for column in ("agent", "home", "folder", "label", "path", "cluster")
}
HARMS |= {
    "no text for a title": tampered("INSERT INTO titles VALUES (1, CAST(x'ff' AS TEXT))"),
    "no text for a tag": tampered("INSERT INTO tags VALUES (1, CAST(x'ff' AS TEXT))"),
    "no text for a root": tampered(
        "INSERT INTO clues VALUES ('/home', NULL, CAST(x'ff' AS TEXT), 'recorded')"
    ),
    "no text for evidence": tampered("INSERT INTO clues VALUES ('/home', NULL, '/x', CAST(x'ff' AS TEXT))"),
    "no text in the schema": with_no_text_in_the_schema,
}


@pytest.mark.parametrize("harm", HARMS)
def test_what_we_did_not_write_is_refused_and_nothing_is_taken(ann: Person, ben: Person, harm: str) -> None:
    refused(ann, harmed(ben, HARMS[harm]), 4)


@pytest.mark.parametrize("size", [100, 4096, 5000, 40_000])
def test_half_a_file_is_refused(ann: Person, ben: Person, size: int) -> None:
    path = ben.archive / "archive.db"
    os.truncate(path, size)
    refused(ann, path, 4)


def test_what_is_no_archive_is_told_so(ann: Person, tmp_path: Path) -> None:
    folder = tmp_path / "things"
    folder.mkdir()
    (folder / "notes.txt").write_text("perigee")
    (folder / "empty.db").write_bytes(b"")
    connection = sqlite3.connect(folder / "recipes.db")
    connection.execute("CREATE TABLE recipes (dish)")
    connection.close()
    assert "no archive" in refused(ann, folder / "notes.txt", 1).err
    assert "no archive" in refused(ann, folder / "empty.db", 1).err
    assert "no archive" in refused(ann, folder / "recipes.db", 1).err
    assert "no such file" in refused(ann, folder / "missing.db", 1).err
    assert "no such file" in refused(ann, tmp_path / "nowhere" / "archive.db", 1).err
    assert "no such file" in refused(ann, folder, 1).err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no such pipes here")
def test_a_pipe_is_not_waited_for(ann: Person, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = ann.run("import", str(tmp_path / "pipe"))
    assert (done.code, done.err) == (1, f"retold: {tmp_path / 'pipe'} is no file\n")


STRANGE = {
    "a way out": "/home/ben/.gemini/tmp/../../../etc/passwd",
    "a NUL": "/home/ben/.gemini/tmp/x\0y",
    "no place": "session.json",
    "another place": "/etc/passwd",
}


@pytest.mark.parametrize("strange", STRANGE)
def test_files_that_no_agent_keeps_are_left_out_and_told(ann: Person, ben: Person, strange: str) -> None:
    path = harmed(
        ben,
        tampered(
            "UPDATE sources SET path = ? WHERE path LIKE '%.codex%' AND NOT is_companion", STRANGE[strange]
        ),
    )
    done = ann.run("import", str(path), "--json")
    assert (done.code, done.objects[0]["problems"]) == (0, 1)
    assert "left out" in done.err
    assert "\0" not in done.err
    assert {one["agent"] for one in ann.run("list", "--json").objects} == {"claude", "gemini"}


def test_a_path_that_is_no_text_is_kept_as_its_bytes(ann: Person, ben: Person) -> None:
    path = harmed(
        ben,
        tampered(
            "UPDATE sources SET path = CAST(replace(path, 'almanac', 'alma') || x'ff' || '.jsonl' AS BLOB)"
            " WHERE path LIKE '%.claude%'"
        ),
    )
    assert ann.run("import", str(path), "--json").objects[0]["problems"] == 0
    assert ann.run("show", FORMS["claude"].key(2)).code == 0


def test_a_label_that_steers_is_none(ann: Person, ben: Person) -> None:
    path = harmed(ben, tampered("UPDATE sources SET label = ?", "../\x1b[2J"))
    assert ann.run("import", str(path), "--home", "ben").code == 0
    assert {source["home"] for one in ann.run("list", "--json").objects for source in one["sources"]} == {
        "ben"
    }


def test_a_cluster_that_lies_takes_nothing_from_ours(ann: Person, ben: Person) -> None:
    FORMS["claude"].write(ann.folder, 9, turns("vellum"))
    ann.sync()
    mine = ann.run("show", FORMS["claude"].key(9)).out
    path = harmed(ben, tampered("UPDATE sources SET cluster = (SELECT ? )", FORMS["claude"].key(9)[7:]))
    assert ann.run("import", str(path)).code == 0
    assert ann.run("show", FORMS["claude"].key(9)).out == mine
    assert ann.run("show", FORMS["claude"].key(2)).code == 0


def with_a_log(person: Person, copy: Path) -> Path:
    """Copy an archive as somebody does while its owner writes: something waits in the log beside it."""
    connection = sqlite3.connect(person.archive / "archive.db")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("INSERT INTO titles SELECT uid, 'Waiting' FROM sessions WHERE agent = 'codex'")
    connection.commit()
    copy.mkdir()
    for name in ("archive.db", "archive.db-wal"):
        shutil.copy(person.archive / name, copy / name)
    connection.close()
    return copy


def test_what_waits_beside_a_file_is_read_and_stays_there(ann: Person, ben: Person, tmp_path: Path) -> None:
    copy = with_a_log(ben, tmp_path / "copy")
    before = held(copy)
    assert ann.run("import", str(copy), "--json").objects[0]["titles"] == 1
    assert held(copy) == before
    assert "Waiting" in ann.run("list").out
    assert not [path for path in ann.archive.iterdir() if path.name.startswith("import-")]


def test_a_trial_reads_it_elsewhere_where_no_import_sweeps_it_away(
    ben: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, cy, system = with_a_log(ben, tmp_path / "copy"), Person(tmp_path / "cy"), tmp_path / "system"
    system.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(system))
    modes: list[int] = []

    def swept(theirs: BinaryIO, ours: BinaryIO) -> None:
        ours.write(theirs.read())
        remove_copies(str(cy.archive))
        modes.extend(stat.S_IMODE(path.stat().st_mode) for path in system.iterdir())

    monkeypatch.setattr("retold.archive.foreign.shutil.copyfileobj", swept)
    assert cy.run("import", str(copy), "--dry-run", "--json").objects[0]["titles"] == 1
    assert not cy.archive.exists()
    assert list(system.iterdir()) == []
    assert modes == [0o700] * 2 or os.name == "nt"


def test_a_home_may_be_named_from_where_one_is(
    ben: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, cy = with_a_log(ben, tmp_path / "copy"), Person(tmp_path / "cy", Path("near"))
    monkeypatch.chdir(tmp_path)
    assert cy.run("import", "copy", "--json").objects[0]["titles"] == 1
    assert sorted(path.name for path in copy.iterdir()) == ["archive.db", "archive.db-wal"]


def test_a_copy_is_made_again_when_somebody_wrote_meanwhile(
    ann: Person, ben: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, copies = with_a_log(ben, tmp_path / "copy"), []
    often = 1

    def touched(theirs: BinaryIO, ours: BinaryIO) -> None:
        copies.append(theirs.name)
        ours.write(theirs.read())
        if len(copies) <= 2 * often:
            os.utime(theirs.name, ns=(often + len(copies),) * 2)

    monkeypatch.setattr("retold.archive.foreign.shutil.copyfileobj", touched)
    assert ann.run("import", str(copy), "--json").objects[0]["titles"] == 1
    assert len(copies) == 4
    copies, often = [], 10
    done = ann.run("import", str(copy))
    assert (done.code, "is being written to" in done.err) == (4, True)


def test_a_file_in_the_middle_of_a_change_is_refused(ann: Person, ben: Person) -> None:
    (ben.archive / "archive.db-journal").write_bytes(b"what was there before")
    assert "in the middle of a change" in refused(ann, ben.archive / "archive.db", 4).err
    (ben.archive / "archive.db-journal").write_bytes(b"")
    assert ann.run("import", str(ben.archive)).code == 0


def test_an_archive_that_nobody_may_write_is_read(ann: Person, ben: Person) -> None:
    (ben.archive / "archive.db").chmod(0o400)
    ben.archive.chmod(0o500)
    before = held(ben.archive)
    assert ann.run("import", str(ben.archive)).code == 0
    assert held(ben.archive) == before
    ben.archive.chmod(0o700)


def test_an_archive_of_the_first_version_is_read(ann: Person, ben: Person, tmp_path: Path) -> None:
    old = tmp_path / "old.db"
    connection = sqlite3.connect(old)
    connection.executescript(STEPS[0])
    connection.execute("ATTACH ? AS new", (str(ben.archive / "archive.db"),))
    for table in ("sources", "originals", "pieces", "chunks", "clues"):
        count = len(
            list(connection.execute(f"PRAGMA main.table_info({table})"))
        )  # later steps added columns at the end
        columns = ", ".join([row[1] for row in connection.execute(f"PRAGMA new.table_info({table})")][:count])
        connection.execute(f"INSERT INTO {table} SELECT {columns} FROM new.{table}")  # noqa: S608 - ours
    connection.commit()
    connection.execute("DETACH new")
    connection.executescript(f"PRAGMA user_version = 1; PRAGMA application_id = {0x7265746C};")
    connection.close()
    assert ann.run("import", str(old), "--json").objects[0]["new_sessions"] == len(FORMS)
    assert ann.run("import", str(old), "--json").objects[0]["unchanged"] == len(FORMS)
