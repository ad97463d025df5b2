"""A piece of reading that needs nothing else: the files of one cluster, and what other files say of its conversations."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, cast

import msgspec
from msgspec.structs import replace

from retold.agents import NAMES
from retold.agents.protocol import Agent, AgentHome, Reading, Source
from retold.agents.registry import AGENTS
from retold.lake.remote import shown_path
from retold.lake.session_rows import UnreadFile, shown_name
from retold.model.problem import Problem, problem
from retold.model.session import Clue
from retold.reading.disk import DISK, Disk, printable
from retold.sessions.conversations import Clusters, Groups, conversation_name, heads, scraps, size_here

_LOG = logging.getLogger(__name__)
T = TypeVar("T")


def failed(agent: str, home: str | None, path: str, error: Exception) -> UnreadFile:
    """Return what a bug is told as; it is logged with where in the code it happened."""
    message = f"{type(error).__name__}: {error}"
    _LOG.error("%s: %s", path, message, exc_info=error)
    return UnreadFile(agent, home, problem("reader-failed", message, path))


def guarded(agent: Agent, refused: list[UnreadFile]) -> Agent:
    """Return an agent that looks through homes; one in which that fails is added to what was refused."""
    # Who looks through homes asks for no more than these three.
    return cast("Agent", _Guarded(agent, refused))


class _Guarded:
    """An agent as far as it looks through homes."""

    def __init__(self, agent: Agent, refused: list[UnreadFile]) -> None:
        self.NAME = agent.NAME
        self._agent, self._refused = agent, refused

    def clues(self, home: AgentHome) -> Iterator[Clue]:
        return self._held(home, lambda: self._agent.clues(home))

    def find(self, home: AgentHome) -> Iterator[Source | Problem]:
        return self._held(home, lambda: self._agent.find(home))

    def _held(self, home: AgentHome, found: Callable[[], Iterable[T]]) -> Iterator[T]:
        """Yield what is found in a home, up to where that fails."""
        try:
            yield from found()
        except Exception as error:  # noqa: BLE001 - the top of looking through a home
            self._refused.append(failed(self.NAME, home.label, printable(home.path), error))


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


class Spread(msgspec.Struct, frozen=True):
    """A conversation that several jobs tell: what it is called, and its files, as tables have both."""

    agent: str
    conversation: str
    paths: tuple[str, ...]


def encoded(several: Iterable[Spread]) -> str:
    """Return conversations as an option that can be handed on."""
    return msgspec.json.encode(list(several), order="deterministic").decode()


def decoded(text: str) -> tuple[Spread, ...]:
    """Understand what was handed on; raises ValueError for anything else."""
    try:
        return msgspec.json.decode(text, type=tuple[Spread, ...])
    except msgspec.DecodeError as error:
        raise ValueError(f"together is not what `spread` returns: {error}") from None


def reunited(plan: TablePlan, several: Sequence[Spread]) -> TablePlan:
    """Return a plan in which each of some conversations is read by one job; the largest is still the first."""
    if not several:
        return plan
    places = _places(plan.jobs)
    told = ([place for sign in _signs(one) for place in places.get(sign, ())] for one in several)
    held: dict[int, list[TableJob]] = {}
    for head, job in zip(heads(len(plan.jobs), filter(None, told)), plan.jobs, strict=True):
        held.setdefault(head, []).append(job)
    jobs = [jobs[0] if len(jobs) == 1 else _joined(jobs) for jobs in held.values()]
    return replace(plan, jobs=sorted(jobs, key=lambda job: -job.size))


def _places(jobs: Sequence[TableJob]) -> dict[tuple[str, str], list[int]]:
    """Return where the jobs are that hold a file, or something said of a conversation."""
    found: dict[tuple[str, str], list[int]] = {}
    for place, job in enumerate(jobs):
        for sign in _known(job):
            found.setdefault((job.agent, sign), []).append(place)
    return found


def _known(job: TableJob) -> Iterator[str]:
    yield from (source.shown for source in job.sources)
    yield from (shown_name(conversation_name(AGENTS[job.agent], group)) for group in job.said)


def _signs(one: Spread) -> Iterator[tuple[str, str]]:
    yield from ((one.agent, sign) for sign in (one.conversation, *one.paths))


def _joined(jobs: Sequence[TableJob]) -> TableJob:
    sources = tuple(source for job in jobs for source in job.sources)
    said = {group: readings for job in jobs for group, readings in job.said.items()}
    return TableJob(jobs[0].agent, sources, said, sum(job.size for job in jobs))
