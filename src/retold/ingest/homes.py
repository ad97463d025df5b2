"""The homes of an agent: its own, and those that are given."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from retold.agents.protocol import Agent, AgentHome
from retold.reading.disk import Disk

Given = Sequence[tuple[str | None, Path]]


def homes_of(agent: Agent, env: Mapping[str, str], given: Given, disk: Disk) -> Iterator[AgentHome]:
    """Yield each home once, however it was named; those that were given bear their label."""
    seen: set[str] = set()
    own = [(None, home) for home in agent.homes(env, disk)]
    added = [(label, home) for label, folder in given if (home := agent.home_in(folder, disk)) is not None]
    for label, home in (*own, *added):
        real = os.path.realpath(home.sessions)
        if real not in seen:
            seen.add(real)
            yield msgspec.structs.replace(home, label=label, disk=disk)
