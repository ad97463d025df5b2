"""Files that are too large to be held in memory are read, kept and found like others, whatever happens to them."""

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from retold.agents.registry import AGENTS
from retold.archive.index import documents
from retold.archive.store import CHUNK, Store
from retold.reading.disk import DISK, EMPTY_DISK, LocalDisk
from retold.synchronization import snapshot as snapshots
from retold.synchronization.snapshot import FileChangedError, Snapshot
from support.conversation_files import FORMS, Turn, as_lines, thread, turns, write_file
from support.gemini_home import GeminiHome, gemini, user
from support.person import Person, archive_contents, table_differences


def test_a_large_file_is_kept_and_found_like_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []
    for name, largest in (("small", snapshots.LARGEST), ("large", 64)):
        monkeypatch.setattr(snapshots, "LARGEST", largest)
        monkeypatch.setattr(documents, "LARGEST_ORIGINAL", largest)
        person = Person(tmp_path / name)
        made = GeminiHome(person.folder)
        made.lines("almanac", 1, 1, [user("u1", 1, "tide table"), gemini("g1", 1, "neap")])
        person.sync()
        (found,) = person.search("neap")
        assert found["hits"][0]["snippet"] == "neap"
        assert person.keys("--substring", "ide tab") == [found["key"]]
        shown.append(person.show(found["key"])["timeline"])
    assert shown[0] == shown[1]
    assert len(shown[0]) == 2


# Files that change while they are read -------------------------------------------------------------------------------


@pytest.fixture
def is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every file too large to be held."""
    monkeypatch.setattr(snapshots, "LARGEST", 64)


@pytest.mark.usefixtures("is_large")
def test_a_file_that_is_replaced_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "session"
    path.write_bytes(b"heron " * 100)
    disk = Snapshot(EMPTY_DISK)
    reader = disk.open(str(path))
    first = reader.read(300)
    (tmp_path / "other").write_bytes(b"otter " * 100)
    os.replace(tmp_path / "other", path)
    again = disk.open(str(path))  # a second reader has a place of its own
    assert first + reader.read(1000) == again.read(1000) == b"heron " * 100
    assert disk.files[str(path)].read_part(294, 12) == b"heron heron "
    assert reader.read(1) == again.read(1) == b""


@pytest.mark.usefixtures("is_large")
def test_a_file_that_grows_is_read_up_to_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "session"
    path.write_bytes(b"heron " * 100)
    disk = Snapshot(EMPTY_DISK)
    reader = disk.open(str(path))
    with path.open("ab") as file:
        file.write(b"otter")
    assert reader.read(1000) + reader.read(1) == b"heron " * 100
    assert not disk.files[str(path)].is_untouched()


@pytest.mark.usefixtures("is_large")
def test_descriptors_are_given_back(tmp_path: Path) -> None:
    path = tmp_path / "session"
    path.write_bytes(b"heron " * 100)
    disk = Snapshot(EMPTY_DISK)
    disk.open(str(path)).close()
    held = _descriptors(path)
    del disk
    assert (held, _descriptors(path)) == (1, 0)


def _descriptors(path: Path) -> int:
    """Return how many descriptors of this process belong to a file."""
    found, status = 0, path.stat()
    for number in range(3, 1024):
        try:
            one = os.fstat(number)
        except OSError:
            continue
        found += (one.st_dev, one.st_ino) == (status.st_dev, status.st_ino)
    return found


LONG = "heron " * (CHUNK // 6)


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object], int], None]:
    """Do something each time the reader of Claude's files has read a file, some times at most."""

    def do(change: Callable[[], object], times: int) -> None:
        claude, done = AGENTS["claude"], list[object]()
        whole = claude.read

        def reading(*arguments: Any, **named: Any) -> Any:
            found = whole(*arguments, **named)
            if len(done) < times:
                done.append(change())
            return found

        monkeypatch.setattr(claude, "read", reading)

    return do


def originals(person: Person) -> list[bytes]:
    with Store(str(person.archive)) as record:
        return [record.originals.read(number) for (number,) in list(record.rows("SELECT id FROM originals"))]


