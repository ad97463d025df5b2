"""Syncs that are disturbed: by Ctrl-C, by another sync, by readers, by a worker that dies, by a disk that is full."""

import os
import shutil
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import retold
from retold.sessions import load
from support.conversation_files import FORMS, claude_key, codex_key, dice, gemini_json, gemini_key, turns
from support.person import CommandResult, Person, archive_contents, is_root, table_differences

pytestmark = pytest.mark.slow

PAUSED = """
import os, time
import retold.synchronization.run, retold.synchronization.cluster
retold.synchronization.run.pool_size = lambda size: {workers}
read, count = retold.synchronization.cluster.JobRunner.run, []
def run(self, job):
    count.append(job)
    if len(count) == 2:
        open(os.environ["REACHED"], "w").close()
        {then}
    return read(self, job)
retold.synchronization.cluster.JobRunner.run = run
"""
BEHIND = """
import os, time
import retold.archive.index.writer
commit = retold.archive.index.writer.IndexWriter.commit
def late(self, *numbers):
    open(os.environ["REACHED"], "w").close()
    ends = time.monotonic() + 60
    while not os.path.exists(os.environ["GO"]) and time.monotonic() < ends:
        time.sleep(0.01)
    commit(self, *numbers)
retold.archive.index.writer.IndexWriter.commit = late
"""
WAIT = """ends = time.monotonic() + 60
        while not os.path.exists(os.environ["GO"]) and time.monotonic() < ends:
            time.sleep(0.01)"""
DIE = "os.kill(os.getpid(), 9)"
LITTLE_ROOM = """
import apsw
apsw.connection_hooks.append(lambda connection: connection.pragma("max_page_count", {pages}))
"""
CREW = """
import retold.synchronization.run
retold.synchronization.run.pool_size = lambda size: {workers}
"""
SMALL_FILES = """
import atexit, resource
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
atexit.register(resource.setrlimit, resource.RLIMIT_FSIZE, (soft, hard))  # coverage writes its file behind us
"""
MANY = 12


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path / "ann")
    fill(person, "tide")
    return person


def fill(person: Person, word: str) -> None:
    for number in range(MANY):
        form = list(FORMS.values())[number % len(FORMS)]
        form.write(person.folder, number, turns(*(f"{word}{place}" for place in range(number + 2))))
    person.age()


class Disturbed:
    """A sync that waits in the middle of its work."""

    def __init__(self, person: Person, workers: int, then: str = WAIT) -> None:
        self._go, reached = person.folder / "go", person.folder / "reached"
        env = {**person.env, "GO": str(self._go), "REACHED": str(reached)}
        self.process = person.start("sync", code=PAUSED.format(workers=workers, then=then), env=env)
        wait_for(reached.exists, self.process.poll)

    def ended(self) -> CommandResult:
        self._go.touch()
        out, err = self.process.communicate(timeout=60)
        return CommandResult(self.process.returncode, out, err)


def wait_for(is_so: Callable[[], object], has_ended: Callable[[], object]) -> None:
    ends = time.monotonic() + 60
    while not is_so():
        assert has_ended() is None
        assert time.monotonic() < ends
        time.sleep(0.01)


def missed(person: Person) -> dict[str, Any]:
    """Return how an archive differs from that of an undisturbed sync, after another sync."""
    person.sync()
    other = Person(person.folder, person.folder / "undisturbed")
    other.sync()
    found, expected = archive_contents(person.archive), archive_contents(other.archive)
    shutil.rmtree(other.archive)
    assert len(found["sessions"]) == MANY
    return table_differences(found, expected)


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_an_interrupted_sync_says_so_and_the_next_goes_on(person: Person, workers: int) -> None:
    disturbed = Disturbed(person, workers)
    os.killpg(disturbed.process.pid, signal.SIGINT)
    out, err = disturbed.process.communicate(timeout=60)
    assert (disturbed.process.returncode, out, err) == (130, "", "")
    assert not missed(person)


def test_workers_that_die_at_their_second_job_cost_nothing(person: Person) -> None:
    """Each dies once: its jobs are read by others, and what it had not committed to the index is read again."""
    done = Disturbed(person, 2, DIE).ended()
    assert (done.code, done.out) == (0, ""), done
    expected, again = Person(person.folder, person.folder / "undisturbed"), person.sync()
    expected.sync()
    assert again["read"] == 0
    found = archive_contents(person.archive)
    assert len(found["sessions"]) == MANY
    assert not table_differences(found, archive_contents(expected.archive))


