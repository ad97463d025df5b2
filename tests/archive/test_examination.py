"""Damage anywhere in the archive: the examination finds it, names the session, and no command calls it a bug."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from retold.archive.examination import examine, find_damage
from retold.archive.store import Store, compress, decompress
from support.conversation_files import FORMS, dice, turns
from support.person import CommandResult, Person

pytestmark = pytest.mark.slow

COUNT = 12
PAGE = 4096
SEEDS = range(16)


def form_of(number: int) -> tuple[str, str]:
    """Return the key of a session and a word that only this session holds."""
    return list(FORMS.values())[number % len(FORMS)].key(number), f"tide{number}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Person:
    """Somebody whose archive has many pages of every kind."""
    person = Person(tmp_path_factory.mktemp("made") / "ann")
    chance = dice(1)
    for number in range(COUNT):
        form = list(FORMS.values())[number % len(FORMS)]
        form.write(
            person.folder, number, turns(f"tide{number}", *(chance.randbytes(2000).hex() for _ in range(6)))
        )
    person.age()
    person.sync()
    return person


@pytest.fixture
def person(made: Person, tmp_path: Path) -> Person:
    shutil.copytree(made.archive, tmp_path / "retold")
    return Person(made.folder, tmp_path / "retold")


def change(person: Person, statement: str, *values: object) -> None:
    connection = apsw.Connection(str(person.archive / "archive.db"))
    connection.execute(statement, values)
    connection.close()


def chunk_of(person: Person, number: int) -> int:
    with Store(str(person.archive)) as record:
        asked = (
            "SELECT chunk FROM pieces JOIN originals ON originals.id = original JOIN session_sources USING (source)"
            " JOIN sessions ON sessions.id = session WHERE key = ?"
        )
        return int(next(record.rows(asked, (form_of(number)[0],)))[0])


def flip(person: Person, chunk: int) -> None:
    with Store(str(person.archive), can_write=True) as record:
        (packed,) = next(record.rows("SELECT packed FROM chunks WHERE id = ?", (chunk,)))
        flipped = bytearray(packed)
        flipped[len(flipped) // 2] ^= 1
        record.connection.execute("UPDATE chunks SET packed = ? WHERE id = ?", (bytes(flipped), chunk))


def faults(person: Person, *options: str) -> dict[str | None, str]:
    """Return what the doctor says of the archive, by session; damage is exit code 4, and nothing is changed."""
    before = digest(person)
    done = person.run("doctor", "--json", *options)
    found: dict[str | None, str] = {}
    for one in done.objects:
        if one["finding"].startswith("archive-"):
            found[one["session"]] = "\n".join([*filter(None, [found.get(one["session"])]), one["text"]])
    assert done.code == (4 if found else 0), done
    assert done.err == ""
    assert digest(person) == before
    return found


def digest(person: Person) -> str:
    return hashlib.sha256((person.archive / "archive.db").read_bytes()).hexdigest()


def test_a_whole_archive_has_no_faults(person: Person) -> None:
    assert faults(person) == faults(person, "--full") == {}
    assert find_damage(str(person.archive)) is None


def put_other(person: Person, chunk: int) -> None:
    """Replace a chunk by one that unpacks, without an error, to as many other bytes."""
    with Store(str(person.archive), can_write=True) as record:
        (packed,) = next(record.rows("SELECT packed FROM chunks WHERE id = ?", (chunk,)))
        other = compress(decompress(bytes(packed)).swapcase())
        record.connection.execute("UPDATE chunks SET packed = ? WHERE id = ?", (other, chunk))


def test_a_chunk_that_holds_something_else_is_told(person: Person) -> None:
    chunk = chunk_of(person, 5)
    put_other(person, chunk)
    for options in ((), ("--full",)):
        found = faults(person, *options)
        assert [*found] == [form_of(5)[0]]
        assert f"chunk {chunk} is damaged" in found[form_of(5)[0]]


HARMS: dict[str, Callable[[Person, int], object]] = {
    "chunk {} is damaged": flip,
    "a chunk is missing": lambda person, chunk: change(person, "DELETE FROM chunks WHERE id = ?", chunk),
    "the sizes of the chunks do not add up": lambda person, chunk: change(
        person,
        "UPDATE originals SET size = size + 1 WHERE id = (SELECT original FROM pieces WHERE chunk = ?)",
        chunk,
    ),
}


@pytest.mark.parametrize("text", HARMS)
def test_a_damaged_original_is_told_with_its_session_and_what_is_left(person: Person, text: str) -> None:
    key, word = form_of(5)
    chunk = chunk_of(person, 5)
    HARMS[text](person, chunk)
    found = faults(person)
    assert list(found) == [key]
    assert text.format(chunk) in found[key]
    assert found[key].endswith("still there: its rows and the words in the index, the agent's own file")
    assert key in person.rows()
    assert person.run("search", word).code in (0, 4)


LOST_ROWS = {
    "the row of a session is missing": "DELETE FROM sessions WHERE key = ?",
    "the rows of its files are missing": "DELETE FROM session_sources WHERE session = (SELECT id FROM sessions WHERE key = ?)",
}


@pytest.mark.parametrize("text", LOST_ROWS)
def test_a_session_of_which_rows_are_missing_is_told(person: Person, text: str) -> None:
    key, _ = form_of(5)
    change(person, LOST_ROWS[text], key)
    found = faults(person)
    assert list(found) == [key]
    assert text in found[key]


def test_messages_that_are_missing_are_told_by_a_full_examination(person: Person) -> None:
    key, _ = form_of(5)
    change(
        person,
        "DELETE FROM messages WHERE seq = 1 AND session = (SELECT id FROM sessions WHERE key = ?)",
        key,
    )
    assert faults(person) == {}
    found = faults(person, "--full")
    assert list(found) == [key]
    assert "rows of its messages are missing" in found[key]


def test_a_kept_file_whose_row_is_missing_is_told(person: Person) -> None:
    change(
        person,
        "DELETE FROM originals WHERE id = (SELECT original FROM pieces WHERE chunk = ?)",
        chunk_of(person, 5),
    )
    (text,) = faults(person).values()
    assert "rows of kept files are missing: 1" in text


def test_other_originals_of_the_session_are_counted(person: Person) -> None:
    key, _ = form_of(5)
    change(
        person,
        "INSERT INTO sources SELECT 99, agent, home, folder, label, '/gone.jsonl', cluster, 0, 0, 0, 0, x'', 0, 0, NULL, identity"
        " FROM sources WHERE id = (SELECT source FROM session_sources JOIN sessions ON id = session WHERE key = ?)",
        key,
    )
    change(person, "INSERT INTO originals VALUES (99, 99, 99, 1, 0, 0, x'')")
    change(person, "INSERT INTO session_sources SELECT id, 99 FROM sessions WHERE key = ?", key)
    flip(person, chunk_of(person, 5))
    assert "1 other original file, the agent's own file" in faults(person)[key]


def test_a_damaged_summary_is_told_with_its_session_and_a_sync_writes_it_again(person: Person) -> None:
    key, _ = form_of(4)
    change(
        person,
        "UPDATE summaries SET packed = zeroblob(9) WHERE session = (SELECT id FROM sessions WHERE key = ?)",
        key,
    )
    assert faults(person) == {key: f"{key}: the summary cannot be read; its original files are still there"}
    done = person.run("list", "--json")
    assert done.code == 4
    assert "retold sync --reindex" in done.err
    assert person.run("sync", "--reindex").code == 0
    assert faults(person) == {}
    assert len(person.rows()) == COUNT


ROWS = {
    "the row and the summary differ": "UPDATE sessions SET ended_at = '2026-03-01T09:99:00Z' WHERE key = ?",
    "a value in sessions.usage is no JSON object": "UPDATE sessions SET usage = '{x' WHERE key = ?",
    "a value in sessions.messages is no INTEGER": "UPDATE sessions SET messages = 'many' WHERE key = ?",
    "a text in sessions.read_title is not UTF-8": "UPDATE sessions SET read_title = CAST(x'e1ff' AS TEXT) WHERE key = ?",
}


@pytest.mark.parametrize("text", ROWS)
def test_a_damaged_value_is_told_with_its_session(person: Person, text: str) -> None:
    key, _ = form_of(6)
    change(person, ROWS[text], key)
    assert text in faults(person)[key]


def test_a_full_examination_reads_the_rows_of_messages_too(person: Person) -> None:
    key, _ = form_of(6)
    change(
        person,
        "UPDATE messages SET role = CAST(x'e1ff' AS TEXT) WHERE seq = 1 AND session = (SELECT id FROM sessions WHERE key = ?)",
        key,
    )
    assert "a text in messages.role is not UTF-8" in faults(person, "--full")[key]


@pytest.mark.parametrize("table", ["messages", "chunks", "summaries", "sources"])
def test_a_missing_table_is_damage_and_no_bug(person: Person, table: str) -> None:
    change(person, f"DROP TABLE {table}")
    assert f"{table} is missing" in " ".join(faults(person).values())
    for done in run_all(person, 0):
        assert done.code in (0, 1, 4), done
    done = person.run("sql", "SELECT * FROM messages, sessions")
    assert (done.code, "damaged" in done.err) == (
        (0, False) if table in ("chunks", "sources") else (4, True)
    ), done


# A part of the chunks each day -------------------------------------------------------------------------------------


@pytest.mark.parametrize("pace", [1, 7])
def test_looks_on_different_days_examine_every_chunk(person: Person, pace: int) -> None:
    """Whether somebody looks every day or every week, and however many parts there are."""
    for number in range(COUNT):
        flip(person, chunk_of(person, number))
    keys = {form_of(number)[0] for number in range(COUNT)}
    with Store(str(person.archive)) as record:
        (size,) = next(record.rows("SELECT sum(length(packed)) FROM chunks"))
        for parts in range(2, 15):
            most = -(-size // parts)
            looks = [
                [fault.session for fault in examine(record, day=pace * day, most=most)]
                for day in range(parts + 2)
            ]
            assert {key for look in looks for key in look} == keys
            assert all(len(look) < len(keys) for look in looks)  # none of them unpacked everything
        assert {fault.session for fault in examine(record, is_full=True, most=1)} == keys


# Random damage -----------------------------------------------------------------------------------------------------


def harm(path: Path, seed: int) -> None:
    """Flip one bit, flip many bits, fill a page with zeros, or cut the file."""
    chance, data = dice(seed), bytearray(path.read_bytes())
    match seed % 4:
        case 0 | 1 as many:
            for _ in range(40 if many else 1):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        case 2:
            start = PAGE * chance.randrange(len(data) // PAGE)
            data[start : start + PAGE] = bytes(PAGE)
        case _:
            del data[chance.randrange(1, len(data)) :]
    path.write_bytes(data)


def run_all(person: Person, number: int) -> list[CommandResult]:
    """Run every command that reads the archive, then a sync, on the same damage."""
    key, word = form_of(number % COUNT)
    archive = person.archive / "archive.db"
    damaged = archive.read_bytes()
    commands = [
        ["list"], ["list", "--json"], ["show", key], ["search", word], ["search", "--substring", word], ["stats"],
        ["export", key, "--format", "json", "-o", str(person.archive.parent / "out.json")], ["sql", "SELECT * FROM sessions"],
        ["sql", "SELECT max(happened_at), max(role) FROM messages"], ["doctor"], ["doctor", "--full"], ["sync"], ["sync", "--reindex"],
    ]  # fmt: skip
    done = []
    for command in commands:
        done.append(person.run(*command))
        archive.write_bytes(damaged)
        for path in person.archive.glob("archive.db-*"):
            path.unlink(missing_ok=True)  # SQLite may remove it, too
    return done


@pytest.mark.parametrize("seed", SEEDS)
def test_random_damage_is_never_called_a_bug(person: Person, seed: int) -> None:
    harm(person.archive / "archive.db", seed)
    for done in run_all(person, seed):
        assert done.code in (0, 1, 4), done
        assert done.code != 4 or done.err.startswith("retold: ") or "archive" in done.out
        assert "a bug" not in done.err
