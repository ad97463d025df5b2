"""What homes hold, in clusters: all files of a conversation together, whichever of the homes they lie in."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import stat

import msgspec

from retold.agents.protocol import Agent, AgentHome, Source
from retold.model.problem import Problem
from retold.model.session import Clue


class Cluster(msgspec.Struct, frozen=True):
    """The files of one cluster."""

    agent: str
    name: str
    sources: tuple[Source, ...]
    size: int


def size_here(source: Source) -> int:
    """Return the bytes of a file on this machine; none of one that nobody may look at."""
    try:
        return stat(source.path).st_size
    except OSError:
        return 0


class Clusters:
    """What was found so far; it grows while homes are looked through."""

    def __init__(self, size_of: Callable[[Source], int] = size_here) -> None:
        self._size_of = size_of
        self.problems: list[tuple[str, Problem]] = []
        """What stood in the way of looking for files, with the agent."""
        self.clues: dict[str, Sequence[Clue]] = {}
        """What the homes say about where projects lie, by home."""
        self.loose: dict[str, list[Source]] = {}
        """Files that hold many conversations, by agent."""

    def found(self, agent: Agent, homes: Iterable[AgentHome]) -> Iterator[Cluster]:
        """Look through homes; yield what they hold."""
        sources: dict[str, Source] = {}
        for home in homes:
            self.clues[str(home.path)] = list(agent.clues(home))
            for found in agent.find(home):
                if isinstance(found, Problem):
                    self.problems.append((agent.NAME, found))
                else:
                    sources.setdefault(str(found.path), found)
        clusters: dict[str | None, list[Source]] = defaultdict(list)
        for source in sources.values():
            clusters[source.cluster].append(source)
        loose = clusters.pop(None, [])
        self.loose[agent.NAME] = sorted(loose, key=lambda source: str(source.path))
        for name, held in clusters.items():
            yield Cluster(agent.NAME, name or "", tuple(held), sum(map(self._size_of, held)))
