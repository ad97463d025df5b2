"""The peer that we are measured against, in a place of its own."""

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
from processes import Ran, environment, peak_pss, run

VERSION = "0.46.1"
OFFLINE = "RETOLD_BENCH_OFFLINE"
"""Set where there is no network but loopback."""
_SET_FLAGS, _UP = 0x8914, 0x41  # SIOCSIFFLAGS; IFF_UP | IFF_RUNNING


def binary() -> Path:
    """Return agentsview's own binary, installed if it is not there: its Python wrapper costs 130 ms a start."""
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


def leave_the_network(arguments: Sequence[str]) -> None:
    """Start again where there is no network but loopback, if this system lets us."""
    if OFFLINE in os.environ:
        _raise_loopback()
        return
    probe = [*_ALONE, sys.executable, "-c", "pass"]
    if shutil.which("unshare") and subprocess.run(probe, check=False, capture_output=True).returncode == 0:
        os.execvpe("unshare", [*_ALONE, sys.executable, *arguments], {**os.environ, OFFLINE: "1"})  # noqa: S606 - ourselves again


_ALONE = ("unshare", "--map-root-user", "--net")


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as some:
        fcntl.ioctl(some, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))


class Agentsview:
    """agentsview with a home in which the sessions of a corpus are, and its daemon."""

    def __init__(self, corpus: Corpus) -> None:
        self._home = CACHE / "work" / f"agentsview-{corpus.name}"
        self._home.mkdir(parents=True, exist_ok=True)
        sessions = self._home / ".gemini"
        if not sessions.is_symlink():
            sessions.symlink_to(corpus.home / ".gemini")
        self._binary = binary()
        self._env = environment(self._home, AGENTSVIEW_TELEMETRY_ENABLED="0")

    @property
    def data(self) -> Path:
        """Where it keeps what it knows."""
        return self._home / ".agentsview"

    def forget(self) -> None:
        """Make the next sync a first one."""
        self.stop()
        shutil.rmtree(self.data, ignore_errors=True)

    def sync(self) -> Ran:
        """Bring it up to date; its daemon is started if there is none, and stays."""
        return run([self._binary, "sync"], self._env)

    def peak_of_sync(self) -> float:
        """Bring it up to date; return the megabytes that command and daemon take at most."""
        return peak_pss([self._binary, "sync"], self._env)

    def search(self, pattern: str, *, is_substring: bool = False) -> Ran:
        """Search through its daemon, in all sessions: by default it leaves out those of one prompt."""
        how = ("--include-one-shot",) if is_substring else ("--include-one-shot", "--fts")
        asked = pattern if is_substring else _in_its_words(pattern)
        return run([self._binary, "session", "search", *how, "--json", "--", asked], self._env)

    def stop(self) -> None:
        """End its daemon, if one is running: also one of an earlier run, which was in a network of its own."""
        run([self._binary, "daemon", "stop"], self._env, codes=(0, 1))
        for note in self.data.glob("daemon.*.json"):
            process = int(note.name.split(".")[1])
            if _is_running(process, self._binary):
                os.kill(process, signal.SIGTERM)
                _wait_for(process, self._binary)


def _in_its_words(query: str) -> str:
    """Return a query as agentsview wants it: it takes `abc*` for a word, and `"abc"*` for the start of one."""
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
def agentsview(corpus: Corpus) -> Iterator[Agentsview]:
    """Lend agentsview; its daemon is ended at the end."""
    peer = Agentsview(corpus)
    peer.stop()  # one that an earlier run left behind
    try:
        yield peer
    finally:
        peer.stop()
