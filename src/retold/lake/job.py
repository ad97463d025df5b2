"""A piece of reading that needs nothing else: the files of one cluster, and what other files say of its conversations."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from retold.agents import NAMES
from retold.agents.protocol import Agent, AgentHome, Reading, Source
from retold.agents.registry import AGENTS
from retold.lake.guard import failed, guarded
from retold.lake.remote import shown_path
from retold.lake.told import UnreadFile
from retold.model.problem import Problem
from retold.model.session import Clue
from retold.reading.disk import DISK, Disk, printable
from retold.sessions.conversations import Clusters, Groups, scraps, size_here


class TableJob(msgspec.Struct, frozen=True):
    """The files of one cluster, in whichever homes they lie."""

    agent: str
    sources: tuple[Source, ...]
    said: Groups
    """What files of many conversations say of those of this cluster."""
    size: int
    """Bytes of its files."""


class TablePlan(msgspec.Struct, frozen=True):
    """All that there is to read in some homes."""

    jobs: Sequence[TableJob]
    """The largest first."""
    clues: Mapping[str, Sequence[Clue]]
    """What the homes say about where projects lie, by home."""
    refused: Sequence[UnreadFile]
    """What stood in the way of looking."""


def planned(
    folders: Iterable[tuple[str | None, Path]],
    agents: Sequence[str] = NAMES,
    disk: Disk = DISK,
    size_of: Callable[[Source], int] = size_here,
) -> TablePlan:
    """Look through folders, each with the label of the home that it is or holds, and return what there is to read."""
    held, given = Clusters(size_of), list(folders)
    jobs: list[TableJob] = []
    refused: list[UnreadFile] = []
    for agent in map(AGENTS.__getitem__, agents):
        clusters = list(held.found(guarded(agent, refused), homes_in(agent, given, disk, refused)))
        said = _said(agent, held.loose[agent.NAME], refused)
        jobs += [TableJob(agent.NAME, one.sources, said.pop(one.name, {}), one.size) for one in clusters]
        # Of these nothing is left but what files of many conversations say.
        jobs += [TableJob(agent.NAME, (), left, 0) for left in said.values()]
    refused += [UnreadFile(name, None, problem) for name, problem in held.problems]
    return TablePlan(sorted(jobs, key=_order), held.clues, refused)


def see_that_there_are_homes(plan: TablePlan, patterns: Iterable[str]) -> None:
    """Raise ValueError where no folder is a home: it would look like one in which nothing was said."""
    if not plan.clues and not plan.refused:
        shown = ", ".join(map(shown_path, patterns))
        raise ValueError(
            f"{shown}: no folder that is an agent's home, or holds one; homes side by side are named as homes/*"
        )


def homes_in(
    agent: Agent, folders: Iterable[tuple[str | None, Path]], disk: Disk, refused: list[UnreadFile]
) -> Iterator[AgentHome]:
    """Yield the homes of an agent in folders, each once; where looking fails is added to what was refused."""
    seen: set[Path] = set()
    for label, folder in folders:
        try:
            home = agent.home_in(folder, disk)
        except Exception as error:  # noqa: BLE001 - a bug of ours in one home must not cost the others
            refused.append(failed(agent.NAME, label, printable(folder), error))
            continue
        if home is not None and home.sessions not in seen:
            seen.add(home.sessions)
            yield msgspec.structs.replace(home, label=label)


def _said(
    agent: Agent, loose: Iterable[Source], refused: list[UnreadFile]
) -> dict[str, dict[str, Sequence[Reading]]]:
    """Return what files of many conversations say, by cluster and conversation."""
    readings: list[Reading] = []
    for source in loose:
        found = _read(agent, source)
        if isinstance(found, UnreadFile):
            refused.append(found)
        else:
            readings += found
    try:
        return _clustered(agent, readings)
    except Exception as error:  # noqa: BLE001 - a bug of ours in what logs say must not cost the conversations
        refused.append(failed(agent.NAME, None, readings[0].source.shown if readings else "", error))
        return {}


def _clustered(agent: Agent, readings: Sequence[Reading]) -> dict[str, dict[str, Sequence[Reading]]]:
    clusters: dict[str, dict[str, Sequence[Reading]]] = defaultdict(dict)
    for group, said in scraps(agent, readings).groups.items():
        clusters[agent.cluster_of(said[0].native_id or group)][group] = said
    return clusters


def _read(agent: Agent, source: Source) -> Sequence[Reading] | UnreadFile:
    try:
        found = agent.read(source)
    except Exception as error:  # noqa: BLE001 - a bug of ours in one file must not cost the others
        return failed(agent.NAME, source.label, source.shown, error)
    return UnreadFile(agent.NAME, source.label, found) if isinstance(found, Problem) else found


def _order(job: TableJob) -> tuple[int, str, str]:
    return -job.size, job.agent, str(job.sources[0].path) if job.sources else min(job.said)


def bundled(jobs: Iterable[TableJob], most: int) -> list[list[TableJob]]:
    """Return jobs in bundles of at most so many bytes; what is larger is one by itself."""
    bundles: list[list[TableJob]] = []
    filled = 0
    for job in jobs:
        if not bundles or filled + job.size > most:
            bundles.append([])
            filled = 0
        bundles[-1].append(job)
        filled += job.size
    return bundles
