"""Every conversation in the agents' homes, each once, with a bounded amount in memory at a time."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import msgspec

from retold.agents.protocol import Agent, Home, Reading, Source
from retold.model.problem import Problem
from retold.model.session import Session, View

Groups = dict[str, list[Reading]]
Tell = Callable[[Source | Problem], None]


class Found(msgspec.Struct, frozen=True):
    """What lies in an agent's homes: files that belong together by cluster, and files that hold many conversations."""

    clusters: Mapping[str, Sequence[Source]]
    loose: Sequence[Source]
    problems: Sequence[Problem]

    @property
    def files(self) -> int:
        """How many files there are to read."""
        return len(self.loose) + sum(map(len, self.clusters.values()))


def find_all(agent: Agent, homes: Iterable[Home]) -> Found:
    """Look through the homes; no file is opened."""
    clusters: dict[str, list[Source]] = defaultdict(list)
    loose: list[Source] = []
    problems: list[Problem] = []
    for home in homes:
        for source in agent.find(home):
            if isinstance(source, Problem):
                problems.append(source)
            elif source.cluster is None:
                loose.append(source)
            else:
                clusters[source.cluster].append(source)
    return Found(clusters, loose, problems)


def gather(
    agent: Agent, found: Found, tell: Tell, view: View = "full", *, is_outline: bool = False
) -> Iterator[Session]:
    """Yield every conversation; `tell` hears of each file as it is read and of each that could not be."""
    read = partial(_read, agent, tell=tell, is_outline=is_outline)
    shared: Groups = defaultdict(list)
    for reading in read(found.loose):
        shared[agent.group(reading) or reading.source.shown].append(reading)
    for sources in found.clusters.values():
        groups = _grouped(agent, read(sources), shared)
        yield from agent.relate([agent.join(group, view) for group in groups])
    for group in shared.values():
        yield agent.join(group, view)


def _read(agent: Agent, sources: Iterable[Source], tell: Tell, *, is_outline: bool) -> Iterator[Reading]:
    for source in sources:
        tell(source)
        readings = agent.read(source, is_outline=is_outline)
        if isinstance(readings, Problem):
            tell(readings)
        else:
            yield from readings


def _grouped(agent: Agent, readings: Iterable[Reading], shared: Groups) -> Iterator[Sequence[Reading]]:
    """Yield the readings of each conversation of a cluster, with what files of many conversations say of it."""
    groups: Groups = defaultdict(list)
    scraps: list[Reading] = []
    for reading in readings:
        key = agent.group(reading)
        (scraps if key is None else groups[key]).append(reading)
    for scrap in scraps:
        _home_of(scrap, groups).append(scrap)
    for key, group in groups.items():
        yield [*group, *shared.pop(key, ())]


def _home_of(scrap: Reading, groups: Groups) -> list[Reading]:
    """Return the group in which a file bears the scrap's name; one of its own, if none does."""
    name = _bare(scrap)
    for group in groups.values():
        if any(_bare(reading) == name for reading in group):
            return group
    return groups[scrap.source.shown]


def _bare(reading: Reading) -> str:
    return reading.source.path.name.partition(".")[0]
