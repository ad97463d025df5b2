"""What happens to an archive while it is asked: each trouble says what to run, and once it is mended all is well again."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from retold.archive.schema import STEPS
from retold.mcp.tools import TOOLS
from support.gemini_home import GeminiHome, gemini, user
from support.mcp_arguments import plain_arguments
from support.mcp_process import LineClient, result_text
from support.one_session import QUESTION, person_with_one_session
from support.person import Person, is_root

pytestmark = pytest.mark.slow

WORD = "herons"
ALONE = "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; CREATE TABLE other (x)"
PATIENT = """
import retold.mcp.service, sys
from retold.search.archive_pool import ArchivePool
retold.mcp.service.PATIENCE = 30_000
answered = ArchivePool._run_in_thread
def told(self, *asked):
    sys.stderr.write("waiting\\n")
    sys.stderr.flush()
    return answered(self, *asked)
ArchivePool._run_in_thread = told
"""
"""Waits 30 seconds for a lock, and says when it begins to."""


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return person_with_one_session(tmp_path)


@pytest.fixture
def lines(person: Person) -> Iterator[LineClient]:
    with LineClient(person) as spoken:
        spoken.greet()
        yield spoken


def archive(person: Person) -> Path:
    return person.archive / "archive.db"


def is_right(spoken: LineClient, number: int = 100) -> bool:
    """Tell whether the herons are found; three times, for each thread may have its own view of things."""
    answers = [spoken.called(number + place, query=WORD) for place in range(3)]
    return all(not answer.get("isError") and QUESTION in result_text(answer) for answer in answers)


def trouble(spoken: LineClient, number: int = 1, query: str = WORD) -> str:
    """Return what is told of something that cannot be answered; it is the same for everybody who asks."""
    answers = [spoken.called(number + place, query=query) for place in range(4)]
    assert all(answer["isError"] for answer in answers), answers
    (told,) = {result_text(answer) for answer in answers}
    assert "bug" not in told
    return told


def test_no_archive_yet(tmp_path: Path) -> None:
    ann = Person(tmp_path / "ann")
    with LineClient(ann) as spoken:
        spoken.greet()
        assert "makes one with `retold sync`" in trouble(spoken)
        assert list(ann.files()) == []
        home = GeminiHome(tmp_path / "later")
        home.lines("den", 1, 1, [user("u1", 1, QUESTION), gemini("g1", 2, "In reeds.")], kind="main")
        ann.sync("--home", str(home.folder))
        assert is_right(spoken)


def test_an_archive_that_is_removed_and_made_anew(person: Person, lines: LineClient) -> None:
    assert is_right(lines)
    shutil.rmtree(person.archive)
    assert "makes one with `retold sync`" in trouble(lines)
    GeminiHome(person.folder / "more").lines("den", 2, 2, [user("u2", 2, "And the herons of the delta?")])
    person.sync("--home", str(person.folder / "more"))
    assert is_right(lines)
    assert "delta" in result_text(lines.called(50, query="delta"))


def test_an_archive_that_another_takes_the_place_of(
    person: Person, lines: LineClient, tmp_path: Path
) -> None:
    assert is_right(lines)
    home = GeminiHome(tmp_path / "bea")
    home.lines("den", 3, 3, [user("u3", 3, "Do cranes dance?"), gemini("g3", 4, "They do.")], kind="main")
    bea = Person(home.folder)
    bea.sync()
    person.archive.rename(tmp_path / "away")
    bea.archive.rename(person.archive)
    assert "Do cranes dance?" in result_text(lines.called(1, query="cranes"))
    assert "Nothing was found" in result_text(lines.called(2, query=WORD))


def test_a_damaged_record(person: Person, lines: LineClient) -> None:
    assert is_right(lines)
    whole = _settled(person)
    with replaced(archive(person), b"not a database, but of some length. " * 200):
        told = trouble(lines)
        assert "is damaged" in told
        assert "then `retold sync` starts again" in told
    assert archive(person).read_bytes() == whole
    assert is_right(lines)


def test_a_record_of_which_pages_are_damaged(person: Person, lines: LineClient) -> None:
    """Whatever is damaged, nobody takes it for a bug, and nothing wrong is told of it for long."""
    whole = _settled(person)
    for start in range(4_096, len(whole), 4_096):
        broken = whole[:start] + b"\xa5" * 4_096 + whole[start + 4_096 :]
        with replaced(archive(person), broken):
            for tool in TOOLS:
                answer = lines.called(start, tool.name, **plain_arguments(tool, WORD))
                assert "bug" not in result_text(answer), (start, tool.name, result_text(answer))
    assert is_right(lines)


@pytest.mark.parametrize("is_removed", [True, False])
def test_a_damaged_or_missing_index(person: Person, lines: LineClient, *, is_removed: bool) -> None:
    assert is_right(lines)
    for file in (person.archive / "index").iterdir():
        file.unlink()
        if not is_removed and file.suffix == ".db":
            file.write_bytes(b"not a database, but of some length. " * 200)
    assert "mends it with `retold sync --reindex`" in trouble(lines)
    assert person.run("sync", "--reindex").code == 0
    assert is_right(lines)


def test_an_archive_that_others_write_is_read_meanwhile(person: Person, lines: LineClient) -> None:
    with locked(archive(person), "BEGIN IMMEDIATE; CREATE TABLE other (x)"):
        assert is_right(lines)


def test_an_archive_that_is_locked_for_all_is_waited_for_together(person: Person) -> None:
    with locked(archive(person), ALONE) as free, LineClient(person) as lines:
        lines.greet()
        began = time.monotonic()
        for number in range(100):
            lines.call(number, query=WORD)
        answers = [lines.hear()["result"] for _ in range(100)]
        assert time.monotonic() - began < 30  # one after the other would take 66 seconds
        assert all("another retold is writing; try again" in result_text(answer) for answer in answers)
        free()
        assert is_right(lines)


def test_it_ends_at_once_while_it_waits_for_a_lock(person: Person) -> None:
    with locked(archive(person), ALONE), LineClient(person, code=PATIENT) as lines:
        lines.greet()
        lines.call(1, query=WORD)
        lines.wait_for_stderr(b"waiting\n")
        lines.close()
        code, seconds = lines.ended()
        assert (code, seconds < 15) == (0, True), seconds


def test_an_index_that_is_locked_for_all_is_not_told_to_be_damaged(person: Person) -> None:
    file = next((person.archive / "index").glob("*.db"))
    with locked(file, ALONE) as free, LineClient(person) as lines:
        lines.greet()
        assert "another retold is writing; try again" in trouble(lines)
        free()
        assert is_right(lines)


def test_an_archive_of_an_older_version_is_brought_up(person: Person) -> None:
    folder = person.archive.with_name("older")
    folder.mkdir()
    connection = apsw.Connection(str(folder / "archive.db"))
    mark = apsw.Connection(str(archive(person))).pragma("application_id")
    connection.execute(STEPS[0])
    connection.pragma("application_id", mark)
    connection.pragma("user_version", 1)
    connection.close()
    with LineClient(Person(person.folder, folder)) as spoken:
        spoken.greet()
        assert "mends it with `retold sync --reindex`" in trouble(spoken)  # there is no index beside it
        assert Person(person.folder, folder).run("sync", "--reindex").code == 0
        assert is_right(spoken)


def test_an_archive_of_a_later_version_is_told_and_left(person: Person) -> None:
    connection = apsw.Connection(str(archive(person)))
    now = connection.pragma("user_version")
    connection.pragma("user_version", now + 1)
    connection.close()
    with LineClient(person) as spoken:
        spoken.greet()
        assert "was written by a later version of retold: use that one" in trouble(spoken)
        connection = apsw.Connection(str(archive(person)))
        assert connection.pragma("user_version") == now + 1
        connection.pragma("user_version", now)
        connection.close()
        assert is_right(spoken)


@pytest.mark.skipif(os.name == "nt" or is_root, reason="root may read everything")
@pytest.mark.parametrize("what", ["", "archive.db"])
def test_an_archive_that_may_not_be_read(person: Person, what: str) -> None:
    place = person.archive / what
    mode = place.stat().st_mode
    place.chmod(0)
    try:
        with LineClient(person) as spoken:
            spoken.greet()
            assert "ermission" in trouble(spoken)
            place.chmod(mode)
            assert is_right(spoken)
    finally:
        place.chmod(mode)


def test_a_folder_that_may_not_be_read_is_not_taken_for_none(person: Person) -> None:
    code = """
