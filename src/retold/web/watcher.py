"""Another process that follows the agents while the page is open: it reads their files, the server only the archive."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Thread

_PATIENCE = 5
"""Seconds for which it may end what it is at."""


@contextmanager
def watching(env: Mapping[str, str]) -> Iterator[None]:
    """Let it run meanwhile."""
    child = subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "-P", "-m", __name__],  # -P: the folder it is started in is nothing to import from
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(env),
    )
    try:
        yield
    finally:
        child.terminate()
        try:
            child.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()


def follow() -> None:
    """Keep the archive up to date, for as long as the one who started this lives."""
    from retold.config import read_config, retold_home
    from retold.maintenance.watch import change_events, rested
    from retold.synchronization.update import Task, update

    Thread(target=_end_with_others, daemon=True).start()
    folder = retold_home(os.environ)
    config = read_config(folder)
    task = Task(folder, os.environ, list(config.homes.items()), (), config.excluded)

    def look() -> None:
        update(task, lambda: None, lambda _done, _size: None)

    look()
    for _ in change_events(task, lambda _why: None):
        rested(look)


def _end_with_others() -> None:
    """End when the other end of our input does, however that came to its end."""
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    follow()
