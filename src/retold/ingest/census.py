"""All conversations of all agents with their projects: what a person has, asked of the homes themselves."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from retold.agents.protocol import Agent, Home
from retold.ingest.gather import Found, Tell, find_all, gather
from retold.model.session import Session, View
from retold.projects.atlas import Atlas


class Census(msgspec.Struct, frozen=True):
    """Where everything lies, found but not yet read."""

    agents: Sequence[Agent]
    homes: Mapping[str, Sequence[Home]]
    found: Mapping[str, Found]
    atlas: Atlas

    @property
    def files(self) -> int:
        """How many files there are to read."""
        return sum(found.files for found in self.found.values())

    def sessions(self, tell: Tell, view: View = "full", *, is_outline: bool = False) -> Iterator[Session]:
        """Yield every conversation with its project; as an outline, perhaps without what was said at length."""
        for agent in self.agents:
            found = self.found[agent.NAME]
            for problem in found.problems:
                tell(problem)
            for session in gather(agent, found, tell, view, is_outline=is_outline):
                yield msgspec.structs.replace(session, project=self.atlas.project(session))


def census(
    agents: Sequence[Agent],
    env: Mapping[str, str],
    given: Sequence[tuple[str | None, Path]],
    remembered: Mapping[str, str],
) -> Census:
    """Find the homes of the environment and those that were given with their labels; open no session."""
    homes = {agent.NAME: list(_homes(agent, env, given)) for agent in agents}
    found = {agent.NAME: find_all(agent, homes[agent.NAME]) for agent in agents}
    clues = {str(home.path): list(agent.clues(home)) for agent in agents for home in homes[agent.NAME]}
    return Census(agents, homes, found, Atlas(clues, remembered, os.getcwd()))


def _homes(agent: Agent, env: Mapping[str, str], given: Sequence[tuple[str | None, Path]]) -> Iterator[Home]:
    """Yield each home once, however it was named."""
    seen: set[str] = set()
    own = [(None, home) for home in agent.homes(env)]
    added = [(label, home) for label, folder in given if (home := agent.home_in(folder)) is not None]
    for label, home in (*own, *added):
        real = os.path.realpath(home.sessions)
        if real not in seen:
            seen.add(real)
            yield msgspec.structs.replace(home, label=label)
