"""Workers, forked or not, come to the same as one process, and write each session once."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from retold.archive.index.writer import IndexEntry
from retold.archive.queries.lookups import load_stamps
from retold.archive.store import Store
from retold.synchronization.run import IndexFiles
from support.conversation_files import FORMS, dice, turns
from support.many_sessions import queries, write_talks
from support.mixed_home import fill, talk
from support.person import Person, archive_contents, table_differences

TWO_WORKERS = """
import retold.synchronization.run
assert retold.synchronization.run.pool_size
retold.synchronization.run.pool_size = lambda size: 2
"""
SPAWNED = f"""{TWO_WORKERS}
import retold.processes
retold.processes.can_fork = lambda: False
"""
"""As on macOS and Windows: a worker starts from nothing, and gets what it needs through a pipe."""


class Arena(NamedTuple):
    """A home that has grown, and the archive of what it was before."""

    home: Path
    before: Path


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Arena:
    folder = tmp_path_factory.mktemp("arena")
    home, before = folder / "ann", folder / "before"
    first = Person(home, before)
    fill(home, 40)
    first.age()
    first.sync()
    fill(home, 60)
    for number in range(4):  # of each form one session goes on, and one is rewritten
        form = list(FORMS.values())[number]
        form.write(home, number, [*talk(dice(number), 12), *turns(f"grown{number}")])
        form.write(home, number + 4, turns(f"rewritten{number}"))
    first.age()
    return Arena(home, before)


def test_workers_that_start_from_nothing_come_to_the_same(arena: Arena, tmp_path: Path) -> None:
    person, alone = Person(arena.home, tmp_path / "spawned"), Person(arena.home, tmp_path / "alone")
    done = person.spawn("sync", code=SPAWNED)
    assert done.code == 0, done
    alone.sync()
    assert not table_differences(archive_contents(person.archive), archive_contents(alone.archive))


def test_searches_answer_the_same_whatever_the_number_of_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids in the index, and which file has a session, depend on the number of workers and on which of them is free."""
    write_talks(tmp_path / "ann", 400)
    answers = {}
    for workers in (0, 1, 2):
        person = Person(tmp_path / "ann", tmp_path / f"retold-{workers}")
        monkeypatch.setattr("retold.synchronization.run.pool_size", lambda _, workers=workers: workers)
        person.sync()
        answers[workers] = {
            one.typed: person.run("search", "--json", "--", one.typed) for one in queries(200)
        }
    for typed, expected in answers[0].items():
        assert answers[1][typed] == answers[2][typed] == expected, typed


def test_two_workers_tell_each_session_once(arena: Arena, tmp_path: Path) -> None:
    """Whichever of them had it before: what changed is read by the one that is free."""
    person = Person(arena.home, shutil.copytree(arena.before, tmp_path / "retold"))
    for _ in range(2):
        person.age()
        assert person.spawn("sync", code=TWO_WORKERS).code == 0
    told = [row for row in archive_contents(person.archive)["index"] if row[2] is None]
    assert len({row[:2] for row in told}) == len(told)
    alone = Person(arena.home, tmp_path / "alone")
    alone.sync()
    earlier = {row[0] for row in told} - {row[0] for row in archive_contents(alone.archive)["index"]}
    assert not earlier


def test_a_session_that_both_files_of_the_index_have_stays_in_one(tmp_path: Path) -> None:
    """A worker that dies may have written its sessions already, and another writes them again."""
    person = Person(tmp_path / "ann")
    for number, form in enumerate(FORMS.values()):
        form.write(person.folder, number, turns("tide"))
    person.sync()
    with Store(str(person.archive)) as record:
        stamps, index = load_stamps(record), IndexFiles(record)
        for shard in index.shards:
            shard.begin()
            for uid, stamp in stamps.items():
                shard.put(IndexEntry(uid, stamp, (), is_placeholder=True))
            shard.commit()
        assert index.remove_stale(stamps) == stamps.keys()
        assert sorted(uid for shard in index.shards for uid in shard.stamps()) == sorted(stamps)
        index.close()