@pytest.mark.usefixtures("is_large")
def test_a_large_file_that_grows_is_archived_as_it_was_at_first(
    tmp_path: Path, meanwhile: Callable[..., None]
) -> None:
    person = Person(tmp_path / "ann")
    file = FORMS["claude"].write(person.folder, 1, [Turn("asked", LONG, "answered")])
    before = file.read_bytes()
    longer = FORMS["claude"].write(
        person.folder / "longer", 1, [Turn("asked", LONG, "answered"), *turns("otter")]
    )
    added = longer.read_bytes().removeprefix(before)

    def grow() -> None:
        with file.open("ab") as end:
            end.write(added)

    meanwhile(grow, 1)
    assert person.sync()["problems"] == 0
    assert originals(person) == [before]
    person.sync()
    assert originals(person) == [before + added]
    assert person.keys("otter") == [FORMS["claude"].key(1)]


@pytest.mark.usefixtures("is_large")
@pytest.mark.parametrize("times", [1, 100])
def test_a_large_file_that_is_rewritten_in_place_is_no_mixture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    person = Person(tmp_path / "ann")
    file = FORMS["claude"].write(person.folder, 1, [Turn("asked", LONG, "answered"), *turns("otter")])
    others = [FORMS["claude"].write(person.folder, 2, turns("plover")).read_bytes()]
    contents = [file.read_bytes(), file.read_bytes().replace(b"heron", b"egret")]
    whole, done = snapshots.FrozenFile.read_part, list[int]()

    def part(still: snapshots.FrozenFile, start: int, size: int) -> bytes:
        data = whole(still, start, size)
        is_first_chunk = still.path == str(file) and (start, size) == (0, CHUNK)
        if is_first_chunk and len(done) < times:
            done.append(1)
            with file.open("r+b") as rewriting:
                rewriting.write(contents[len(done) % 2])
        return data

    monkeypatch.setattr(snapshots.FrozenFile, "read_part", part)
    result = person.run("sync", "--json")
    assert ("changed-while-read" in result.err) == (times > 1)
    (report,) = result.objects
    assert person.keys("plover") == [FORMS["claude"].key(2)]
    assert {*originals(person)} <= {*contents, *others}
    assert (report["problems"], len(originals(person))) == ((0, 2) if times == 1 else (1, 1))
    monkeypatch.setattr(snapshots.FrozenFile, "read_part", whole)
    assert person.sync()["problems"] == 0
    assert {*originals(person)} == {file.read_bytes(), *others}


class _Restless:
    """The disk of this machine, on which something happens to a file each time it is opened."""

    def __init__(self, change: Callable[[], object]) -> None:
        self._change = change

    def __getattr__(self, name: str) -> Any:
        return getattr(DISK, name)

    def open(self, path: str) -> Any:
        file = DISK.open(path)
        self._change()
        return file


def test_a_small_file_that_is_rewritten_at_each_attempt_is_no_mixture(tmp_path: Path) -> None:
    path, contents = tmp_path / "session", [b"heron " * 100, b"otter " * 100]

    def rewrite() -> None:
        contents.reverse()
        path.write_bytes(contents[0])

    rewrite()
    with pytest.raises(FileChangedError):
        Snapshot(EMPTY_DISK, local=_Restless(rewrite)).open(str(path))


def test_a_small_file_that_grows_at_each_attempt_is_read(tmp_path: Path) -> None:
    path = tmp_path / "session"
    path.write_bytes(b"heron ")

    def grow() -> None:
        with path.open("ab") as file:
            file.write(b"otter ")

    found = Snapshot(EMPTY_DISK, local=_Restless(grow)).open(str(path)).read(1000)
    assert path.read_bytes().startswith(found)
    assert found.startswith(b"heron ")


class _Skipping:
    """The disk of this machine, on which the first read of a file misses its beginning."""

    is_first = True

    def __getattr__(self, name: str) -> Any:
        return getattr(DISK, name)

    def open(self, path: str) -> Any:
        file = DISK.open(path)
        if self.is_first:
            self.is_first = False
            file.seek(6)
        return file


