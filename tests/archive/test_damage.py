"""Files of ours that are not as we wrote them: the index is made anew, the archive is left as it is."""

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from retold.archive.database import IndexDamagedError, as_index_error
from retold.archive.schema import STEPS
from retold.archive.store import Store
from support.conversation_files import FORMS, dice, turns
from support.person import CommandResult, Person, archive_contents, table_differences

pytestmark = pytest.mark.slow

PAGE = 4096


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """Somebody whose archive has many pages of every kind."""
    person = Person(tmp_path / "ann")
    chance = dice(1)
    for number in range(8):
        form = list(FORMS.values())[number % len(FORMS)]
        noise = [chance.randbytes(3000).hex() for _ in range(6)]
        form.write(person.folder, number, turns(f"tide{number}", *noise))
    person.age()
    person.sync()
    return person


def files(person: Person) -> list[Path]:
    return sorted((person.archive / "index").glob("*.db"))


def foreign(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE recipes (dish TEXT)")
    connection.close()


def scribble(path: Path, start: int, size: int) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(dice(start).randbytes(size))


def scribble_over_all_but_the_head(path: Path) -> None:
    scribble(path, PAGE, path.stat().st_size - PAGE)


HARMS: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "cut within a page": lambda path: os.truncate(path, 5000),
    "a head of garbage": lambda path: scribble(path, 0, 100),
    "garbage in the middle": scribble_over_all_but_the_head,
    "all garbage": lambda path: path.write_bytes(dice(2).randbytes(20_000)),
    "of another program": foreign,
}


def told_once(done: CommandResult) -> bool:
    """Tell whether one line of stderr says that the index is rebuilt."""
    told = [line for line in done.err.splitlines() if "rebuilding the text index" in line]
    return len(told) == 1 and told[0].startswith("retold: ")


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("command", ["search", "search --substring", "sync"])
def test_a_damaged_index_is_made_anew(person: Person, command: str, harm: str, number: int) -> None:
    expected = archive_contents(person.archive)
    HARMS[harm](files(person)[number])
    if command == "sync":
        done = person.run("sync")
        assert done.code == 0, done
    for place in range(8):
        done = person.run(*command.split()[:2], "--json", f"tide{place}") if command != "sync" else done
        assert done.code == 0, done
        if place == 0:
            assert told_once(done), done
        if command != "sync":
            assert [found["key"] for found in done.objects] == [list(FORMS.values())[place % 4].key(place)]
            assert place == 0 or done.err == ""
    assert not table_differences(archive_contents(person.archive), expected)


def test_an_index_of_another_version_is_made_anew(person: Person) -> None:
    with sqlite3.connect(files(person)[0]) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    done = person.run("search", "tide1")
    assert done.code == 0
    assert told_once(done)
    assert person.search("tide1")


def test_the_index_may_be_deleted_as_a_whole(person: Person) -> None:
    for path in (person.archive / "index").iterdir():
        path.unlink()
    (person.archive / "index").rmdir()
    assert person.run("search", "tide3").code == 0
    assert person.search("tide3")


@pytest.mark.parametrize("command", ["search", "sync"])
def test_an_index_of_another_archive_is_made_anew(person: Person, tmp_path: Path, command: str) -> None:
    """Two people with as many syncs each: only the ids of their archives tell that the files are not theirs."""
    other = Person(tmp_path / "bob")
    FORMS["claude"].write(other.folder, 2, turns("elsewhere"))
    other.age()
    other.sync()
    expected = archive_contents(person.archive)
    shutil.rmtree(person.archive / "index")
    shutil.copytree(other.archive / "index", person.archive / "index")
    done = person.run(*(["search", "tide1"] if command == "search" else ["sync"]))
    assert done.code == 0
    assert told_once(done)
    assert "is of another archive" in done.err
    assert person.keys("tide1") == [FORMS["gemini-lines"].key(1)]
    assert person.search("elsewhere") == []
    assert not table_differences(archive_contents(person.archive), expected)


