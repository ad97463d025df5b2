"""What a hook and a timer have done: the archive brought up to date and ghosts removed, by one process at a time.

A hook may be called after every turn, and twice at the end. Each call leaves a mark; who finds nobody at work goes to
work, and works until there is no mark.
"""

from __future__ import annotations

import contextlib
import os
import sys

from retold.config import retold_home
from retold.synchronization.update import is_taken

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

REQUEST_FILE, LOCK, LOG = "keep.asked", "keep.lock", "keep.log"
LONGEST_LOG = 1 << 16
_HEARD, _PATIENCE = 1 << 20, 0.5


def ask(command: Sequence[str], env: Mapping[str, str]) -> None:
    """Have it done by a process that outlives this one, unless one is at work already; return at once."""
    _outlast_terminal()
    folder = retold_home(env)
    _leave_mark(folder)
    with _alone(folder) as is_alone:
        pass
    if is_alone:
        _start(command, env)
    hear()


def run(env: Mapping[str, str]) -> None:
    """Do it, as often as it is asked for meanwhile."""
    folder = retold_home(env)
    _leave_mark(folder)
    while os.path.exists(os.path.join(folder, REQUEST_FILE)):
        with _alone(folder) as is_alone:
            if not is_alone:
                return  # whoever is at work looks for a mark after the end
            if _is_mark_taken(folder):
                _do(folder, env)


def _do(folder: str, env: Mapping[str, str]) -> None:
    from retold.archive.store import Store
    from retold.care.ghosts import own_homes, remove_ghosts
    from retold.config import read_config
    from retold.synchronization.update import Task, update

    config = read_config(folder)
    task = Task(folder, env, list(config.homes.items()), (), config.excluded)
    update(task, lambda: None, lambda *_: None)
    with Store(folder) as record:
        remove_ghosts(record, own_homes(env))


def _leave_mark(folder: str) -> None:
    os.makedirs(folder, mode=0o700, exist_ok=True)
    os.close(os.open(os.path.join(folder, REQUEST_FILE), os.O_WRONLY | os.O_CREAT, 0o600))


def _is_mark_taken(folder: str) -> bool:
    """Take the mark away before the work: what comes later leaves another."""
    try:
        os.unlink(os.path.join(folder, REQUEST_FILE))
    except FileNotFoundError:
        return False
    return True


@contextlib.contextmanager
def _alone(folder: str) -> Iterator[bool]:
    """Be the only one at work, if nobody else is; the system takes the lock back, however it ends."""
    descriptor = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield is_taken(descriptor)
    finally:
        os.close(descriptor)


def _outlast_terminal() -> None:
    """Stay when the terminal goes: who closes the window ends the agent and its hooks, but means to keep the session."""
    import signal
    import threading

    if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _start(command: Sequence[str], env: Mapping[str, str]) -> None:
    """Start a process that has nothing to do with this one: an agent waits for whoever has its pipes."""
    import subprocess

    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    apart: dict[str, int | bool] = {"start_new_session": True}
    if sys.platform == "win32":
        apart = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    process = subprocess.Popen(list(command), env=dict(env), **quiet, **apart)  # type: ignore[call-overload]  # noqa: S603 - our own command
    process.returncode = 0  # nobody waits for it


def hear() -> None:
    """Read what the agent says, for no longer than a moment: it may wait until somebody has."""
    import threading

    def read() -> None:
        heard = 0
        with contextlib.suppress(OSError):
            while heard < _HEARD and (told := os.read(0, 1 << 16)):
                heard += len(told)

    listener = threading.Thread(target=read, daemon=True)
    listener.start()
    listener.join(_PATIENCE)


def log(folder: str, error: BaseException) -> None:
    """Write down what has gone wrong, on a line; of a long log, the older half goes."""
    from datetime import UTC, datetime

    path = os.path.join(folder, "logs", LOG)
    told = " ".join(f"{type(error).__name__}: {error}".split())
    with contextlib.suppress(OSError):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+", encoding="utf-8", errors="replace") as file:
            lines = file.read(4 * LONGEST_LOG)
            if len(lines) > LONGEST_LOG:
                lines = lines[-LONGEST_LOG // 2 :].partition("\n")[2]
            file.seek(0)
            file.truncate()
            file.write(f"{lines}{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {told[:1000]}\n")
