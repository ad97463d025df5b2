"""Whole processes: their cost, and their peak memory including child processes."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from measure import Cost

ROOT = Path(__file__).resolve().parents[1]
PYTHON = sys.executable
RETOLD = str(Path(PYTHON).with_name("retold"))
PROC = Path("/proc")
Command = Sequence[str | Path]
_STEP = 0.02
"""Seconds between two looks at the memory of processes."""
_TICKS = os.sysconf("SC_CLK_TCK")


class ProcessResult(NamedTuple):
    """The result of a process."""

    cost: Cost
    output: bytes
    code: int


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return the environment of a process, without anything of the user's own.

    Python may write byte code, so that a start is as fast as on a normal machine.
    """
    return {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "HOME": str(home), **more}


def run(command: Command, env: Mapping[str, str], codes: Collection[int] = (0,)) -> ProcessResult:
    """Run a process and collect its output."""
    wall, cpu = time.perf_counter(), children_cpu()
    process = subprocess.run(command, env=env, check=False, stdin=subprocess.DEVNULL, capture_output=True)
    cost = Cost(time.perf_counter() - wall, children_cpu() - cpu)
    if process.returncode not in codes:
        errors = process.stderr.decode(errors="replace")
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {process.returncode}: {errors}")
    return ProcessResult(cost, process.stdout, process.returncode)


def children_cpu() -> float:
    """Return the processor time of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def cpu_of(process: int) -> float:
    """Return the processor time of a running process and its ended children; 0 if the system does not report it."""
    try:
        fields = (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS


def compile_sources() -> None:
    """Write the byte code of retold, as an installation does."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([PYTHON, "-m", "compileall", "-q", ROOT / "src"], check=True, env=env)


def has_pss() -> bool:
    """Return whether this system reports the proportional set size of processes."""
    return (PROC / "self" / "smaps_rollup").exists()


def peak_pss(command: Command, env: Mapping[str, str]) -> float:
    """Return the peak memory of a process and its descendants in MB."""
    peak, nowhere = 0, subprocess.DEVNULL
    with subprocess.Popen(
        command, env=env, start_new_session=True, stdin=nowhere, stdout=nowhere, stderr=nowhere
    ) as process:
        while process.poll() is None:
            peak = max(peak, sum(map(_pss, _members(process.pid))))
            time.sleep(_STEP)
    if process.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {process.returncode}")
    return peak / 1e6


def _members(session: int) -> Iterator[int]:
    """Yield the processes of a session, which a process and its descendants are."""
    for name in filter(str.isdigit, os.listdir(PROC)):
        with suppress(OSError):  # the process has ended
            if os.getsid(int(name)) == session:
                yield int(name)


def _pss(process: int) -> int:
    try:
        lines = (PROC / str(process) / "smaps_rollup").read_text().splitlines()
    except OSError:  # the process has ended
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