def test_every_archive_has_an_id_of_its_own_and_keeps_it(person: Person, tmp_path: Path) -> None:
    def id_of(one: Person) -> str:
        with Store(str(one.archive)) as record:
            return record.id

    other = Person(tmp_path / "bob")
    other.sync()
    before = id_of(person)
    person.sync("--reindex")
    assert id_of(person) == before != id_of(other)
    assert len(before) == 32


# What is wrong with the machine and not with the index ------------------------------------------------------------

LIMITED = """
import atexit, resource
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (700_000, hard))
atexit.register(resource.setrlimit, resource.RLIMIT_FSIZE, (soft, hard))  # coverage writes its file behind us
"""
"""Writes behind 700 kB of a file fail with EFBIG, as they fail with EDQUOT, EIO or EROFS elsewhere."""


@pytest.mark.skipif(os.name != "posix", reason="limits as POSIX has them")
def test_an_index_that_cannot_be_written_is_not_removed(person: Person) -> None:
    """Many words that each stand once: packed they take little room, in the index a lot."""
    said = " ".join(f"w{number:06}" for number in range(90_000))
    FORMS["claude"].write(person.folder, 2, turns("tide2", said))
    before = [path.stat().st_ino for path in files(person)]
    done = person.spawn("sync", code=LIMITED)
    assert done.code == 4, done
    assert any(f"retold: {path}: " in done.err for path in files(person)), done.err
    assert "rebuilding" not in done.err
    assert [path.stat().st_ino for path in files(person)] == before
    assert person.keys("tide3") == [FORMS["codex"].key(3)]
    person.sync()
    assert person.keys("w089999") == [FORMS["claude"].key(2)]
    assert [path.stat().st_ino for path in files(person)] == before


@pytest.mark.parametrize(
    ("error", "is_damage"),
    [
        (apsw.CorruptError, True), (apsw.NotADBError, True), (apsw.SQLError, True), (apsw.FullError, False),
        (apsw.IOError, False), (apsw.ReadOnlyError, False), (apsw.CantOpenError, False), (apsw.BusyError, False),
    ],
)  # fmt: skip
def test_only_wrong_content_is_damage(error: type[apsw.Error], is_damage: bool) -> None:  # noqa: FBT001 - a case
    assert isinstance(as_index_error(error("told"), "text-0.db"), IndexDamagedError) == is_damage


def test_a_damaged_archive_does_not_cost_the_index(person: Person) -> None:
    """A search reads both: which of them is damaged decides what is made again."""
    before = [path.stat().st_ino for path in files(person)]
    with sqlite3.connect(person.archive / "archive.db") as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'sessions'").fetchone()
    connection.close()
    scribble(person.archive / "archive.db", PAGE * (root - 1), PAGE)
    done = person.run("search", "tide1")
    assert done.code == 4
    assert str(person.archive / "archive.db") in done.err
    assert [path.stat().st_ino for path in files(person)] == before


# The archive -------------------------------------------------------------------------------------------------------


def digests(person: Person) -> dict[str, str]:
    names = ("archive.db", "archive.db-wal")
    found = [person.archive / name for name in names if (person.archive / name).exists()]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


@pytest.mark.parametrize(
    "harm", ["truncated", "cut within a page", "a head of garbage", "garbage in the middle", "all garbage", "of another program"]
)  # fmt: skip
@pytest.mark.parametrize(
    "command",
    [
        ["sync"],
        ["sync", "--reindex"],
        ["list"],
        ["show", "gemini"],
        ["search", "tide1"],
        ["name", "gemini", "x"],
        [],
    ],
    ids=" ".join,
)
def test_a_damaged_archive_is_refused_and_left_as_it_is(
    person: Person, command: list[str], harm: str
) -> None:
    archive = person.archive / "archive.db"
    HARMS[harm](archive)
    before = digests(person)
    done = person.run(*command)
    assert done.code == 4, done
    assert done.out == ""
    assert done.err.count("\n") == 1
    assert str(archive) in done.err
    assert "move it away" in done.err or "bring back a copy" in done.err
    assert digests(person)["archive.db"] == before["archive.db"]
    archive.rename(archive.with_name("damaged"))
    for path in person.archive.glob("archive.db-*"):
        path.unlink()
    assert person.run("sync").code == 0
    assert person.keys("tide1") == [FORMS["gemini-lines"].key(1)]


