"""Commands that are killed at any point of their work: the next run ends it, and no process or lock is left."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.conversation_files import FORMS, claude_key, dice, turns
from support.mixed_home import fill, talk
from support.person import Person, archive_contents, table_differences

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")]
POINTS = """
import apsw, os, signal, sys
import retold.synchronization.run
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` ignores it for all children
retold.synchronization.run.pool_size = lambda size: 2
owner, role, number = os.getpid(), os.environ["ROLE"], int(os.environ["NUMBER"])
state = {"seen": 0, "busy": False}
def reach(*_):
    if state["busy"] or role != ("parent" if os.getpid() == owner else "worker"):
        return
    state["busy"] = True
    state["seen"] += 1
    if not number:
        with open(os.environ["POINTS"], "a") as points:
            points.write("x")
    elif state["seen"] == number:
        try:
            descriptor = os.open(os.environ["POINTS"], os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            pass
        else:
            os.write(descriptor, b"%d\\n" % os.getpid())
            signal.pause()
    state["busy"] = False
def hear(event, arguments):
    is_write = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if is_write or event in ("os.rename", "os.mkdir", "os.remove", "os.link"):
        reach()
sys.addaudithook(hear)
apsw.connection_hooks.append(lambda connection: connection.set_update_hook(reach))
"""
"""Counts rows that are written and files that are changed; at a given one, a process says who it is and waits."""
SIGNALS = (signal.SIGTERM, signal.SIGKILL, signal.SIGHUP)
PATIENCE = 60.0
COUNT = 12


class World(NamedTuple):
    """Homes and archives from which commands start."""

    folder: Path
    home: Path
    """A home that has grown since it was archived."""
    before: Path
    """The archive of what it was before."""
    now: Path
    """The archive of what it is."""
    other: Path
    """The archive of another person."""


class Place(NamedTuple):
    """Where one command works, with an archive of its own."""

    person: Person
    results: Path


class Work(NamedTuple):
    """A command, the archive it starts from, and what it leaves."""

    start: Callable[[World], Path | None]
    arguments: Callable[[World, Place], list[str]]
    result: Callable[[Place], Mapping[str, Any]]

    @property
    def has_workers(self) -> bool:
        """Whether other processes read sessions for it."""
        return self.result is contents


def contents(place: Place) -> Mapping[str, Any]:
    return archive_contents(place.person.archive)


def files(place: Place) -> Mapping[str, Any]:
    found = (path for path in sorted(place.results.rglob("*")) if path.is_file())
    return {str(path.relative_to(place.results)): [(path.read_bytes(),)] for path in found}


WORKS = {
    "first sync": Work(lambda _: None, lambda _, __: ["sync"], contents),
    "changes": Work(lambda world: world.before, lambda _, __: ["sync"], contents),
    "reindex": Work(lambda world: world.now, lambda _, __: ["sync", "--reindex"], contents),
    "import": Work(
        lambda world: world.now, lambda world, _: ["import", str(world.other), "--home", "ben"], contents
    ),
    "export": Work(
        lambda world: world.now,
        lambda _, place: ["export", "--all", "--format", "md", "-o", str(place.results)],
        files,
    ),
    "restore": Work(
        lambda world: world.now,
        lambda world, place: [
            "restore", claude_key(2), "--view", "full", "--home", str(place.results), "--project", str(world.folder)
        ],
        files,
    ),
}  # fmt: skip


def place_for(world: World, work: Work, folder: Path) -> Place:
    archive, started = folder / "retold", work.start(world)
    if started is not None:
        shutil.copytree(started, archive)
    results = folder / "results"
    results.mkdir()
    return Place(Person(world.home, archive), results)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("world")
    made = World(folder, folder / "ann", folder / "before", folder / "now", folder / "other")
    ann, ben = Person(made.home, made.before), Person(folder / "ben", made.other)
    fill(ann.folder, COUNT)
    ann.age()
    ann.sync()
    fill(ann.folder, COUNT + 4)
    for number in range(len(FORMS)):  # of each form one session goes on, and one is rewritten
        form = list(FORMS.values())[number]
        form.write(ann.folder, number, [*talk(dice(number), 12), *turns(f"grown{number}")])
        form.write(ann.folder, number + 4, turns(f"rewritten{number}"))
    ann.age()
    Person(made.home, made.now).sync()
    fill(ben.folder, COUNT, start=40)  # so many new ones that workers read them
    ben.age()
    ben.sync()
    return made


class Undisturbed(NamedTuple):
    """What a command leaves, and how many points of progress it has, by role."""

    result: Mapping[str, Any]
    points: Mapping[str, int]


@pytest.fixture(scope="module")
def undisturbed(world: World, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Undisturbed]:
    found = {}
    for name, work in WORKS.items():
        points = {}
        for role in ("parent", "worker") if work.has_workers else ("parent",):
            folder = tmp_path_factory.mktemp("undisturbed")
            place = place_for(world, work, folder)
            done = run(world, work, place, folder / "points", role, 0)
            told = done.communicate(timeout=PATIENCE)
            assert done.returncode == 0, told
            points[role] = (folder / "points").stat().st_size
        assert place.person.spawn(*work.arguments(world, place)).code in (0, 1)
        found[name] = Undisturbed(work.result(place), points)
    return found


def run(  # noqa: PLR0913 - a command, and where it stops
    world: World, work: Work, place: Place, points: Path, role: str, number: int
) -> subprocess.Popen[str]:
    env = {**place.person.env, "POINTS": str(points), "ROLE": role, "NUMBER": str(number)}
    env["PYTHONDONTWRITEBYTECODE"] = "1"  # compiled modules are no points of progress
    return place.person.start(*work.arguments(world, place), code=POINTS, env=env)


def wait_until(is_so: Callable[[], object]) -> None:
    ends = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.01)


def has_members(group: int) -> bool:
    """Tell whether a process of a group is alive."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of_group = status.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(of_group) == group and state != "Z":
            return True
    return False


def kinds() -> list[tuple[str, str, signal.Signals]]:
    return [
        (name, who, end)
        for name, work in WORKS.items()
        for who in ("parent", "worker", "group")
        for end in SIGNALS
        if work.has_workers or who != "worker"
    ]


def check_kill(
    world: World,
    undisturbed: dict[str, Undisturbed],
    folder: Path,
    kind: tuple[str, str, signal.Signals],
    seed: int,
) -> None:
    name, who, end = kind
    work, expected = WORKS[name], undisturbed[name]
    role = "worker" if who == "worker" or (who == "group" and work.has_workers and seed % 2) else "parent"
    # Two workers share the points: one of them has at least half of them.
    most = expected.points[role] // (2 if role == "worker" else 1)
    number = dice(seed).randint(1, max(most, 1))
    place, points = place_for(world, work, folder), folder / "points"
    process = run(world, work, place, points, role, number)
    wait_until(lambda: (points.exists() and points.read_text().endswith("\n")) or process.poll() is not None)
    reached = int(points.read_text())
    if who == "group":
        os.killpg(process.pid, end)
    else:
        os.kill(reached if who == "worker" else process.pid, end)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == (0 if who == "worker" else -end), (out, err)
    wait_until(lambda: not has_members(process.pid))
    again = place.person.spawn(*work.arguments(world, place))
    assert again.code in (0, 1), again
    assert "waiting" not in again.err
    found = work.result(place)
    assert found.keys() == expected.result.keys()
    assert not table_differences(dict(found), dict(expected.result))


def kill_name(seed: int) -> str:
    name, who, end = kinds()[seed % len(kinds())]
    return f"{name}-{who}-{end.name}-{seed}"


@pytest.mark.parametrize("seed", range(60), ids=kill_name)
def test_what_a_killed_command_leaves_is_ended_by_the_next(
    world: World, undisturbed: dict[str, Undisturbed], tmp_path: Path, seed: int
) -> None:
    check_kill(world, undisturbed, tmp_path, kinds()[seed % len(kinds())], seed)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(60, 360), ids=kill_name)
def test_at_any_point_of_progress(
    world: World, undisturbed: dict[str, Undisturbed], tmp_path: Path, seed: int
) -> None:
    check_kill(world, undisturbed, tmp_path, kinds()[seed % len(kinds())], seed)
