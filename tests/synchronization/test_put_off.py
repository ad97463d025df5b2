"""A cluster whose reader runs out of memory, dies or does not end is put off; everything else is archived."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from retold.archive.store import Store
from retold.synchronization.workers import TimeLimit, TooSlow
from support.conversation_files import FORMS, turns
from support.person import Person, archive_contents, table_differences

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="patched readers reach forked workers only")
COUNT, BAD = 16, 6
POISONED = """
import os, time
import retold.synchronization.run
from retold.agents.registry import AGENTS
def fail():
    {then}
for agent in AGENTS.values():
    def read(source, *more, whole=agent.read):
        if str(source.path) == os.environ["POISONED"]:
            with open(os.environ["TRIES"], "a") as tries:
                tries.write("x")
            fail()
        return whole(source, *more)
    agent.read = read
retold.synchronization.run.pool_size = lambda size: {workers}
retold.synchronization.run.time_budget = lambda size: 1.5 if size > 100_000 else 600.0
"""
"""Readers that fail on one file, which is the only large one; only this file has to be read in a short time."""
THEN = {
    "memory": "raise MemoryError",
    "exit": "os._exit(7)",
    "kill": "os.kill(os.getpid(), 9)",
    "loop": "ends = time.monotonic() + 100\n    while time.monotonic() < ends: pass",
}
CODES = {
    "memory": "reader-failed",
    "exit": "reader-failed",
    "kill": "reader-failed",
    "loop": "reader-timeout",
}
WAYS = [(then, workers) for then in THEN for workers in (0, 1, 2) if workers or then in ("memory", "loop")]


def form(number: int) -> Any:
    return list(FORMS.values())[number % len(FORMS)]


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path / "ann")
    for number in range(COUNT):
        said = turns(f"word{number}", *["much"] * (300 if number == BAD else 1))
        form(number).write(person.folder, number, said)
    person.age()
    return person


def poisoned_file(person: Person) -> Path:
    return max(person.sources(), key=lambda path: path.stat().st_size)


def sync(person: Person, then: str, workers: int, *arguments: str) -> tuple[Any, int]:
    """Sync with poisoned readers; return what came of it, and how often the poisoned file was read."""
    tries = person.folder / "tries"
    tries.write_text("")
    env = {**person.env, "POISONED": str(poisoned_file(person)), "TRIES": str(tries)}
    code = POISONED.format(then=THEN[then], workers=workers)
    done = person.spawn("sync", "--json", *arguments, code=code, env=env)
    return done, len(tries.read_text())


def kept(person: Person, file: Path) -> bytes:
    with Store(str(person.archive)) as record:
        asked = "SELECT originals.id FROM originals JOIN sources ON sources.id = source WHERE path = ?"
        (number,) = next(record.rows(asked, (str(file),)))
        return record.originals.read(number)


@pytest.mark.parametrize(("then", "workers"), WAYS)
def test_a_cluster_that_cannot_be_read_is_put_off_and_costs_no_other(
    person: Person, then: str, workers: int
) -> None:
    done, tries = sync(person, then, workers)
    assert done.code == 0, done
    assert tries == (2 if then in ("exit", "kill") else 1)
    assert CODES[then] in done.err
    assert str(poisoned_file(person)) in done.err
    assert done.objects[0]["problems"] == 1
    others = {form(number).key(number) for number in range(COUNT) if number != BAD}
    assert person.rows().keys() == others
    for number in set(range(COUNT)) - {BAD}:
        assert person.keys(f"word{number}") == [form(number).key(number)]
    assert kept(person, poisoned_file(person)) == poisoned_file(person).read_bytes()
    # The next sync does not try it again; one that makes the index again does.
    again, tries = sync(person, then, workers)
    assert (again.code, tries, again.objects[0]["read"], again.objects[0]["problems"]) == (0, 0, 0, 1)
    if then == "memory":
        assert sync(person, then, workers, "--reindex")[1] == 1
    # A reader that does not fail leaves what it would have left at once.
    assert person.run("sync", "--reindex").code == 0
    other = Person(person.folder, person.folder / "undisturbed")
    other.sync()
    assert not table_differences(archive_contents(person.archive), archive_contents(other.archive))


def test_a_session_that_was_read_stays_when_its_reader_dies(person: Person) -> None:
    person.sync()
    before = person.rows()[form(BAD).key(BAD)]
    form(BAD).write(person.folder, BAD, turns(f"word{BAD}", *["much"] * 400))
    for number in range(BAD):  # so many that workers read them
        form(number).write(person.folder, number, turns(f"word{number}", "more"))
    done, tries = sync(person, "kill", 2)
    assert (done.code, tries) == (0, 2), done
    assert person.rows()[form(BAD).key(BAD)] == before
    assert {form(number).key(number) for number in range(BAD)} <= {*person.keys("more", "-n", "100")}
    file = poisoned_file(person)
    assert kept(person, file) == file.read_bytes()


SLOW_TO_KEEP = """
from retold.synchronization.cluster import ClusterReader
whole, calls = ClusterReader.file_states, []
def file_states(self):
    calls.extend([1] if os.environ["POISONED"] in self.paths else [])
    ends = time.monotonic() + (100 if os.environ["POISONED"] in self.paths and len(calls) < 3 else 0)
    while time.monotonic() < ends: pass
    return whole(self)
ClusterReader.file_states = file_states
"""
"""What is still done for a file that is put off takes too long, too, as on a disk that hangs for a while."""


def test_a_cluster_is_put_off_whose_files_are_slow_to_keep(person: Person) -> None:
    file, tries = poisoned_file(person), person.folder / "tries"
    code = POISONED.format(then=THEN["loop"], workers=0) + SLOW_TO_KEEP
    env = {**person.env, "POISONED": str(file), "TRIES": str(tries)}
    done = person.spawn("sync", "--json", code=code, env=env)
    assert done.code == 0, done
    assert (done.objects[0]["problems"], "reader-timeout" in done.err) == (1, True), done
    assert person.rows().keys() == {form(number).key(number) for number in range(COUNT) if number != BAD}
    assert kept(person, file) == file.read_bytes()


def work_on(watch: TimeLimit, seconds: float) -> None:
    with watch.limit(seconds):
        while True:
            os.getpid()


def test_work_that_takes_too_long_is_ended_and_nothing_behind_it() -> None:
    with TimeLimit() as watch:
        with pytest.raises(TooSlow):
            work_on(watch, 0.01)
        for _ in range(1000):
            with watch.limit(60):
                os.getpid()
