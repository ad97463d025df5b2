"""A `retold forget` that ends before its time: the next sync or forget leaves no word of what was to be forgotten."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import retold
from support.conversation_files import FORMS, turns
from support.person import Person
from support.traces import traces

WORD, OTHER = "xyloidal", "otherwise"
FORM = FORMS["claude"]
KEY, OTHER_KEY = FORM.key(1), FORM.key(2)
LONG = """
import retold.sessions.conversations
retold.sessions.conversations.LONG_SESSION = 0
"""
"""Let the index keep every session as it does long ones."""
TRACED = """
import apsw, os, signal
statements = []
def traced(cursor, sql, bindings):
    statements.append(sql)
    if len(statements) == {at}:
        os.kill(os.getpid(), signal.SIGKILL)
    return True
apsw.connection_hooks.append(lambda connection: setattr(connection, "exec_trace", traced))
"""
SAVED = """
import atexit
atexit.register(lambda: open(os.environ["STATEMENTS"], "w").write("\\0".join(statements)))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Person:
    """Two sessions, of which one is to be forgotten; the words of both are in the archive and in the index."""
    person = Person(tmp_path_factory.mktemp("made") / "ann")
    FORM.write(
        person.folder,
        1,
        turns(f"camelCase{WORD.title()} and {WORD}", *(f"filler {place}" for place in range(30))),
    )
    FORM.write(person.folder, 2, turns(OTHER))
    person.age()
    assert person.spawn("sync", code=LONG).code == 0
    assert {name.partition(",")[0] for name in traces(person, WORD)} >= {"archive.db", "text-0.db"}
    return person


@pytest.fixture(scope="module")
def steps(made: Person, tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """The statements of a forget at which it is killed: all that write or end something, from the erasing on."""
    folder = tmp_path_factory.mktemp("steps")
    shutil.copytree(made.archive, folder / "retold")
    person = Person(made.folder, folder / "retold")
    env = {**person.env, "STATEMENTS": str(folder / "statements")}
    assert person.spawn("forget", "-y", KEY, code=TRACED.format(at=-1) + SAVED, env=env).code == 0
    statements = (folder / "statements").read_text().split("\0")
    starts = (
        "BEGIN",
        "COMMIT",
        "VACUUM",
        "PRAGMA wal",
        "PRAGMA secure",
        "INSERT",
        "DELETE FROM facts",
        "DELETE FROM entries",
    )
    found = [place for place, sql in enumerate(statements, 1) if sql.startswith(starts)]
    assert len(found) > 10
    return found


def copies(made: Person, folder: Path, places: list[int]) -> Iterator[Person]:
    """Yield a copy of a person's archive after a forget that was killed at each statement."""
    for place in places:
        archive = folder / f"retold {place}"
        shutil.copytree(made.archive, archive)
        person = Person(made.folder, archive)
        assert person.spawn("forget", "-y", KEY, code=TRACED.format(at=place)).code == -9
        yield person


def test_the_next_sync_finishes_it(made: Person, steps: list[int], tmp_path: Path) -> None:
    forgotten = 0
    for person in copies(made, tmp_path, steps):
        done = person.run("sync")
        assert (done.code, "rebuilding" in done.err) == (0, False), done
        is_there = KEY in person.rows()  # it was killed before anything was changed
        assert is_there or [*traces(person, WORD)] == [], person.archive
        assert not is_there or person.keys(WORD) == [KEY]
        assert person.keys(OTHER) == [OTHER_KEY]
        forgotten += not is_there
    assert 5 < forgotten < len(steps)


def test_the_next_forget_finishes_it(made: Person, steps: list[int], tmp_path: Path) -> None:
    for person in copies(made, tmp_path, steps[::3]):
        done = person.run("forget", "-y", KEY)
        assert done.code in (0, 1), done
        assert [*traces(person, WORD)] == [], person.archive
        assert person.keys(OTHER) == [OTHER_KEY]
        assert KEY not in person.rows()


def test_a_reader_may_keep_words_in_the_log_until_the_next_sync(made: Person, tmp_path: Path) -> None:
    """Somebody reads the archive as it was, and will not let go."""
    shutil.copytree(made.archive, tmp_path / "retold")
    person = Person(made.folder, tmp_path / "retold")
    with retold.open(person.archive) as archive:
        archive._store.begin_snapshot()  # noqa: SLF001 - a reader in the middle of its work
        impatient = "import retold.archive.database\nretold.archive.database.BUSY_TIMEOUT_MS = 100\n"
        done = person.spawn("forget", "-y", KEY, code=impatient)
        assert done.code == 0, done
        assert "the next sync removes them" in done.err
    person.sync()
    assert [*traces(person, WORD)] == []
