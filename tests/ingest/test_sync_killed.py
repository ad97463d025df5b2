"""Syncs that end before their time: killed, interrupted, without room, or with another one beside them."""

import json
import os
import shutil
import signal
import time
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from support.conversation_files import FORMS, Turn, as_lines, claude_records, dice, turns, uuid, write_file
from support.person import Person, Row, archive_contents, table_differences

TWO_WORKERS = """
import retold.ingest.sync
assert retold.ingest.sync.crew_size
retold.ingest.sync.crew_size = lambda size: 2
"""
SPAWNED = f"""{TWO_WORKERS}
import retold.processes
retold.processes.can_fork = lambda: False
"""
"""As on macOS and Windows: a worker starts from nothing, and gets what it needs through a pipe."""
WORDS = [
    f"{first}{last}"
    for first in ("brack", "salt", "moor", "tide", "fen")
    for last in ("water", "gate", "reed")
]


def talk(chance: Random, count: int) -> list[Turn]:
    """Return turns of made-up words, of which some give back a lot."""

    def text(size: int) -> str:
        return " ".join(chance.choices(WORDS, k=size))

    return [Turn(text(12), text(chance.choice([10, 40, 4000])), text(30)) for _ in range(count)]


def fill(home: Path, count: int) -> None:
    """Write sessions of all agents into a home: forks of others, and prompts of which nothing else is left, too."""
    for number in range(count):
        chance = dice(number)
        said = talk(chance, chance.choice([2, 5, 12]))
        form = list(FORMS.values())[number % len(FORMS)]
        form.write(home, number, [Turn(f"{said[0].prompt} rare{number}", *said[0][1:]), *said[1:]])
    for number in range(3):
        first, later = (
            claude_records(number + 900, turns("branching")),
            claude_records(number + 900, turns("on"), 1),
        )
        folder = home / ".claude/projects/-home-ann-dev-almanac"
        write_file(folder / f"{uuid(number + 900)}.jsonl", as_lines(first))
        fork = [{**record, "sessionId": uuid(number + 950)} for record in (*first, *later)]
        write_file(folder / f"{uuid(number + 950)}.jsonl", as_lines(fork))
    lost = [
        {"sessionId": uuid(0xDD000 + number), "messageId": 0, "type": "user", "message": f"lost{number} prompt",
         "timestamp": "2026-02-01T09:00:00.000Z"}
        for number in range(count // 4)
    ]  # fmt: skip
    write_file(home / ".gemini/tmp/almanac/logs.json", json.dumps(lost))


class Arena(NamedTuple):
    """A home that has grown: what it comes to, and the archive of what it was before."""

    home: Path
    before: Path
    expected: dict[bool, dict[str, list[Row]]]
    seconds: dict[bool, float]
    """By whether the archive began with what the home was before."""


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Arena:
    folder = tmp_path_factory.mktemp("arena")
    home, before = folder / "ann", folder / "before"
    first = Person(home, before)
    fill(home, 40)
    first.age()
    first.sync()
    fill(home, 60)
    for number in range(4):  # of each form one goes on, and one is written anew
        form = list(FORMS.values())[number]
        form.write(home, number, [*talk(dice(number), 12), *turns(f"grown{number}")])
        form.write(home, number + 4, turns(f"anew{number}"))
    first.age()
    expected, seconds = {}, {}
    for has_before in (False, True):
        person = begun(home, before, folder / f"undisturbed {has_before}", has_before=has_before)
        began = time.monotonic()
        assert person.spawn("sync", code=TWO_WORKERS).code == 0
        seconds[has_before] = time.monotonic() - began
        expected[has_before] = archive_contents(person.archive)
    return Arena(home, before, expected, seconds)


def begun(home: Path, before: Path, archive: Path, *, has_before: bool) -> Person:
    if has_before:
        shutil.copytree(before, archive)
    return Person(home, archive)


@pytest.mark.parametrize("number", range(50))
def test_a_sync_that_was_killed_leaves_nothing_that_the_next_does_not_mend(
    arena: Arena, tmp_path: Path, number: int
) -> None:
    has_before = number % 2 == 1
    person = begun(arena.home, arena.before, tmp_path / "retold", has_before=has_before)
    chance = dice(number)
    killed = person.start("sync", code=TWO_WORKERS if number % 4 < 2 else "")
    time.sleep(chance.uniform(0.2, 1.0) * arena.seconds[has_before])
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    if (person.archive / "archive.db").exists():
        assert person.run("list", "--json").code in (0, 1)
    assert person.run("sync").code == 0
    differing = table_differences(archive_contents(person.archive), arena.expected[has_before])
    assert not differing
    assert person.sync()["read"] == 0


def test_workers_that_start_from_nothing_come_to_the_same(arena: Arena, tmp_path: Path) -> None:
    person, alone = Person(arena.home, tmp_path / "spawned"), Person(arena.home, tmp_path / "alone")
    done = person.spawn("sync", code=SPAWNED)
    assert done.code == 0, done
    alone.sync()
    assert not table_differences(archive_contents(person.archive), archive_contents(alone.archive))


def test_two_workers_tell_each_session_once(arena: Arena, tmp_path: Path) -> None:
    """Whichever of them had it before: what changed is read by the one that is free."""
    person = begun(arena.home, arena.before, tmp_path / "retold", has_before=True)
    for _ in range(2):
        person.age()
        assert person.spawn("sync", code=TWO_WORKERS).code == 0
    told = [row for row in archive_contents(person.archive)["index"] if row[2] is None]
    assert len({row[:2] for row in told}) == len(told)
    alone = Person(arena.home, tmp_path / "alone")
    alone.sync()
    earlier = {row[0] for row in told} - {row[0] for row in archive_contents(alone.archive)["index"]}
    assert not earlier
