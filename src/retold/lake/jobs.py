"""Jobs: the files of one cluster, with the scraps of its conversations from files that hold many conversations."""

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
from retold.lake.session_rows import UnreadFile, format_uid
from retold.model.problem import Problem, problem
from retold.model.session import Clue
from retold.reading.disk import DISK, Disk, printable_path
from retold.sessions.conversations import (
    ClusterFinder,
    Groups,
    conversation_uid,
    group_scraps,
    local_size,
    merge_sets,
)

_LOG = logging.getLogger(__name__)
T = TypeVar("T")


def report_failure(agent: str, home: str | None, path: str, error: Exception) -> UnreadFile:
    """Log a bug with its traceback and return it as a problem of a file."""
    message = f"{type(error).__name__}: {error}"
    _LOG.error("%s: %s", path, message, exc_info=error)
    return UnreadFile(agent, home, problem("reader-failed", message, path))


class _GuardedAgent:
    """The functions of an agent that search homes; a failure in one home becomes an unread file."""

    def __init__(self, agent: Agent, unread: list[UnreadFile]) -> None:
        self.NAME = agent.NAME
        self._agent, self._unread = agent, unread

    def find_clues(self, home: AgentHome) -> Iterator[Clue]:
        return self._guard(home, lambda: self._agent.find_clues(home))

    def find_sources(self, home: AgentHome) -> Iterator[Source | Problem]:
        return self._guard(home, lambda: self._agent.find_sources(home))

    def _guard(self, home: AgentHome, find: Callable[[], Iterable[T]]) -> Iterator[T]:
        """Yield the results of a search in a home, up to its failure."""
        try:
            yield from find()
        except Exception as error:  # noqa: BLE001 - a bug in one home must not cost the others
            self._unread.append(report_failure(self.NAME, home.label, printable_path(home.path), error))


class TableJob(msgspec.Struct, frozen=True):
    """The files of one cluster from all homes. It can be read without anything else."""

    agent: str
    sources: tuple[Source, ...]
    scraps: Groups
    """Readings of this cluster from files that hold many conversations."""
    size: int
    """Bytes of its files."""


class TablePlan(msgspec.Struct, frozen=True):
    """All jobs for some homes."""

    jobs: Sequence[TableJob]
    """The largest first."""
    clues: Mapping[str, Sequence[Clue]]
    """The clues of each home about the folders of its projects."""
    unread: Sequence[UnreadFile]
    """Files and folders that could not be read while planning."""


def plan_jobs(
    folders: Iterable[tuple[str | None, Path]],
    agents: Sequence[str] = NAMES,
    disk: Disk = DISK,
    size_of: Callable[[Source], int] = local_size,
) -> TablePlan:
    """Return the jobs for folders, each given with a label, that are homes or hold one."""
    finder, given = ClusterFinder(size_of), list(folders)
    jobs: list[TableJob] = []
    unread: list[UnreadFile] = []
    for agent in map(AGENTS.__getitem__, agents):
        # The finder calls no other function of the agent.
        guarded = cast("Agent", _GuardedAgent(agent, unread))
        clusters = list(finder.find(guarded, find_homes(agent, given, disk, unread)))
        scraps = _read_shared(agent, finder.shared_files[agent.NAME], unread)
        jobs += [TableJob(agent.NAME, one.sources, scraps.pop(one.name, {}), one.size) for one in clusters]
        # The rest is known from the shared files only.
        jobs += [TableJob(agent.NAME, (), groups, 0) for groups in scraps.values()]
    unread += [UnreadFile(name, None, problem) for name, problem in finder.problems]
    return TablePlan(sorted(jobs, key=_order), finder.clues, unread)


def require_homes(plan: TablePlan, patterns: Iterable[str]) -> None:
    """Raise ValueError if no folder is a home: the result would look like a home without sessions."""
    if not plan.clues and not plan.unread:
        shown = ", ".join(map(shown_path, patterns))
        raise ValueError(
            f"{shown}: no folder that is an agent's home, or holds one; homes side by side are named as homes/*"
        )


def find_homes(
    agent: Agent, folders: Iterable[tuple[str | None, Path]], disk: Disk, unread: list[UnreadFile]
) -> Iterator[AgentHome]:
    """Yield the homes of an agent in folders, each once; add folders in which the search fails to `unread`."""
    seen: set[Path] = set()
    for label, folder in folders:
        try:
            home = agent.find_home(folder, disk)
        except Exception as error:  # noqa: BLE001 - a bug in one home must not cost the others
            unread.append(report_failure(agent.NAME, label, printable_path(folder), error))
            continue
        if home is not None and home.sessions not in seen:
            seen.add(home.sessions)
            yield msgspec.structs.replace(home, label=label)


