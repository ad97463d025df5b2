"""Child processes end with their parent, hold nothing of it, and never run the user's script again."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from retold.processes import can_fork, fork
from retold.synchronization.update import LOCK_FILE, Lock
from support.conversation_files import FORMS, turns
from support.person import Person

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
PATIENCE = 60.0
SLOW_WORKERS = """
import os, signal, time
from pathlib import Path
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` starts the suite with it ignored
import retold.synchronization.run
from retold.synchronization.cluster import JobRunner
retold.synchronization.run.pool_size = lambda size: 2
def run(self, job):
    Path(os.environ["WORKERS"], str(os.getpid())).touch()
    time.sleep(600)
JobRunner.run = run
"""
"""Two workers that say who they are and then are busy for as long as the test takes."""
SLOW_IMPORT = """
import sys, threading, time
from importlib.machinery import PathFinder, SourceFileLoader
from retold.processes import can_start
began = threading.Event()
class SlowLoader(SourceFileLoader):
    def exec_module(self, module):
        began.set()
        time.sleep(0.2)
        super().exec_module(module)
class SlowFinder:
    def find_spec(name, path=None, target=None):
        spec = PathFinder.find_spec(name, path) if name == "multiprocessing.process" else None
        if spec is not None:
            spec.loader = SlowLoader(name, spec.origin)
        return spec
sys.meta_path.insert(0, SlowFinder)
threading.Thread(target=__import__, args=("multiprocessing.process",)).start()
assert began.wait(10)
print(can_start())
"""
"""A thread that is importing multiprocessing while another asks whether it may start processes."""
SCRIPT = """
import sys
import retold.synchronization.run, retold.processes
from retold.synchronization.update import SyncOptions, update
retold.synchronization.run.pool_size = lambda size: 2
retold.processes.can_fork = lambda: False
print("started", flush=True)
coverage, problems = update(SyncOptions(sys.argv[1], {"HOME": sys.argv[2]}), lambda: print("waits"), lambda *_: None)
print(coverage.new_sessions, "new")
"""
"""What a person writes in a plain script: nothing tells its first run from one by a worker."""
SCRIPT_WITH_THREADS = """
import pickle, sys, threading
import retold, retold.synchronization.run
retold.synchronization.run.pool_size = lambda size: 2
class Own: pass
main, errors, is_over = sys.modules["__main__"], set(), threading.Event()
def look_up():
    while not is_over.is_set():
        try:
            pickle.loads(pickle.dumps(Own()))
        except Exception as error:
            errors.add(str(error))
threads = [threading.Thread(target=retold.sync, args=(folder,)) for folder in sys.argv[1:]]
other = threading.Thread(target=look_up)
other.start()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
is_over.set()
other.join()
print(sys.modules["__main__"] is main, errors)
for folder in sys.argv[1:]:
    with retold.open(folder) as archive:
        print(len(list(archive.sessions())))
"""
"""Two syncs at once, while another thread of the script needs the script's own classes."""
SCRIPT_WITH_POOL = """
import multiprocessing, sys
import retold, retold.synchronization.run
retold.synchronization.run.pool_size = lambda size: 2
def sync(folder):
    retold.sync(folder)
    with retold.open(folder) as archive:
        return len(list(archive.sessions()))
if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        print(pool.map(sync, sys.argv[2:]))
"""
"""A sync in a worker of a pool, which may not have children."""

SPAWNING = """
import runpy, signal, sys, time
import retold.processes
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` starts the suite with it ignored
retold.processes.can_fork = lambda: False
process = retold.processes.start(runpy.run_path, sys.argv[1])
time.sleep(600)
"""
BUSY = """
import os, sys, time
from pathlib import Path
Path(sys.argv[1]).with_suffix(".started").write_text(str(os.getpid()))
time.sleep(600)
"""


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path / "ann")
    for number in range(8):
        list(FORMS.values())[number % len(FORMS)].write(person.folder, number, turns("heron", "otter"))
    return person


def wait_until(is_so: Callable[[], object]) -> None:
    ends = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.02)


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_workers_end_with_a_sync_that_alone_was_ended_and_the_next_does_not_wait(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: signal.Signals
) -> None:
    folder = tmp_path / "workers"
    folder.mkdir()
    monkeypatch.setenv("WORKERS", str(folder))
    parent = person.start("sync", code=SLOW_WORKERS)
    wait_until(lambda: len(list(folder.iterdir())) == 2)
    workers = [int(path.name) for path in folder.iterdir()]
    os.kill(parent.pid, end)  # the parent alone: its group and its workers get no signal
    parent.communicate(timeout=PATIENCE)
    wait_until(lambda: not any(map(is_alive, workers)))
    done = person.spawn("sync")
    assert done.code == 0
    assert "waiting" not in done.err
    assert len(person.rows()) == 8


def sockets(process: int) -> set[str]:
    links = (os.readlink(link) for link in Path(f"/proc/{process}/fd").iterdir())
    return {link for link in links if link.startswith("socket:")}


def test_a_worker_holds_no_end_of_a_pipe_that_its_parent_holds(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "workers"
    folder.mkdir()
    monkeypatch.setenv("WORKERS", str(folder))
    parent = person.start("sync", code=SLOW_WORKERS)
    try:
        wait_until(lambda: len(list(folder.iterdir())) == 2)
        held = [sockets(process) for process in (parent.pid, *(int(path.name) for path in folder.iterdir()))]
    finally:
        parent.kill()
        parent.communicate(timeout=PATIENCE)
    assert [len(one) for one in held] == [2, 1, 1]
    assert len(set.union(*held)) == 4


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_a_process_that_was_not_forked_ends_with_its_parent(tmp_path: Path, end: signal.Signals) -> None:
    script, started = tmp_path / "busy.py", tmp_path / "busy.started"
    script.write_text(BUSY)
    with subprocess.Popen([sys.executable, "-c", SPAWNING, str(script)], start_new_session=True) as parent:
        wait_until(lambda: started.exists() and started.read_text())
        child = int(started.read_text())
        assert child != parent.pid
        os.kill(parent.pid, end)
    wait_until(lambda: not is_alive(child))


def test_a_plain_script_may_sync_where_workers_are_not_forked(person: Person, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "archive"), str(person.folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "started\n8 new\n", "")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_worker_of_a_pool_may_sync(person: Person, tmp_path: Path, method: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT_WITH_POOL)
    done = subprocess.run(
        [sys.executable, str(script), method, str(tmp_path / "archive")],
        env=person.env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[8]\n", "")


def test_a_sync_in_a_thread_leaves_the_main_module_to_the_other_threads(
    person: Person, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT_WITH_THREADS)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "a"), str(tmp_path / "b")],
        env=person.env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True set()\n8\n8\n", "")


def test_threads_that_sync_at_once_import_multiprocessing_together() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SLOW_IMPORT], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_a_forked_process_does_not_hold_the_lock(tmp_path: Path) -> None:
    ours, theirs = os.pipe()

    def tell() -> None:
        links = (Path("/proc/self/fd", name) for name in os.listdir("/proc/self/fd"))
        os.write(theirs, " ".join(os.readlink(link) for link in links if link.is_symlink()).encode())

    with Lock(str(tmp_path), lambda: None):
        assert any(os.readlink(link) == str(tmp_path / LOCK_FILE) for link in Path("/proc/self/fd").iterdir())
        child = fork(tell)
        os.close(theirs)
        with open(ours, encoding="ascii") as pipe:
            assert LOCK_FILE not in pipe.read()
    assert os.waitpid(child, 0)[1] == 0


def test_a_process_with_another_thread_does_not_fork() -> None:
    code = """
import threading, time
from retold.processes import can_fork
before = can_fork()
threading.Thread(target=time.sleep, args=(1,), daemon=True).start()
print(before, can_fork())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    is_worth_it = (os.cpu_count() or 1) > 1
    assert done.stdout == f"{is_worth_it} False\n"
    assert not can_fork() or is_worth_it
