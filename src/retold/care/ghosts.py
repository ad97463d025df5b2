"""Ghosts removed, so that the agent does not delete what they stand beside."""

import os
from collections.abc import Iterable, Iterator, Mapping

from retold.agents.protocol import Agent, AgentHome, Ghost
from retold.agents.registry import AGENTS
from retold.archive.queries.lookups import latest_at
from retold.archive.store import Store


def own_homes(env: Mapping[str, str]) -> Iterator[tuple[Agent, AgentHome]]:
    """Yield the homes in which the agents of this machine work, where they are there."""
    for agent in AGENTS.values():
        yield from ((agent, home) for home in agent.homes(env) if os.path.isdir(home.path))


def remove_ghosts(record: Store, homes: Iterable[tuple[Agent, AgentHome]]) -> list[Ghost]:
    """Remove the ghosts that the archive holds byte for byte, beside files that are there; return them."""
    return [
        ghost
        for agent, home in homes
        for ghost in list(agent.ghosts(home))
        if _is_removed(record, agent, ghost)
    ]


def _is_removed(record: Store, agent: Agent, ghost: Ghost) -> bool:
    path = str(ghost.source.path)
    kept = latest_at(record, agent.NAME, path)
    try:
        seen = os.lstat(path)
        if kept is None or (seen.st_size, seen.st_mtime_ns) != kept[1:]:
            return False
        with open(path, "rb") as file:
            if file.read() != record.originals.data(kept[0]):
                return False
        now = os.lstat(path)
        is_same = (now.st_ino, now.st_size, now.st_mtime_ns) == (seen.st_ino, seen.st_size, seen.st_mtime_ns)
        if not is_same or not any(real.is_file() for real in ghost.real):
            return False
        os.unlink(path)
    except OSError:
        return False  # gone, or not ours to remove: the next call finds it again
    return True
