"""Whole processes: their time, and their peak memory including child processes."""

import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PYTHON = sys.executable
RETOLD = str(Path(PYTHON).with_name("retold"))
RUN_VARIABLE = "RETOLD_BENCH_RUN"
"""The variable that marks all processes of one measurement, also those that outlive their parent."""
STEP = 0.05
PROC = Path("/proc")
PSS = b"\nPss:"


class ProcessResult(NamedTuple):
    """The result of a process."""

    seconds: float
    output: bytes
    errors: bytes
    code: int


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return the environment of a process, without anything of the user's own.

    Python may write byte code, so that a start is as fast as on a normal machine.
    """
    return {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "HOME": str(home), **more}


def run(
    command: Sequence[str | Path], env: Mapping[str, str], codes: Collection[int] = (0,)
) -> ProcessResult:
    """Run a process and collect its output."""
    start = time.perf_counter()
    process = subprocess.run(command, env=env, check=False, stdin=subprocess.DEVNULL, capture_output=True)
    seconds = time.perf_counter() - start
    if process.returncode not in codes:
        told = process.stderr.decode(errors="replace")
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {process.returncode}: {told}")
    return ProcessResult(seconds, process.stdout, process.stderr, process.returncode)


def compile_sources() -> None:
    """Write the byte code of retold, as an installation does."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([PYTHON, "-m", "compileall", "-q", ROOT / "src"], check=True, env=env)


def has_pss() -> bool:
    """Return whether this system reports the proportional set size of processes."""
    return (PROC / "self" / "smaps_rollup").exists()


def peak_pss(command: Sequence[str | Path], env: Mapping[str, str]) -> float:
    """Return the peak memory of a process and all its descendants in MB, sampled every 50 ms."""
    mark = uuid.uuid4().hex
    watch = _MemoryWatch(f"{RUN_VARIABLE}={mark}".encode())
    thread = threading.Thread(target=watch.look, daemon=True)
    thread.start()
    try:
        run(command, {**env, RUN_VARIABLE: mark})
    finally:
        watch.ends.set()
        thread.join()
    return watch.peak / 1e6


class _MemoryWatch:
    """Samples the memory of all marked processes until it is stopped."""

    def __init__(self, mark: bytes) -> None:
        self.peak, self.ends = 0, threading.Event()
        self._mark = mark
        self._before = _processes()
        self._ours: set[str] = set()

    def look(self) -> None:
        while not self.ends.wait(STEP):
            self._find()
            self.peak = max(self.peak, sum(_pss(process) for process in self._ours))

    def _find(self) -> None:
        """Find marked processes: a process has the mark after its first `exec`."""
        processes = _processes()
        self._ours &= processes
        for process in processes - self._before - self._ours:
            if self._mark in _environ(process):
                self._ours.add(process)


def _processes() -> set[str]:
    return {name for name in os.listdir(PROC) if name.isdigit()}


def _environ(process: str) -> bytes:
    try:
        return (PROC / process / "environ").read_bytes()
    except OSError:  # the process has ended, or is another user's
        return b""


def _pss(process: str) -> int:
    try:
        told = (PROC / process / "smaps_rollup").read_bytes()
    except OSError:  # the process has ended
        return 0
    return int(told.partition(PSS)[2].split(maxsplit=1)[0]) * 1024 if PSS in told else 0
