"""Discovery: the files in the homes of an agent, compared with those in the archive."""

import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from retold.agents.protocol import Agent, AgentHome, Source
from retold.archive.annotations import HiddenPaths, is_hidden_path
from retold.archive.queries.lookups import load_file_rows, load_files_without_content
from retold.archive.store import Store, as_path, as_stored
from retold.archive.sync_state import load_clues
from retold.model.problem import Problem
from retold.model.session import Clue
from retold.reading.disk import DISK, Disk, DiskEntry, OpenFile
from retold.synchronization.fingerprints import (
    ENV,
    FILE,
    FOLDER,
    REVISION,
    SOURCE,
    FileMarks,
    check_changed,
    env_fingerprint,
    file_fingerprint,
    folder_fingerprint,
)


class Dependency(NamedTuple):
    """The fingerprint of something that a sync looked at."""

    kind: str
    subject: str | bytes
    fingerprint: object


class RecordingDisk:
    """The disk of this machine, with a record of everything that is looked at."""

    def __init__(self) -> None:
        self._folders: dict[str, int | None] = {}
        self._files: dict[str, str | None] = {}

    def open(self, path: str) -> OpenFile:
        """Open a file."""
        self._record_file(path)
        return DISK.open(path)

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        """Return the entries of a folder."""
        self._record_folder(folder)
        return DISK.entries(folder)

    def is_folder(self, path: str) -> bool:
        """Return whether there is a folder."""
        self._record_folder(path)
        return DISK.is_folder(path)

    def is_file(self, path: str) -> bool:
        """Return whether there is a file."""
        self._record_file(path)
        return DISK.is_file(path)

    def is_link(self, path: str) -> bool:
        """Return whether there is a link."""
        return DISK.is_link(path)

    def _record_file(self, path: str) -> None:
        if path not in self._files:
            self._files[path] = file_fingerprint(path)

    def _record_folder(self, folder: str) -> None:
        # Before the folder is listed, so that a file that is added meanwhile counts as a change.
        if folder not in self._folders:
            self._folders[folder] = folder_fingerprint(folder, time.time_ns())

    def dependencies(self) -> Iterator[Dependency]:
        """Yield the files and folders that were looked at."""
        for path, modified_ns in self._folders.items():
            yield Dependency(FOLDER, as_stored(path), modified_ns)
        for path, fingerprint in self._files.items():
            yield Dependency(FILE, as_stored(path), fingerprint)


