"""A conversation written back into its agent's home, so that the agent itself lists it and goes on with it."""

import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from retold.agents.protocol import Addition, Agent, AgentHome, Lost, Restored, RestoreRefused, Target
from retold.agents.registry import AGENTS
from retold.archive.database import RetoldError
from retold.archive.store import Store
from retold.care.additions import add, remove_drafts
from retold.care.programs import installed_version
from retold.model.session import View
from retold.sessions.load import load_for_restore

_QUIET, _PATIENCE, _STEP = 2.0, 15.0, 0.1
"""Seconds for which nothing may have been written where we write, and how long that is waited for."""


class Wish(msgspec.Struct, frozen=True):
    """How a conversation is to be written back."""

    home: str | None = None
    """A folder that is or holds the agent's home; None for the agent's own."""
    project: str | None = None
    """Where the project lies now; None for where it lay."""
    version: str | None = None
    view: View | None = None
    is_clean: bool = False


class RestorePlan(msgspec.Struct, frozen=True):
    """What will be written, and where."""

    agent: Agent
    home: AgentHome
    root: str | None
    restored: Restored

    @property
    def additions(self) -> tuple[Addition, ...]:
        """The files, the conversation last."""
        return self.restored.additions


def planned(record: Store, key: str, wish: Wish, env: Mapping[str, str]) -> RestorePlan:
    """Return what has to be written; raises Stopped where it cannot be, with why."""
    found = load_for_restore(record, key)
    if found is None:
        raise RetoldError(f"no session {key} in the archive")
    agent = AGENTS[found.session.agent]
    home = _home(agent, wish, env)
    root = _root(found, wish)
    version = wish.version or installed_version(agent, env)
    target = Target(home, root, datetime.now(UTC), version, wish.view, wish.is_clean)
    restored = agent.restore(found, target)
    if isinstance(restored, RestoreRefused):
        raise RetoldError(restored.why)
    if restored.native_id.startswith("-"):
        raise RetoldError(f"{key}: the agent would take its id for an option: {restored.native_id}")
    return RestorePlan(agent, home, root, restored)


def write(plan: RestorePlan) -> None:
    """Write what was planned, when nothing else is being written there."""
    remove_drafts(plan.additions, plan.home)
    if plan.additions:
        _wait_for_quiet(plan.additions[-1].path.parent)
        add(plan.additions, plan.home)


def _home(agent: Agent, wish: Wish, env: Mapping[str, str]) -> AgentHome:
    if wish.home is None:
        home = next(agent.homes(env))
    else:
        given = os.path.abspath(wish.home)
        home = agent.home_in(Path(given)) or next(agent.homes({"HOME": given, "USERPROFILE": given}))
    for place in (Path(wish.home) if wish.home else home.path, home.path, home.sessions):
        if place.exists() and not place.is_dir():
            raise RetoldError(f"{place} is no folder; nothing was written")
    return home


def _root(found: Lost, wish: Wish) -> str | None:
    root = os.path.realpath(wish.project) if wish.project else found.session.project.root
    if root is not None and not os.path.isdir(root):
        raise RetoldError(
            f"the folder of its project is gone ({root}): make it again, or name another with --project; nothing was written"
        )
    return root


def _wait_for_quiet(folder: Path) -> None:
    """Wait until nobody has written to a folder for a moment; a running agent may be in the middle of something."""
    ends = time.monotonic() + _PATIENCE
    while time.time() - _last_written(folder) < _QUIET:
        if time.monotonic() > ends:
            raise RetoldError(
                f"{folder} is being written to by a running agent: end it first; nothing was written"
            )
        time.sleep(_STEP)


def _last_written(folder: Path) -> float:
    try:
        with os.scandir(folder) as entries:
            return max((entry.stat(follow_symlinks=False).st_mtime for entry in entries), default=0.0)
    except OSError:
        return 0.0