def test_a_small_file_that_was_read_in_part_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "session"
    path.write_bytes(b"heron otter")
    assert Snapshot(EMPTY_DISK, local=_Skipping()).open(str(path)).read(1000) == b"heron otter"


@pytest.mark.parametrize("largest", [64, snapshots.LARGEST])
def test_a_log_that_is_rewritten_while_it_is_read_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, largest: int
) -> None:
    monkeypatch.setattr(snapshots, "LARGEST", largest)
    person = Person(tmp_path / "ann")
    file = person.folder / ".codex/history.jsonl"
    text = as_lines([{"session_id": thread(9), "ts": 1769936400, "text": LONG}])
    write_file(file, text)
    numbers = count()
    FORMS["claude"].write(person.folder, 2, turns("plover"))

    def rewriting(whole: Callable[..., Any], *arguments: Any) -> Any:
        found = whole(*arguments)
        if file.exists() and str(file) in (getattr(arguments[0], "path", ""), *map(str, arguments[1:])):
            file.write_text(text.replace("heron", f"{next(numbers):05}"))
        return found

    with monkeypatch.context() as patched:
        part, opened = snapshots.FrozenFile.read_part, LocalDisk.open
        patched.setattr(snapshots.FrozenFile, "read_part", lambda *arguments: rewriting(part, *arguments))
        patched.setattr(LocalDisk, "open", lambda *arguments: rewriting(opened, *arguments))
        done = person.run("sync", "--json")
    assert (done.code, "changed-while-read" in done.err) == (0, True), done
    assert person.keys("plover") == [FORMS["claude"].key(2)]
    assert {*originals(person)} == {FORMS["claude"].write(tmp_path / "same", 2, turns("plover")).read_bytes()}
    assert person.sync()["problems"] == 0
    assert file.read_bytes() in originals(person)


# Spools ----------------------------------------------------------------------------------------------------------------

LARGE_FILES = """
import errno, os, stat, time
import retold.archive.writer, retold.model.spool, retold.synchronization.run, retold.synchronization.snapshot
retold.synchronization.run.LARGEST = retold.synchronization.snapshot.LARGEST = 64
"""
"""Makes every file too large to be held, also in the process that reads it."""
KILLED = """
def put(self, update):
    (spool,) = [one for one in os.listdir(os.environ["RETOLD_HOME"]) if one.startswith("spool-")]
    status = os.stat(os.path.join(os.environ["RETOLD_HOME"], spool))
    assert stat.S_IMODE(status.st_mode) == 0o600 and status.st_size
    os.kill(os.getpid(), 9)
retold.archive.writer.Writer._put_files = put
"""
FULL = """
def write(descriptor, data):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
retold.model.spool.os.write = write
"""
GONE = """
put = retold.archive.writer.Writer._put_files
def late(self, update):
    update.remove_spools()
    put(self, update)
retold.archive.writer.Writer._put_files = late
"""


@pytest.mark.parametrize(
    ("code", "expected"), [(KILLED, -9), (FULL, 4), (GONE, 4)], ids=["killed", "full", "gone"]
)
def test_a_sync_that_ends_with_a_spool_costs_nothing(tmp_path: Path, code: str, expected: int) -> None:
    person, other = Person(tmp_path / "ann"), Person(tmp_path / "ann", tmp_path / "other")
    FORMS["claude"].write(person.folder, 1, [Turn("asked", LONG, "answered"), *turns("otter")])
    done = person.spawn("sync", code=LARGE_FILES + code)
    assert done.code == expected, done
    assert "retold: " in done.err if expected == 4 else not done.err
    assert [one.name.startswith("spool-") for one in person.files()].count(True) == (code == KILLED)
    assert person.sync()["read"] == 1
    other.sync()
    found, whole = archive_contents(person.archive), archive_contents(other.archive)
    assert not table_differences(found, whole)
    assert [one.name for one in person.files()] == [one.name for one in other.files()]