class RecordingEnv(Mapping[str, str]):
    """The environment, with a record of the variables that are looked at."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._seen: dict[str, str | None] = {}

    def __getitem__(self, name: str) -> str:
        self._seen[name] = self._env.get(name)
        return self._env[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._env)

    def __len__(self) -> int:
        return len(self._env)

    def dependencies(self) -> Iterator[Dependency]:
        """Yield the variables that were looked at."""
        return (Dependency(ENV, name, env_fingerprint(self._seen, name)) for name in self._seen)


GivenHomes = Sequence[tuple[str | None, str]]
"""Homes from the command line and the settings, with their labels."""


def find_homes(agent: Agent, env: Mapping[str, str], given: GivenHomes, disk: Disk) -> Iterator[AgentHome]:
    """Yield each home once, also if several names lead to it; given homes have their labels."""
    seen: set[str | None] = set()
    own = [(None, home) for home in agent.find_homes(env, disk)]
    others = [(label, agent.find_home(Path(folder), disk)) for label, folder in given]
    for label, home in (*own, *others):
        real = None if home is None else os.path.realpath(home.sessions)
        if home is not None and real not in seen:
            seen.add(real)
            yield replace(home, label=label, disk=disk)


class SourceRow(msgspec.Struct, frozen=True):
    """A file as the archive lists it."""

    id: int
    path: str
    home: str
    cluster: str | None
    size: int
    modified_ns: int
    tail: bytes
    read_ns: int
    revision: int
    is_present: int
    identity: str

    @property
    def marks(self) -> FileMarks | None:
        """The marks of an unchanged file; None if the file has to be read even if it has not changed."""
        if not self.is_present or self.revision < REVISION:
            return None
        return FileMarks(self.size, self.modified_ns, self.tail, self.read_ns, self.identity)


class Discovery(msgspec.Struct, frozen=True):
    """All files of one agent: those in its homes, and those that the archive lists."""

    agent: Agent
    sources: Mapping[str, Source]
    problems: Sequence[Problem]
    clues: Mapping[str, Sequence[Clue]]
    rows: Mapping[str, SourceRow]
    changed: frozenset[str]
    is_archive_only: bool = False
    """Whether no home was looked at."""

    @property
    def deleted(self) -> list[int]:
        """The ids of files that are gone from the homes that were looked at."""
        return [
            row.id
            for path, row in self.rows.items()
            if row.is_present and path not in self.sources and row.home in self.clues
        ]

    @property
    def shared_files(self) -> list[str]:
        """The paths of files that hold many conversations."""
        present = {path for path, source in self.sources.items() if source.cluster is None}
        return sorted(present | {path for path, row in self.rows.items() if row.cluster is None})

    def clusters(self) -> dict[str, list[Source]]:
        """Return the files in the homes, by cluster."""
        clusters: dict[str, list[Source]] = defaultdict(list)
        for source in self.sources.values():
            if source.cluster is not None:
                clusters[source.cluster].append(source)
        return clusters

    def reload(self, store: Store) -> "Discovery":
        """Return the same files with what the archive lists by now."""
        rows = _load_rows(store, self.agent.NAME, self.sources)
        return replace(self, rows=rows, sources=_assign_clusters(self.sources, rows))

    def stale_clusters(self) -> set[str]:
        """Return the clusters with a file that changed, or that an older version of the reader has read."""
        changed = {self.sources[path].cluster for path in self.changed}
        older = {row.cluster for row in self.rows.values() if row.revision < REVISION}
        return {cluster for cluster in changed | older if cluster is not None}


def discover(  # noqa: PLR0913 - everything that a result depends on
    store: Store,
    agent: Agent,
    env: RecordingEnv,
    given: GivenHomes,
    disk: RecordingDisk,
    *,
    has_new_exclusions: bool,
) -> tuple[Discovery, list[Dependency]]:
    """Find the files in the homes of an agent; return them, and the fingerprint of each.

    With new exclusions, files without kept content, and those that hold many conversations, count as never read.
    """
    homes = list(find_homes(agent, env, given, disk))
    sources: dict[str, Source] = {}
    problems: list[Problem] = []
    for home in homes:
        for source in agent.find_sources(home):
            if isinstance(source, Problem):
                problems.append(source)
            else:
                sources.setdefault(str(source.path), source)
    unread = load_files_without_content(store, agent.NAME) if has_new_exclusions else set()
    rows = {
        path: row
        for path, row in _load_rows(store, agent.NAME, sources).items()
        if row.id not in unread and not (has_new_exclusions and row.cluster is None)
    }
    dependencies: list[Dependency] = []
    changed = set()
    for path in sources:
        row = rows.get(path)
        fingerprint, is_changed = check_changed(path, None if row is None else row.marks)
        dependencies.append(Dependency(SOURCE, as_stored(path), fingerprint))
        if is_changed:
            changed.add(path)
    clues = {str(home.path): list(_merge_clues(store, agent, home)) for home in homes}
    sources = _assign_clusters(sources, rows)
    return Discovery(agent, sources, problems, clues, rows, frozenset(changed)), dependencies


def discover_archived(store: Store, agent: Agent) -> Discovery:
    """Return the files that the archive lists of an agent, without a look at its homes."""
    rows = _load_rows(store, agent.NAME, {})
    return Discovery(agent, {}, (), {}, rows, frozenset(), is_archive_only=True)


def _assign_clusters(sources: Mapping[str, Source], rows: Mapping[str, SourceRow]) -> dict[str, Source]:
    """Return files with their clusters: by their names, unless the present reader has found another."""
    return {path: _assign_cluster(source, rows.get(path)) for path, source in sources.items()}


def _assign_cluster(source: Source, row: SourceRow | None) -> Source:
    # The result of an older reader does not count.
    is_known = row is not None and None not in (row.cluster, source.cluster) and row.revision in (0, REVISION)
    if row is None or not is_known or row.cluster == source.cluster:
        return source
    return replace(source, cluster=row.cluster)


def _merge_clues(store: Store, agent: Agent, home: AgentHome) -> Iterator[Clue]:
    """Yield the clues of a home, then earlier ones that it does not contradict: it may be half deleted."""
    clues = list(agent.find_clues(home))
    yield from clues
    known = {(clue.native_key, clue.evidence) for clue in clues}
    earlier = [Clue(*row) for row in sorted(load_clues(store, str(home.path)), key=str)]
    yield from (clue for clue in earlier if (clue.native_key, clue.evidence) not in known)


def _load_rows(store: Store, agent: str, sources: Mapping[str, Source]) -> dict[str, SourceRow]:
    """Return the archive's rows by path. Only the file itself can tell the path of a hidden row."""
    rows: dict[str, SourceRow] = {}
    hidden_rows: dict[str, SourceRow] = {}
    for number, path, home, *rest in load_file_rows(store, agent):
        row = SourceRow(number, as_path(path), as_path(home), *rest)
        (hidden_rows if is_hidden_path(path) else rows)[row.path] = row
    if hidden_rows:
        hidden = HiddenPaths(store)
        for path, source in sources.items():
            hidden_row = hidden_rows.get(hidden.placeholder(path)) if path in hidden else None
            if hidden_row is not None:
                rows.setdefault(path, replace(hidden_row, path=path, cluster=source.cluster))
    return rows
