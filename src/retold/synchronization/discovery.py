"""What lies in the agents' homes now, compared with what the archive knows."""

import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from retold.agents.protocol import Agent, AgentHome, Source
from retold.archive.keyed_hashes import HiddenPaths, is_stored_hidden
from retold.archive.queries.lookups import file_rows, unkept_files
from retold.archive.store import Store, as_path, as_stored
from retold.archive.sync_state import clues_of
from retold.model.problem import Problem
from retold.model.session import Clue
from retold.reading.disk import DISK, Disk, DiskEntry, OpenFile
from retold.synchronization.fingerprints import (
    ENV,
    FILE,
    FOLDER,
    HELD,
    REVISION,
    UNSURE,
    env_answer,
    file_answer,
    folder_answer,
    tail,
)

Answer = tuple[str, str | bytes, object]
"""Of which kind, what about, and what was answered."""


class RecordingDisk:
    """The disk of this machine, watched."""

    def __init__(self) -> None:
        self._folders: dict[str, int | None] = {}
        self._files: dict[str, str | None] = {}

    def open(self, path: str) -> OpenFile:
        """Open a file."""
        self._files.setdefault(path, file_answer(path))
        return DISK.open(path)

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        """Return what a folder holds."""
        self._look(folder)
        return DISK.entries(folder)

    def is_folder(self, path: str) -> bool:
        """Tell whether a folder is there."""
        self._look(path)
        return DISK.is_folder(path)

    def is_file(self, path: str) -> bool:
        """Tell whether a file is there."""
        self._files.setdefault(path, file_answer(path))
        return DISK.is_file(path)

    def is_link(self, path: str) -> bool:
        """Tell whether a link is there."""
        return DISK.is_link(path)

    def _look(self, folder: str) -> None:
        # Before it is listed: what is put in meanwhile then shows as a change.
        self._folders.setdefault(folder, folder_answer(folder, time.time_ns()))

    def answers(self) -> Iterator[Answer]:
        """Yield what was asked, and what was answered."""
        yield from ((FOLDER, as_stored(path), answer) for path, answer in self._folders.items())
        yield from ((FILE, as_stored(path), answer) for path, answer in self._files.items())


class RecordingEnv(Mapping[str, str]):
    """The environment, watched."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._asked: dict[str, str | None] = {}

    def __getitem__(self, name: str) -> str:
        self._asked[name] = self._env.get(name)
        return self._env[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._env)

    def __len__(self) -> int:
        return len(self._env)

    def answers(self) -> Iterator[Answer]:
        """Yield what was asked, and what was answered."""
        return ((ENV, name, env_answer(self._asked, name)) for name in self._asked)


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


class FoundRow(msgspec.Struct, frozen=True):
    """A file in the archive's list."""

    id: int
    path: str
    home: str
    cluster: str | None
    size: int
    modified_ns: int
    tail: bytes
    read_ns: int
    revision: int
    is_there: int
    identity: str

    @property
    def is_sure(self) -> bool:
        """Whether a later change must have changed the file's time."""
        return self.modified_ns < self.read_ns - UNSURE


class Discovery(msgspec.Struct, frozen=True):
    """All files of one agent, those that are there and those that were."""

    agent: Agent
    sources: Mapping[str, Source]
    problems: Sequence[Problem]
    clues: Mapping[str, Sequence[Clue]]
    rows: Mapping[str, FoundRow]
    changed: frozenset[str]
    is_kept_only: bool = False
    """Whether no home was looked at."""

    @property
    def gone(self) -> list[int]:
        """The files that were there and are not any more; of homes that were not looked at, nothing is known."""
        return [
            row.id
            for path, row in self.rows.items()
            if row.is_there and path not in self.sources and row.home in self.clues
        ]

    @property
    def loose(self) -> list[str]:
        """The files that hold many conversations."""
        there = {path for path, source in self.sources.items() if source.cluster is None}
        return sorted(there | {path for path, row in self.rows.items() if row.cluster is None})

    def clusters(self) -> dict[str, list[Source]]:
        """Return the files that are there, by cluster."""
        found: dict[str, list[Source]] = defaultdict(list)
        for source in self.sources.values():
            if source.cluster is not None:
                found[source.cluster].append(source)
        return found

    def again(self, record: Store) -> "Discovery":
        """Return the same files as the archive has them by now."""
        rows = _rows(record, self.agent.NAME, self.sources)
        return replace(self, rows=rows, sources=_placed(self.sources, rows))

    def stale(self) -> set[str]:
        """Return the clusters of which a file changed, or was read by an older reader."""
        changed = {self.sources[path].cluster for path in self.changed}
        older = {row.cluster for row in self.rows.values() if row.revision < REVISION}
        return {cluster for cluster in changed | older if cluster is not None}


