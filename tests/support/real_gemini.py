"""The real Gemini CLI and its own loader: installed once, outside the repository, and run on loopback.

The programs that run them are in the shared folder beside the repository (see `real-cli/README.md` there). npm
installs into `$RETOLD_TEST_CACHE`, by default `retold-tests` in the user's cache; the folder is safe to delete.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

CORE_VERSION = "0.61.0"
INSTALL_SECONDS = 600
INSTALL_TRIES = 3
RUN_SECONDS = 180
ORACLE_SECONDS = 120
_NEEDED = ("bash", "node", "npm")
_FIRST_WAIT = re.compile(r"^WAIT \d+$", re.MULTILINE)
_UNTIL_READY = "EXPECT 60 Type your message\nWAIT 3"
"""The steps in place of a script's first wait, which is too short for a busy machine."""

Record = dict[str, Any]
Finished = subprocess.CompletedProcess[str]
Oracle = Callable[[Sequence[Path]], list[Record]]


class Gemini(Protocol):
    """One headless run of a version of the CLI in a given home and project."""

    def __call__(self, version: str, home: Path, project: Path, *arguments: str) -> Finished: ...


class Driver(Protocol):
    """One interactive run: a shared script types the keys, and the CLI asks before each tool."""

    def __call__(self, version: str, home: Path, project: Path, script: str) -> Finished: ...


class UnavailableError(Exception):
    """A program that a test needs is not available; the message gives the reason in one line."""


def shared_folder() -> Path:
    """Return the path of the shared folder, which may not exist."""
    return Path(__file__).resolve().parents[3] / "shared"


def cache_folder(env: Mapping[str, str]) -> Path:
    """Return the folder that keeps packages between test runs."""
    if own := env.get("RETOLD_TEST_CACHE"):
        return Path(own)
    return Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "retold-tests"


def missing_programs() -> list[str]:
    """Return the required programs that are not on PATH."""
    return [program for program in _NEEDED if shutil.which(program) is None]


def install_oracle(shared: Path, cache: Path) -> Path:
    """Install the CLI's core package once, and return the oracle's script beside it."""
    folder = cache / f"core-{CORE_VERSION}"
    package = f"@google/gemini-cli-core@{CORE_VERSION}"
    options = ("--ignore-scripts", "--no-audit", "--no-fund", "--silent")
    install_once(folder, ("npm", "install", "--prefix", str(folder), *options, package), {})
    return _copied(shared / "real-cli" / "oracle.mjs", folder)


def install_cli(shared: Path, cache: Path, version: str) -> Path:
    """Install one version of the CLI once, and return its folder."""
    root = cache / "cli"
    install_once(
        root / version, ("bash", str(shared / "real-cli" / "install"), version), {"REAL_CLI": str(root)}
    )
    return root / version


def install_once(folder: Path, command: Sequence[str], env: Mapping[str, str]) -> None:
    """Run the command that fills the folder, unless the folder is already filled."""
    done = folder / ".installed"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder.with_name(folder.name + ".lock")):
        if not done.exists():
            _install(command, env)
            done.touch()


def _install(command: Sequence[str], env: Mapping[str, str]) -> None:
    """Run the command; try again if it fails, because a registry may be out of reach for a moment."""
    for _ in range(INSTALL_TRIES):
        status = _install_status(command, env)
        if status == 0:
            return
        time.sleep(2)
    raise UnavailableError(f"could not install {command[-1]}: exit status {status}")


def _install_status(command: Sequence[str], env: Mapping[str, str]) -> int:
    settings = {**os.environ, **env}
    try:
        return subprocess.run(
            command, env=settings, stdin=subprocess.DEVNULL, timeout=INSTALL_SECONDS, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"it took too long to install {command[-1]}") from None


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Lock out other test processes; remove a lock older than any installation, whose process has died."""
    deadline = time.monotonic() + INSTALL_SECONDS + 30
    while not _made(lock):
        if time.monotonic() > deadline:
            raise UnavailableError(f"another process still installs: {lock} is there")
        time.sleep(0.2)
    try:
        yield
    finally:
        lock.rmdir()


def _made(lock: Path) -> bool:
    try:
        lock.mkdir()
    except FileExistsError:
        with suppress(OSError):
            if time.time() - lock.stat().st_mtime > INSTALL_SECONDS + 30:
                lock.rmdir()
        return False
    return True


def _copied(file: Path, folder: Path) -> Path:
    """Return an up-to-date copy of the file in the folder, replaced atomically."""
    copy = folder / file.name
    if not copy.exists() or copy.read_bytes() != file.read_bytes():
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as fresh:
            fresh.write(file.read_bytes())
        Path(fresh.name).replace(copy)
    return copy


def load_with_oracle(script: Path, files: Sequence[Path]) -> list[Record]:
    """Return the result of the CLI's own loader for each file, in order, from a single process."""
    if not files:
        return []
    command = ("node", str(script), *map(str, files))
    finished = subprocess.run(command, capture_output=True, timeout=ORACLE_SECONDS, check=False)
    # Only "\n" ends a line: a record may contain U+2028 unescaped.
    records = [json.loads(line) for line in finished.stdout.decode().split("\n") if line]
    if finished.returncode or len(records) != len(files):
        raise RuntimeError(
            f"{len(records)} answers for {len(files)} files: {finished.stderr.decode()[-2000:]}"
        )
    return records


def record_ids(record: Record) -> list[str | None]:
    """Return the ids of the messages that the loader returned, in order; empty for a file that it rejected."""
    messages = record.get("messages") or []
    ids = [message.get("id") if isinstance(message, dict) else None for message in messages]
    return [message_id if isinstance(message_id, str) else None for message_id in ids]


@dataclass(frozen=True)
class RealCli:
    """Runs installed versions of the CLI; logs go to `scratch`."""

    shared: Path
    cache: Path
    scratch: Path

    def run(self, version: str, home: Path, project: Path, *arguments: str) -> Finished:
        """Run the CLI headless."""
        command = ("bash", str(self.shared / "real-cli" / "run"), version, str(free_port()), *arguments)
        return _finished(command, self.settings(version, home, project))

    def drive(self, version: str, home: Path, project: Path, script: str) -> Finished:
        """Run the CLI in a terminal; the script types the keys, as soon as there is a box to type into."""
        programs = self.shared / "real-cli"
        keys = self.scratch / f"{uuid4().hex}.txt"
        text = (programs / "scripts" / script).read_text(encoding="utf-8")
        keys.write_text(_FIRST_WAIT.sub(_UNTIL_READY, text, count=1), encoding="utf-8")
        command = (sys.executable, str(programs / "drive"), version, str(free_port()), str(keys))
        return _finished(command, {**self.settings(version, home, project), "NO_YOLO": "1"})

    def settings(self, version: str, home: Path, project: Path) -> dict[str, str]:
        """Return variables for the shared programs; link the version into `scratch`, so that its logs go there."""
        link = self.scratch / version
        if not link.exists():
            link.symlink_to(install_cli(self.shared, self.cache, version), target_is_directory=True)
        return {"REAL_CLI": str(self.scratch), "HOME_DIR": str(home), "PROJECT_DIR": str(project)}


def _finished(command: Sequence[str], settings: Mapping[str, str]) -> Finished:
    return subprocess.run(
        command,
        env={**os.environ, **settings},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=RUN_SECONDS,
        check=False,
    )


def free_port() -> int:
    """Return a loopback port on which nothing listens now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port