def _read_shared(
    agent: Agent, files: Iterable[Source], unread: list[UnreadFile]
) -> dict[str, dict[str, Sequence[Reading]]]:
    """Return the readings of files that hold many conversations, by cluster and conversation."""
    readings: list[Reading] = []
    for source in files:
        try:
            result = agent.read(source)
        except Exception as error:  # noqa: BLE001 - a bug in one file must not cost the others
            unread.append(report_failure(agent.NAME, source.label, source.display_path, error))
            continue
        if isinstance(result, Problem):
            unread.append(UnreadFile(agent.NAME, source.label, result))
        else:
            readings += result
    clusters: dict[str, dict[str, Sequence[Reading]]] = defaultdict(dict)
    try:
        for group, members in group_scraps(agent, readings).groups.items():
            clusters[agent.cluster_of(members[0].native_id or group)][group] = members
    except Exception as error:  # noqa: BLE001 - a bug in logs must not cost the conversations
        path = readings[0].source.display_path if readings else ""
        unread.append(report_failure(agent.NAME, None, path, error))
        return {}
    return clusters


def _order(job: TableJob) -> tuple[int, str, str]:
    return -job.size, job.agent, str(job.sources[0].path) if job.sources else min(job.scraps)


def bundle_jobs(jobs: Iterable[TableJob], most: int) -> list[list[TableJob]]:
    """Return jobs in bundles of at most `most` bytes; a larger job is a bundle by itself."""
    bundles: list[list[TableJob]] = []
    size = 0
    for job in jobs:
        if not bundles or size + job.size > most:
            bundles.append([])
            size = 0
        bundles[-1].append(job)
        size += job.size
    return bundles


class SplitConversation(msgspec.Struct, frozen=True):
    """A conversation that several jobs read in parts: its uid and its files, as in the table `sessions`."""

    agent: str
    conversation: str
    paths: tuple[str, ...]


def encode_split(conversations: Iterable[SplitConversation]) -> str:
    """Return conversations as the text of the option `together`."""
    return msgspec.json.encode(list(conversations), order="deterministic").decode()


def decode_split(text: str) -> tuple[SplitConversation, ...]:
    """Return the conversations of the option `together`; raise ValueError for any other text."""
    try:
        return msgspec.json.decode(text, type=tuple[SplitConversation, ...])
    except msgspec.DecodeError as error:
        raise ValueError(f"together is not what `find_split_conversations` returns: {error}") from None


def join_split(plan: TablePlan, split: Sequence[SplitConversation]) -> TablePlan:
    """Return a plan in which one job reads each of the split conversations; the largest is still the first."""
    if not split:
        return plan
    jobs_by_name = _jobs_by_name(plan.jobs)
    sets = (
        [
            number
            for name in (one.conversation, *one.paths)
            for number in jobs_by_name.get((one.agent, name), ())
        ]
        for one in split
    )
    members: dict[int, list[TableJob]] = {}
    for first, job in zip(merge_sets(len(plan.jobs), filter(None, sets)), plan.jobs, strict=True):
        members.setdefault(first, []).append(job)
    jobs = [jobs[0] if len(jobs) == 1 else _join_jobs(jobs) for jobs in members.values()]
    return replace(plan, jobs=sorted(jobs, key=lambda job: -job.size))


def _jobs_by_name(jobs: Sequence[TableJob]) -> dict[tuple[str, str], list[int]]:
    """Return the numbers of the jobs that hold a file or scraps of a conversation, by agent and path or uid."""
    numbers: dict[tuple[str, str], list[int]] = {}
    for number, job in enumerate(jobs):
        uids = (format_uid(conversation_uid(AGENTS[job.agent], group)) for group in job.scraps)
        for name in (*(source.display_path for source in job.sources), *uids):
            numbers.setdefault((job.agent, name), []).append(number)
    return numbers


def _join_jobs(jobs: Sequence[TableJob]) -> TableJob:
    sources = tuple(source for job in jobs for source in job.sources)
    scraps = {group: readings for job in jobs for group, readings in job.scraps.items()}
    return TableJob(jobs[0].agent, sources, scraps, sum(job.size for job in jobs))
