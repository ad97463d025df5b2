"""When to look: as soon as something changes in the folders that are watched, and now and then in any case."""

import os
import time
from collections.abc import Callable, Iterator

from retold.agents import NAMES
from retold.agents.registry import AGENTS
from retold.synchronization.update import Task

DEBOUNCE = 800
"""Milliseconds for which changes that follow each other are taken together."""
STEP = 60
"""Milliseconds of quiet that end it sooner."""
TICK = 1.0
"""Seconds after which folders are looked for that were not there."""
SELDOM = 30.0
"""Seconds after which it is looked in any case: some file systems tell nothing, as those of other machines."""
OFTEN = 2.0
"""Seconds from look to look where nothing can be watched."""


def session_folders(task: Task) -> frozenset[str]:
    """Return the folders that hold sessions now, of the homes that a task is about."""
    return frozenset(folder for folder in map(str, _folders(task)) if os.path.isdir(folder))


def _folders(task: Task) -> Iterator[os.PathLike[str]]:
    from pathlib import Path

    for agent in (AGENTS[name] for name in task.agents or NAMES):
        yield from (home.sessions for home in agent.homes(task.env))
        given = (agent.home_in(Path(folder)) for _, folder in task.homes)
        yield from (home.sessions for home in given if home is not None)


def change_events(task: Task, tell_blind: Callable[[str], None]) -> Iterator[None]:
    """Yield, for ever, whenever something may have changed.

    Where folders cannot be watched, that is told, and a look is due every other second.
    """
    while True:
        try:
            yield from _watched(task)
        except FileNotFoundError:
            time.sleep(TICK)  # a folder went away before it could be watched
        except (ImportError, OSError, RuntimeError) as error:  # too many to watch, or no such thing here
            tell_blind(str(error))
            break
    while True:
        time.sleep(OFTEN)
        yield


def _watched(task: Task) -> Iterator[None]:
    """Yield at each change, until other folders are there to be watched."""
    from watchfiles import watch

    there = session_folders(task)
    if not there:
        time.sleep(TICK)
        return
    own = os.path.join(os.path.realpath(task.folder), "")
    looked_at = 0.0  # what changed before the folders were watched is seen at the first tick
    for found in watch(
        *sorted(there),
        watch_filter=lambda _, path: not path.startswith(own),
        debounce=DEBOUNCE,
        step=STEP,
        rust_timeout=int(TICK * 1000),
        yield_on_timeout=True,
        ignore_permission_denied=True,
    ):
        is_other = session_folders(task) != there
        if found or is_other or time.monotonic() - looked_at > SELDOM:
            yield
            looked_at = time.monotonic()
        if is_other:
            return