def test_of_two_syncs_at_once_one_waits(person: Person) -> None:
    first = Disturbed(person, 2)
    second = person.start("sync")
    assert second.stderr is not None
    said = second.stderr.readline()
    assert "waiting" in said
    assert first.process.poll() is None
    assert first.ended().code == 0
    _, rest = second.communicate(timeout=60)
    assert second.returncode == 0
    assert rest.startswith(f"{MANY} files found: 0 read"), rest
    assert not missed(person)


def test_a_second_sync_gives_up_when_it_has_waited_long_enough(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Disturbed(person, 0)
    monkeypatch.setattr("retold.synchronization.update.Lock.__init__.__defaults__", (0.1,))
    done = person.run("sync")
    assert done.code == 4
    assert "try again later" in done.err
    assert first.ended().code == 0


# Readers -----------------------------------------------------------------------------------------------------------


def test_readers_see_what_was_or_what_is_and_nothing_else(person: Person) -> None:
    """Readers go on in a loop while syncs bring the second half of every conversation, again and again."""
    person.sync()
    before = {key: row["counts"]["messages"] for key, row in person.rows().items()}
    allowed: dict[str, set[int]] = {key: {count} for key, count in before.items()}
    errors: list[BaseException] = []
    is_done = threading.Event()

    def read() -> None:
        try:
            while not is_done.is_set():
                with retold.open(person.archive) as archive:
                    rows = {session.key: session.counts.messages for session in archive.sessions()}
                    assert rows.keys() >= before.keys()
                    assert all(count in allowed.get(key, {count}) for key, count in rows.items())
                    for key in before:
                        assert len(archive.session(key).timeline) in allowed[key]
                    found = list(archive.search("asked", limit=50))
                    assert {one.key for one in found} >= before.keys()
                    assert all(one.hits for one in archive.scan("answered", limit=50))
        except BaseException as error:  # noqa: BLE001 - told in the thread that waits
            errors.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(6):
        for key, count in before.items():
            allowed[key] |= {count * (2 + number), count * (1 + number)}
        for place in range(MANY):
            form, count = list(FORMS.values())[place % len(FORMS)], place + 2
            words = [f"tide{one}" for one in range(count)] * (2 + number)
            form.write(
                person.folder,
                place,
                turns(
                    *(f"{word} {turn // count}" if turn >= count else word for turn, word in enumerate(words))
                ),
            )
        done = person.spawn(
            "sync",
            code=PAUSED.format(workers=number % 3, then="pass"),
            env={**person.env, "REACHED": os.devnull, "GO": "/"},
        )
        assert done.code == 0, done
    is_done.set()
    for reader in readers:
        reader.join(60)
    assert not errors, errors[0]


def test_between_the_archive_and_its_index_everything_is_found(person: Person) -> None:
    """The archive is written, and its index not yet: what that leads to must still be there."""
    gemini_json(person.folder, 0, turns("low", "high"))
    person.sync()
    gemini_json(person.folder, 0, turns("low", "high", "slack"))
    go, reached = person.folder / "go", person.folder / "reached"
    process = person.start("sync", code=BEHIND, env={**person.env, "GO": str(go), "REACHED": str(reached)})
    wait_for(reached.exists, process.poll)
    assert len(person.show(gemini_key(0))["timeline"]) == 6
    (found,) = person.search("low")
    assert [hit["snippet"] for hit in found["hits"]] == ["asked low", "answered low"]
    assert [found["key"] for found in person.search("--substring", "d low")] == [gemini_key(0)]
    go.touch()
    assert process.communicate(timeout=60)[1].count("1 read")
    assert not missed(person)


def test_a_session_is_shown_whole_though_it_is_written_anew_meanwhile(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    gemini_json(person.folder, 0, turns("low", "high"))
    person.sync()
    before = person.show(gemini_key(0))
    read = load._read  # noqa: SLF001 - the moment between what is known of a session and its originals

    def read_later(*arguments: Any) -> Any:
        gemini_json(person.folder, 0, turns("low", "high", "slack"))
        assert person.spawn("sync").code == 0
        return read(*arguments)

    monkeypatch.setattr(load, "_read", read_later)
    assert person.show(gemini_key(0)) == before
    monkeypatch.undo()
    assert len(person.show(gemini_key(0))["timeline"]) == 6


def test_a_reader_does_not_take_what_is_new_for_what_it_has_seen(tmp_path: Path) -> None:
    person = Person(tmp_path / "bob")
    file = gemini_json(person.folder, 1, turns("secret"))
    person.sync()
    with retold.open(person.archive) as archive:
        assert archive.session(gemini_key(1)).first_prompt == "asked secret"
        person.spawn("forget", "-y", gemini_key(1))
        file.unlink()
        gemini_json(person.folder, 2, turns("harmless"))
        person.spawn("sync")
        assert archive.session(gemini_key(2)).first_prompt == "asked harmless"
        assert len(archive.session(gemini_key(2)).timeline) == 2
        gemini_json(person.folder, 2, turns("harmless", "still"))
        person.spawn("sync")
        assert len(archive.session(gemini_key(2)).timeline) == 4


# The machine -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("pages", [30, 70, 90], ids="{} pages".format)
@pytest.mark.parametrize("has_before", [False, True], ids=["at first", "later"])
def test_a_full_disk_is_told_and_costs_nothing(
    person: Person,
    workers: int,
    pages: int,
    has_before: bool,  # noqa: FBT001 - a case
) -> None:
    if has_before:
        person.sync("--agent", "codex")
    write_much(person)
    done = person.spawn("sync", code=(LITTLE_ROOM + CREW).format(pages=pages, workers=workers))
    assert done.code == 4, done
    assert done.err.startswith("retold: ")
    assert "full" in done.err
    assert done.err.count("\n") == 1
    if has_before:
        assert sorted(person.keys("tide4")) == [codex_key(3), codex_key(7), codex_key(11)]
    assert not missed(person)


def write_much(person: Person) -> None:
    chance = dice(1)
    for number in range(0, MANY, 4):
        said = turns(*(chance.randbytes(2000).hex() for _ in range(20)))
        gemini_json(person.folder, number, said)


def test_a_write_that_fails_is_told_and_costs_nothing(person: Person) -> None:
    write_much(person)
    done = person.spawn("sync", code=SMALL_FILES)
    assert done.code == 4, done
    assert done.err.startswith("retold: ")
    assert done.err.count("\n") == 1
    assert not missed(person)


@pytest.mark.skipif(is_root, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_told(person: Person) -> None:
    person.archive.mkdir(mode=0o500)
    done = person.run("sync")
    person.archive.chmod(0o700)
    assert done.code == 4
    assert str(person.archive) in done.err
    person.sync()
    for path in (person.archive, *person.archive.rglob("*")):
        path.chmod(0o500 if path.is_dir() else 0o400)
    for command in (["list"], ["search", "tide1"], ["sync"]):
        done = person.run(*command)
        assert done.code in (0, 4)
        assert done.code == 0 or (done.err.count("\n") == 1 and str(person.archive) in done.err)
    for path in (person.archive, *person.archive.rglob("*")):
        path.chmod(0o700)


def test_a_file_in_place_of_the_folder_is_told(person: Person) -> None:
    person.archive.write_text("not a folder")
    done = person.run("sync")
    assert done.code == 4
    assert str(person.archive) in done.err
    assert person.archive.read_text() == "not a folder"


# Permissions -------------------------------------------------------------------------------------------------------


def modes(person: Person) -> Iterator[tuple[str, bool, int]]:
    for path in (person.archive, *sorted(person.archive.rglob("*"))):
        status = path.stat()
        yield path.name, stat.S_ISDIR(status.st_mode), stat.S_IMODE(status.st_mode)


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_everything_is_its_owners_alone_whatever_the_umask(person: Person, umask: int) -> None:
    code = f"import os; os.umask({umask}); {PAUSED.format(workers=2, then=WAIT)}"
    go, reached = person.folder / "go", person.folder / "reached"
    env = {**person.env, "GO": str(go), "REACHED": str(reached)}
    process = person.start("sync", code=code, env=env)
    wait_for(reached.exists, process.poll)
    while_open = list(modes(person))
    go.touch()
    process.communicate(timeout=60)
    assert process.returncode == 0
    person.run("name", claude_key(2), "a title of mine")
    person.run("sync", "--home", f"other={person.folder}")
    person.run("forget", "-y", claude_key(2))
    names = {name for name, _, _ in while_open}
    assert {"archive.db", "archive.db-wal", "archive.db-shm"} <= names
    assert {"text-0.db-wal", "text-1.db-wal"} & names
    for name, is_folder, mode in (*while_open, *modes(person)):
        assert mode == (0o700 if is_folder else 0o600), name
    assert (person.archive / "config.toml").exists()
