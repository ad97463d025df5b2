"""Work that is shared out among processes: all of it is done, and none of it outlives whoever wanted it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or (os.cpu_count() or 1) < 2,
    reason="processes are forked on Linux, with two cores",
)
SHORT = """
import os
from retold.synchronization.workers import run_in_processes

def work(places):
    yield from ((place, os.getpid()) for place in places)

print(os.getpid())
for place, process in run_in_processes(work, range(6), lambda place: 64 << 20, tuple[int, int]):
    print(place, process)
"""
KILLED = """
import os, signal
from retold.synchronization.workers import run_in_processes

parent = os.getpid()

def work(places):
    if os.getpid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    yield from ((place, os.getpid()) for place in places)

print(parent)
for place, process in run_in_processes(work, range(6), lambda place: 64 << 20, tuple[int, int]):
    print(place, process)
"""
UNUSED = """
import os, time
from retold.synchronization import workers

started = []
fork = workers.fork
workers.fork = lambda work: started.append(fork(work)) or started[-1]

def work(places):
    time.sleep(300)
    yield from places

begun = workers.run_in_processes(work, [0, 1], lambda place: 64 << 20, int)
assert len(started) == 2
del begun
try:
    os.waitpid(-1, 0)
except ChildProcessError:
    print(len(started), "processes were started, none is left")
"""
ENDLESS = """
import os, sys, time
from retold.synchronization.workers import run_in_processes

def work(places):
    os.write(1, b"%d\\n" % os.getpid())  # at once, as two do it
    time.sleep(300)
    yield from places

list(run_in_processes(work, [0, 1], lambda place: 64 << 20, int))
"""


def test_two_processes_do_what_one_would() -> None:
    # In a process of its own: where threads run, as those of a test runner do, nothing is forked.
    told = subprocess.run([sys.executable, "-c", SHORT], capture_output=True, text=True, check=True).stdout
    starter, *done = [tuple(map(int, line.split())) for line in told.splitlines()]
    assert sorted(place for place, _ in done) == list(range(6))
    assert len({process for _, process in done} - {*starter}) == 2


def test_what_a_killed_process_did_not_do_is_done_here() -> None:
    told = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, check=True).stdout
    starter, *done = [tuple(map(int, line.split())) for line in told.splitlines()]
    assert sorted(done) == [(place, *starter) for place in range(6)]


def test_work_that_nobody_takes_leaves_no_process_behind() -> None:
    told = subprocess.run([sys.executable, "-c", UNUSED], capture_output=True, text=True, check=True).stdout
    assert told == "2 processes were started, none is left\n"


def test_what_was_shared_out_ends_with_whoever_is_killed() -> None:
    starter = subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    processes = [int(starter.stdout.readline()) for _ in range(2)]
    assert all(Path(f"/proc/{process}").exists() for process in processes)
    starter.send_signal(signal.SIGKILL)
    starter.wait(60)
    deadline = time.monotonic() + 60
    while any(_runs(process) for process in processes) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(_runs(process) for process in processes)
    starter.stdout.close()


def _runs(process: int) -> bool:
    """Tell whether a process is at work; one that has ended may wait to be taken note of."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except FileNotFoundError:
        return False