def discover(  # noqa: PLR0913 - all that a look depends on
    record: Store, agent: Agent, env: RecordingEnv, given: Given, witness: RecordingDisk, *, has_choice: bool
) -> tuple[Discovery, list[Answer]]:
    """Look through the homes of an agent; return what is there, and how each file answered.

    Where it was chosen anew what is kept, files of which nothing is kept, or not all, count as never read.
    """
    homes = list(homes_of(agent, env, given, witness))
    sources: dict[str, Source] = {}
    problems: list[Problem] = []
    for home in homes:
        for found in agent.find(home):
            if isinstance(found, Problem):
                problems.append(found)
            else:
                sources.setdefault(str(found.path), found)
    unread = unkept_files(record, agent.NAME) if has_choice else set()
    rows = {
        path: row
        for path, row in _rows(record, agent.NAME, sources).items()
        if row.id not in unread and not (has_choice and row.cluster is None)
    }
    answers: list[Answer] = []
    changed = set()
    for path in sources:
        answer, is_changed = _compared(path, rows.get(path))
        answers.append((HELD, as_stored(path), answer))
        if is_changed:
            changed.add(path)
    clues = {str(home.path): list(_clues(record, agent, home)) for home in homes}
    return Discovery(agent, _placed(sources, rows), problems, clues, rows, frozenset(changed)), answers


def kept_only(record: Store, agent: Agent) -> Discovery:
    """Return what the archive keeps of an agent, as if it had no home."""
    rows = _rows(record, agent.NAME, {})
    return Discovery(agent, {}, (), {}, rows, frozenset(), is_kept_only=True)


def _placed(sources: Mapping[str, Source], rows: Mapping[str, FoundRow]) -> dict[str, Source]:
    """Return files with the clusters that they belong to: those of their names, unless more is known by now."""
    return {path: _in_cluster(source, rows.get(path)) for path, source in sources.items()}


def _in_cluster(source: Source, row: FoundRow | None) -> Source:
    # What an older reader knew of it is found out anew.
    is_known = row is not None and None not in (row.cluster, source.cluster) and row.revision in (0, REVISION)
    if row is None or not is_known or row.cluster == source.cluster:
        return source
    return replace(source, cluster=row.cluster)


def _clues(record: Store, agent: Agent, home: AgentHome) -> Iterator[Clue]:
    """Yield what a home says about its projects, and what it has said and does not deny: it may be half deleted."""
    told = list(agent.clues(home))
    yield from told
    known = {(clue.native_key, clue.evidence) for clue in told}
    kept = [Clue(*row) for row in sorted(clues_of(record, str(home.path)), key=str)]
    yield from (clue for clue in kept if (clue.native_key, clue.evidence) not in known)


def _compared(path: str, row: FoundRow | None) -> tuple[str | None, bool]:
    """Return how a file answers, and whether it is new or changed."""
    answer = file_answer(path)
    if (
        row is None
        or not row.is_there
        or row.revision < REVISION
        or answer != f"{row.size} {row.modified_ns} {row.identity}"
    ):
        is_sure = answer is not None and int(answer.split(" ", 2)[1]) < time.time_ns() - UNSURE
        return answer if is_sure else f"{answer} unsure", True
    if row.is_sure:
        return answer, False
    ends = tail(path)
    return f"{answer} {ends}", ends != row.tail.hex()


def _rows(record: Store, agent: str, sources: Mapping[str, Source]) -> dict[str, FoundRow]:
    """Return the archive's rows by path; of a hidden path only where the file is there, for nothing else tells it."""
    rows: dict[str, FoundRow] = {}
    hidden_rows: dict[str, FoundRow] = {}
    for number, path, home, *rest in file_rows(record, agent):
        row = FoundRow(number, as_path(path), as_path(home), *rest)
        (hidden_rows if is_stored_hidden(path) else rows)[row.path] = row
    if hidden_rows:
        hidden = HiddenPaths(record)
        for path, source in sources.items():
            row_there = hidden_rows.get(hidden.stored(path)) if path in hidden else None
            if row_there is not None:
                rows.setdefault(path, replace(row_there, path=path, cluster=source.cluster))
    return rows