def test_a_chunk_that_is_damaged_is_told(person: Person) -> None:
    """One page in the middle of what was said: all else can still be shown."""
    archive = person.archive / "archive.db"
    data = archive.read_bytes()
    with sqlite3.connect(archive) as connection:
        (packed,) = connection.execute(
            "SELECT packed FROM chunks JOIN pieces ON chunk = chunks.id JOIN originals ON originals.id = original"
            " JOIN sources ON sources.id = source WHERE path LIKE '%codex%3.jsonl'"
        ).fetchone()
    connection.close()
    archive.write_bytes(data.replace(packed[-600:-500], bytes(100)))
    before = digests(person)
    done = person.run("show", FORMS["codex"].key(3))
    assert done.code == 4
    assert "damaged" in done.err
    assert "bring back a copy" in done.err
    assert person.run("show", FORMS["claude"].key(2)).code == 0
    assert digests(person) == before
    for path in person.sources():
        path.unlink()
    keys = person.rows().keys()
    for command in (["sync"], ["sync", "--reindex"]):
        person.run(*command)
        assert person.rows().keys() == keys


@pytest.mark.parametrize("command", [["sync"], ["list"], ["search", "tide1"], []], ids=" ".join)
def test_an_archive_of_a_later_version_is_refused(person: Person, command: list[str]) -> None:
    with sqlite3.connect(person.archive / "archive.db") as connection:
        connection.execute(f"PRAGMA user_version = {len(STEPS) + 1}")
    connection.close()
    before = digests(person)
    done = person.run(*command)
    assert (done.code, done.out) == (4, "")
    assert "later version" in done.err
    assert done.err.count("\n") == 1
    assert digests(person) == before


def test_an_archive_that_was_not_made_to_the_end_is_made(person: Person) -> None:
    """Killed between the file and its tables."""
    for path in list(person.files()):
        path.unlink()
    (person.archive / "archive.db").touch(0o600)
    assert person.run("list").code in (0, 1)
    person.sync()
    assert person.search("tide1")


@pytest.mark.parametrize("command", [["sync"], ["list"], [], ["search", "tide1"]], ids=" ".join)
def test_an_archive_that_was_emptied_is_told_and_begun_again(person: Person, command: list[str]) -> None:
    archive = person.archive / "archive.db"
    archive.write_bytes(b"")
    done = person.run(*command)
    assert done.code in (0, 1)
    told = f"retold: {archive} was empty: a new archive is begun, without what only the old one held"
    assert done.err.splitlines().count(told) == 1, done.err
    assert person.keys("tide1") == [FORMS["gemini-lines"].key(1)]
    assert "was empty" not in person.run("sync").err


@pytest.mark.parametrize("command", [["name", "gemini", "x"], ["forget", "gemini"], ["doctor"]], ids=" ".join)
def test_a_command_that_changes_little_begins_no_archive_in_an_empty_file(
    person: Person, command: list[str]
) -> None:
    archive = person.archive / "archive.db"
    archive.write_bytes(b"")
    done = person.run(*command)
    assert done.code in (1, 4)
    assert done.err or "the archive is empty" in done.out
    assert archive.read_bytes() == b""


@pytest.mark.parametrize(
    "command", [["sync"], ["sync", "--reindex"], ["list"], ["search", "tide1"], ["name", "gemini", "x"], ["doctor"]], ids=" ".join
)  # fmt: skip
def test_an_archive_of_which_only_the_log_of_changes_is_left_is_left_as_it_is(
    person: Person, command: list[str]
) -> None:
    """SQLite deletes the log of an empty database, and with it all that was written last."""
    archive, log = person.archive / "archive.db", person.archive / "archive.db-wal"
    archive.write_bytes(b"")
    log.write_bytes(b"changes" * 1000)
    done = person.run(*command)
    assert done.code == 4, done
    assert "holds changes of it" in done.err + " ".join(done.out.split())
    assert (archive.read_bytes(), log.read_bytes()) == (b"", b"changes" * 1000)
