"""agentsview, the peer for sync, search and pages: installed and run in its own folder."""

import fcntl
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from corpora import CACHE, Corpus
from processes import ProcessResult, cpu_of, environment, run

VERSION = "0.46.1"
OFFLINE = "RETOLD_BENCH_OFFLINE"
"""The variable that is set when only the loopback network exists."""
_SET_FLAGS, _UP = 0x8914, 0x41  # SIOCSIFFLAGS; IFF_UP | IFF_RUNNING


def install_agentsview() -> Path:
    """Return agentsview's binary, and install it first if needed; its Python wrapper takes 130 ms per start."""
    venv = CACHE / "peers" / f"agentsview-{VERSION}"
    found = next(venv.glob("lib/python*/site-packages/agentsview/bin/agentsview"), None)
    if found is not None:
        return found
    print(f"installing agentsview {VERSION} into {venv}", file=sys.stderr)
    pip = (venv / "bin" / "python", "-m", "pip", "install", "-qq", "--disable-pip-version-check")
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
        subprocess.run([*pip, f"agentsview=={VERSION}"], check=True)
    except subprocess.CalledProcessError as error:
        raise SystemExit(
            f"agentsview {VERSION} cannot be installed; name groups that need no peer"
        ) from error
    return next(venv.glob("lib/python*/site-packages/agentsview/bin/agentsview"))


def isolate_network(arguments: Sequence[str]) -> None:
    """Restart this process without a network except loopback, if the system allows it."""
    if OFFLINE in os.environ:
        _enable_loopback()
        return
    probe = [*_UNSHARE, sys.executable, "-c", "pass"]
    if shutil.which("unshare") and subprocess.run(probe, check=False, capture_output=True).returncode == 0:
        os.execvpe("unshare", [*_UNSHARE, sys.executable, *arguments], {**os.environ, OFFLINE: "1"})  # noqa: S606 - ourselves again


_UNSHARE = ("unshare", "--map-root-user", "--net")


def _enable_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as some:
        fcntl.ioctl(some, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))


class Agentsview:
    """agentsview and its daemon, with the sessions of a corpus."""

    def __init__(self, corpus: Corpus) -> None:
        self._home = CACHE / "work" / f"agentsview-{corpus.name}"
        self._home.mkdir(parents=True, exist_ok=True)
        sessions = self._home / ".gemini"
        if not sessions.is_symlink():
            sessions.symlink_to(corpus.home / ".gemini")
        self._binary = install_agentsview()
        self._env = environment(self._home, AGENTSVIEW_TELEMETRY_ENABLED="0")

    @property
    def data(self) -> Path:
        """The folder of its data."""
        return self._home / ".agentsview"

    def remove_data(self) -> None:
        """Stop the daemon and remove all data."""
        self.stop()
        shutil.rmtree(self.data, ignore_errors=True)

    def sync(self) -> ProcessResult:
        """Sync; the command starts a daemon if there is none, and the daemon stays."""
        return self._run("sync")

    def search(self, pattern: str, *, is_substring: bool = False) -> ProcessResult:
        """Search all sessions through the daemon: by default it leaves out sessions with one prompt."""
        how = ("--include-one-shot",) if is_substring else ("--include-one-shot", "--fts")
        asked = pattern if is_substring else _translate_query(pattern)
        return self._run("session", "search", *how, "--json", "--", asked)

    def _run(self, *arguments: str) -> ProcessResult:
        """Run a command; its cost includes the work of the daemon for it."""
        before = self.cpu()
        result = run([self._binary, *arguments], self._env)
        return result._replace(cost=result.cost._replace(cpu=result.cost.cpu + self.cpu() - before))

    def cpu(self) -> float:
        """Return the processor time of the running daemon."""
        return sum(map(cpu_of, self.daemons()))

    def stop(self) -> None:
        """Stop the daemon, also that of an earlier run in another network."""
        run([self._binary, "daemon", "stop"], self._env, codes=(0, 1))
        for process in self.daemons():
            os.kill(process, signal.SIGTERM)
            _wait_for(process, self._binary)

    def daemons(self) -> list[int]:
        """Return its running daemon, or none."""
        processes = [int(note.name.split(".")[1]) for note in self.data.glob("daemon.*.json")]
        return [process for process in processes if _is_running(process, self._binary)]


def _translate_query(query: str) -> str:
    """Return a query in the syntax of agentsview, which writes the prefix `abc*` as `"abc"*`."""
    return re.sub(r"^(\w+)\*$", r'"\1"*', query)


def _is_running(process: int, program: Path) -> bool:
    try:
        return Path(f"/proc/{process}/exe").resolve(strict=True) == program.resolve()
    except OSError:
        return False


def _wait_for(process: int, program: Path) -> None:
    for _ in range(100):
        if not _is_running(process, program):
            return
        time.sleep(0.1)
    raise TimeoutError(f"agentsview's daemon, process {process}, does not end")


@contextmanager
def run_agentsview(corpus: Corpus) -> Iterator[Agentsview]:
    """Yield agentsview for a corpus, and stop its daemon afterwards."""
    peer = Agentsview(corpus)
    peer.stop()  # the daemon of an earlier run
    try:
        yield peer
    finally:
        peer.stop()