import os
once = os.stat
def stat(path, *more, **options):
    if str(path).endswith("archive.db") and os.path.exists(os.environ["RETOLD_HOME"] + "/shut"):
        raise PermissionError(13, "Permission denied")
    return once(path, *more, **options)
os.stat = stat
"""
    shut = person.archive / "shut"
    shut.touch()
    with LineClient(person, code=code) as spoken:
        spoken.greet()
        assert trouble(spoken) == f"{archive(person)}: Permission denied"
        shut.unlink()
        assert is_right(spoken)


def test_two_servers_and_a_sync_at_once(person: Person) -> None:
    home = GeminiHome(person.folder / "grown")
    with LineClient(person) as one, LineClient(person) as other:
        for spoken in (one, other):
            spoken.greet()
        asked = 0
        for round_ in range(3):
            for number in range(20):
                place = 10 + 20 * round_ + number
                records = [user("u", 3, f"Of plover{round_} {place}"), gemini("g", 4, "Yes. " * 400)]
                home.lines(f"project{number}", place, 5, records, kind="main")
            sync = person.start("sync", "--home", str(home.folder), stdout=subprocess.DEVNULL)
            while sync.poll() is None:
                asked += 10
                for spoken in (one, other):
                    assert is_right(spoken, asked)
            assert sync.wait() == 0, sync.communicate()
            sync.communicate()
            for spoken in (one, other):
                answer = spoken.called(5_000 + round_, query=f"plover{round_}", budget=20_000)
                assert result_text(answer).count(f"Of plover{round_}") >= 20, result_text(answer)[:500]
        assert asked


# Making trouble ---------------------------------------------------------------------------------------------------


def _settled(person: Person) -> bytes:
    """Return the bytes of the record, with everything in it."""
    connection = apsw.Connection(str(archive(person)))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return archive(person).read_bytes()


@contextmanager
def replaced(path: Path, content: bytes) -> Iterator[None]:
    """Put another file in the place of one, and that back again."""
    away, wal = path.with_name("away"), [path.with_name(path.name + end) for end in ("-wal", "-shm")]
    os.replace(path, away)
    for file in wal:
        file.unlink(missing_ok=True)
    path.write_bytes(content)
    try:
        yield
    finally:
        for file in wal:
            file.unlink(missing_ok=True)
        os.replace(away, path)


@contextmanager
def locked(path: Path, how: str) -> Iterator[Callable[[], None]]:
    """Have another process hold a lock; yields what ends it earlier."""
    code = "import apsw, sys; c = apsw.Connection(sys.argv[1]); c.set_busy_timeout(9000); list(c.execute(sys.argv[2])); print(1, flush=True); input()"
    command = [sys.executable, "-c", code, str(path), how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"1\n"
            yield lambda: _killed(process)
        finally:
            process.kill()


def _killed(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
