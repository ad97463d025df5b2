"""The selection of an import: the files of another archive that are new here, read and chosen as a sync would."""

import os
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from retold.agents.protocol import Agent, AgentHome, Reading, Source
from retold.archive.annotations import KeyedSet, load_forgotten_ids, load_forgotten_uids, remove_forgotten
from retold.archive.database import RetoldError
from retold.archive.foreign import OtherArchive, load_file_paths, load_originals, load_session_uids
from retold.archive.queries.lookups import OriginalVersion, load_clusters
from retold.archive.store import CHUNK, Store
from retold.model.problem import Problem, problem
from retold.projects.resolver import ProjectResolver
from retold.reading.disk import printable_path
from retold.sessions.conversations import (
    LogPlace,
    Scraps,
    conversation_uid,
    group_scraps,
    join_conversations,
    log_places,
)
from retold.synchronization.cluster import KeepPolicy
from retold.synchronization.import_offers import FileVersion, OfferedDisk, OfferedFile, OfferedOpenFile
from retold.synchronization.plan import assign_scraps, find_exclusions
from retold.synchronization.snapshot import LARGEST


class OwnFiles:
    """The files of one agent in this archive, by their places in their homes."""

    def __init__(self, store: Store, agent: str, foreign: OtherArchive) -> None:
        self._store, self._foreign = store, foreign
        self._by_place: defaultdict[str, list[int]] = defaultdict(list)
        self._by_path: dict[str, int] = {}
        for file in load_file_paths(store, agent):
            self._by_place[_place_in_home(file.path, file.home, file.folder)].append(file.id)
            self._by_path[file.path] = file.id

    def missing_versions(self, file: OfferedFile) -> list[FileVersion]:
        """Return the versions that the same file here lacks, even if other files have them."""
        own = [self._by_path[file.path]] if file.path in self._by_path else []
        return [version for version in file.versions if self._find(own, version) is None]

    def find(self, file: OfferedFile, version: FileVersion) -> int | None:
        """Return the file in the same place of a home that has a version, or begins with it; None if there is none."""
        return self._find(self._by_place.get(_place_in_home(file.path, file.home, file.folder), ()), version)

    def _find(self, files: Iterable[int], version: FileVersion) -> int | None:
        for file in files:
            if any(
                _may_begin_with(original, version) and self._begins_with(original.id, version)
                for original in load_originals(self._store, file)
            ):
                return file
        return None

    def _begins_with(self, original: int, version: FileVersion) -> bool:
        originals = self._store.originals
        offset, file = 0, OfferedOpenFile(self._foreign, version)
        if version.data is None:
            sizes = (size for _, size in originals.pieces(original))
            own = zip(originals.digests(original), sizes, strict=True)
            for (_, digest, size), chunk in zip(self._foreign.pieces(version.original), own, strict=False):
                if (digest, size) != chunk:
                    break
                offset += size
        file.seek(offset)
        while offset < version.size:
            data = file.read(CHUNK)
            if data != originals.read(original, offset, len(data)):
                return False
            offset += len(data)
        return True


def _may_begin_with(original: OriginalVersion, version: FileVersion) -> bool:
    """Return whether an original may begin with a version: a version that is later and shorter differs."""
    return original.size == version.size or (
        original.size > version.size and original.modified_ns >= version.original.modified_ns
    )


def _place_in_home(path: str, home: str, folder: str) -> str:
    """Return the path of a file relative to its home, wherever the home is."""
    for kind, parent in (("sessions", folder), ("home", home)):
        below = parent.rstrip(os.sep) + os.sep
        if path.startswith(below):
            return f"{kind}{os.sep}{path[len(below) :]}"
    return path


class ImportedFile(msgspec.Struct, frozen=True):
    """A file with the versions to import."""

    agent: str
    file: OfferedFile
    cluster: str | None
    is_companion: bool
    versions: Sequence[FileVersion]


class ImportSelection(msgspec.Struct):
    """The files of one agent to import, and the uids of the conversations in them by what becomes of each."""

    files: list[ImportedFile] = []
    new: set[int] = set()
    merged: set[int] = set()
    """Conversations that get more than they have here."""
    unchanged: set[int] = set()
    excluded: set[int] = set()
    """Conversations that are forgotten here, or of an excluded project."""
    aliases: dict[int, int] = {}
    """The uids here of conversations with another uid there: a uid may depend on the paths of the files."""
    problems: list[Problem] = []


class _OfferedConversation(msgspec.Struct, frozen=True):
    """A conversation in offered files."""

    uid: int
    readings: Sequence[Reading]
    files: frozenset[tuple[str, int]]
    """The paths of its files with the originals that have it."""
    is_accepted: bool
    """Whether it is neither forgotten here nor of an excluded project."""


class ImportSelector:
    """Selects among the offered files of one agent."""

    def __init__(
        self,
        store: Store,
        foreign: OtherArchive,
        agent: Agent,
        files: Mapping[str, OfferedFile],
        resolver: ProjectResolver,
    ) -> None:
        self._store, self._foreign, self._agent = store, foreign, agent
        self._files, self._resolver = files, resolver
        self._forgotten = load_forgotten_uids(store)
        self._disk = OfferedDisk(foreign, files)
        self._own_files = OwnFiles(store, agent.NAME, foreign)
        self._known = load_clusters(store, agent.NAME)
        self._sources = self._find_sources()
        self._companions = {
            path: file for path, file in files.items() if file.is_companion and path not in self._sources
        }
        self._archived: dict[str, Sequence[int]] = {}
        """The uids of conversations here, by the path of an offered file with nothing new."""
        self._log_places: dict[LogPlace, int] = {}
        """The uids of the conversations that were read."""
        self._clusters: dict[str, list[Source]] = {}
        for source in self._sources.values():
            if source.cluster is not None:
                self._clusters.setdefault(source.cluster, []).append(source)
        self.selection = ImportSelection()

    def select(self, excluded: Sequence[str]) -> ImportSelection:
        """Return the selection, without the conversations of excluded projects."""
        policy, new_paths = KeepPolicy(self._forgotten, excluded), self._find_new_files()
        hints = {file.cluster for path, file in self._companions.items() if path in new_paths}
        waiting = [
            cluster
            for cluster, sources in self._clusters.items()
            if cluster in hints or any(str(source.path) in new_paths for source in sources)
        ]
        read: set[str] = set()
        while waiting:
            cluster = waiting.pop()
            if cluster not in read:
                read.add(cluster)
                self._select_cluster(cluster, new_paths, policy)
                # The file of one conversation may contain the start of another.
                opened = (self._cluster_of(path) for path in self._disk.opened)
                waiting += [found for found in opened if found is not None]
        for path, source in self._sources.items():
            if source.cluster is None:
                self._select_shared_file(path, source, policy, is_needed=None in hints)
        for path, file in self._files.items():
            if path not in self._sources and not file.is_companion:
                message = f"{self._agent.NAME} keeps no sessions there: left out"
                self.selection.problems.append(problem("not-a-session", message, printable_path(path)))
        self._count_unread(read)
        return self.selection

    def _cluster_of(self, path: str) -> str | None:
        source = self._sources.get(path)
        return None if source is None else source.cluster

    def _find_sources(self) -> dict[str, Source]:
        """Return the files that the agent finds on the offered disk, with their clusters."""
        homes = {(file.home, file.folder, file.label) for file in self._files.values()}
        sources: dict[str, Source] = {}
        for home, folder, label in sorted(homes):
            for source in self._agent.find_sources(AgentHome(Path(home), Path(folder), label, self._disk)):
                if isinstance(source, Source):
                    sources.setdefault(str(source.path), source)
        return sources

    def _find_new_files(self) -> set[str]:
        """Return the paths of files with content that no file here has in the same place of a home."""
        new: set[str] = set()
        for path, file in self._files.items():
            if path in self._sources and self._sources[path].cluster is None:
                continue
            own = [self._own_files.find(file, version) for version in file.versions]
            if own[0] is None or None in own:
                new.add(path)
            else:
                uids = load_session_uids(self._store, own[0])
                self._archived[path] = uids
                if len(file.uids) == len(uids) == 1:
                    self.selection.aliases[next(iter(file.uids))] = uids[0]
        return new

    def _select_cluster(self, cluster: str, new_paths: Container[str], policy: KeepPolicy) -> None:
        """Read a cluster, and select the files of its accepted conversations.

        All of them if one is new: the meaning of a file may depend on the others.
        """
        self._disk.opened.clear()
        joined = self._join_cluster(cluster, policy)
        excluded = {file for one in joined if not one.is_accepted for file in one.files}
        accepted = {file for one in joined for file in one.files} - excluded
        for one in joined:
            self._count(one, new_paths, excluded)
        for source in self._clusters[cluster]:
            path = str(source.path)
            missing = self._own_files.missing_versions(self._files[path])
            self._add(path, cluster, [one for one in missing if (path, one.original.id) in accepted])
        if accepted:
            self._add_companions(cluster)

    def _join_cluster(self, cluster: str, policy: KeepPolicy) -> list[_OfferedConversation]:
        readings, versions = [], {}
        for source in self._clusters[cluster]:
            for version, reading in self._read_versions(source):
                readings.append(reading)
                versions[id(reading)] = version
        joined = []
        for group, own, session in join_conversations(
            self._agent, readings, Scraps(), fail=self._record_failure
        ):
            uid = conversation_uid(self._agent, group)
            session_here = replace(session, project=self._resolver.resolve(session))
            self._log_places |= dict.fromkeys(log_places(self._agent, own), uid)
            files = frozenset((str(one.source.path), versions[id(one)].original.id) for one in own)
            is_accepted = policy.accepts(uid, session_here) and not self._is_forgotten(own)
            joined.append(_OfferedConversation(uid, own, files, is_accepted))
        return joined

    def _add_companions(self, cluster: str | None) -> None:
        """Select the companion files that were opened with the others, such as tool outputs and markers."""
        for path in sorted(self._disk.opened & self._companions.keys()):
            versions = self._own_files.missing_versions(self._companions.pop(path))
            self._add(path, cluster, versions, is_companion=True)

    def _add(
        self, path: str, cluster: str | None, versions: Sequence[FileVersion], *, is_companion: bool = False
    ) -> None:
        if versions:
            file = ImportedFile(self._agent.NAME, self._files[path], cluster, is_companion, versions)
            self.selection.files.append(file)

    def _read_versions(self, source: Source) -> Iterator[tuple[FileVersion, Reading]]:
        """Yield the readings of all versions of a file."""
        path = str(source.path)
        for version in self._files[path].versions:
            self._disk.pin(path, version)
            readings = self._read(source)
            if isinstance(readings, Problem):
                self.selection.problems.append(readings)
                continue
            yield from ((version, reading) for reading in readings)
        self._disk.unpin()

    def _read(self, source: Source) -> Sequence[Reading] | Problem:
        """Return the readings of a file; a problem if the reader fails on it, and then it is not imported."""
        try:
            return self._agent.read(source)
        except RetoldError:
            raise
        except Exception as error:  # noqa: BLE001 - one bad file costs no other
            return _failure(source, error)

    def _record_failure(self, readings: Sequence[Reading], error: Exception) -> None:
        """Record that the agent failed on readings."""
        if isinstance(error, RetoldError):
            raise error
        problems = (_failure(reading.source, error) for reading in readings)
        self.selection.problems.extend(dict.fromkeys(problems))

    def _is_forgotten(self, readings: Sequence[Reading]) -> bool:
        """Return whether a conversation is forgotten here under the uid that it has there."""
        groups = [self._files[str(reading.source.path)].uids for reading in readings]
        return any(uids and all(uid in self._forgotten for uid in uids) for uids in groups)

    def _count(
        self, one: _OfferedConversation, new_paths: Container[str], excluded: set[tuple[str, int]]
    ) -> None:
        """Count a conversation of a cluster that was read."""
        selection = self.selection
        if not one.is_accepted:
            selection.excluded.add(one.uid)
            return
        for reading in one.readings:
            uids = self._files[str(reading.source.path)].uids
            if len(uids) == 1:
                selection.aliases[next(iter(uids))] = one.uid
        for path in sorted({path for path, _ in one.files & excluded if path in new_paths}):
            message = "what is forgotten here, or not kept, stands in the same file: left out"
            selection.problems.append(problem("unreadable-file", message, printable_path(path)))
        rest = one.files - excluded
        if one.uid in self._known:
            has_more = any(path in new_paths for path, _ in rest)
            (selection.merged if has_more else selection.unchanged).add(one.uid)
        else:
            (selection.new if rest else selection.excluded).add(one.uid)

    def _count_unread(self, read: Container[str]) -> None:
        """Count the conversations in clusters that were not read, each once."""
        selection = self.selection
        selection.excluded -= selection.new | selection.merged
        counted = selection.new | selection.merged | selection.excluded
        for path, file in self._files.items():
            if self._cluster_of(path) in read:
                continue
            uids = {selection.aliases.get(uid, uid) for uid in file.uids or self._archived.get(path, ())}
            here = uids if path in self._archived else uids & self._known.keys()
            selection.unchanged |= here - counted
            selection.excluded |= uids - here - counted
        selection.unchanged -= counted

    def _select_shared_file(self, path: str, source: Source, policy: KeepPolicy, *, is_needed: bool) -> None:
        """Select a file that holds many conversations, without the forgotten and excluded ones."""
        file = self._files[path]
        excluded = load_forgotten_ids(self._store) | self._excluded_ids(path, source, policy)
        cleaned = (self._clean(path, version, excluded) for version in file.versions)
        offered = [version for version in cleaned if version is not None]
        versions = [version for version in offered if self._own_files.find(file, version) is None]
        if not versions and not is_needed:
            return
        self._disk.opened.clear()
        for version in offered:
            self._disk.pin(path, version)
            readings = self._read(source)
            if isinstance(readings, Problem):
                self.selection.problems.append(readings)
            else:
                self._count_scraps(readings, policy)
        self._disk.unpin()
        self._add(path, None, versions)
        self._add_companions(None)

    def _excluded_ids(self, path: str, source: Source, policy: KeepPolicy) -> frozenset[bytes]:
        """Return the digests of the ids of the excluded conversations in a file."""
        if not policy.excluded:
            return frozenset()
        readings: list[Reading] = []
        for version in self._files[path].versions:
            self._disk.pin(path, version)
            found = self._read(source)
            readings += () if isinstance(found, Problem) else found
        self._disk.unpin()
        scraps = group_scraps(self._agent, readings, self._record_failure)
        exclusions = find_exclusions(
            self._store, self._agent, policy, self._resolver, scraps, self.selection.excluded
        )
        self.selection.excluded |= exclusions.uids
        return exclusions.ids

    def _count_scraps(self, readings: Sequence[Reading], policy: KeepPolicy) -> None:
        """Count the conversations of which only scraps are left."""
        selection = self.selection
        counted = self._known.keys() | selection.new | selection.merged | selection.unchanged
        scraps = group_scraps(self._agent, readings, self._record_failure)
        for uid, own in assign_scraps(self._store, self._agent, scraps, self._known).readings.items():
            places = log_places(self._agent, own)
            if uid in counted or any(self._log_places.get(place) in counted for place in places):
                continue
            try:
                session = self._agent.join(own)
            except Exception as error:  # noqa: BLE001 - one bad conversation costs no other
                self._record_failure(own, error)
                continue
            is_accepted = policy.accepts(uid, replace(session, project=self._resolver.resolve(session)))
            (selection.new if is_accepted else selection.excluded).add(uid)
            (selection.excluded if is_accepted else selection.new).discard(uid)

    def _clean(self, path: str, version: FileVersion, forgotten: KeyedSet) -> FileVersion | None:
        """Return a version without the records of forgotten conversations; None, and a problem, if it is too large."""
        if not forgotten:
            return version
        if version.size > LARGEST:
            message = f"larger than {LARGEST >> 20} MB, and something is forgotten here: left out"
            self.selection.problems.append(problem("unreadable-file", message, printable_path(path)))
            return None
        data = OfferedOpenFile(self._foreign, version).read(version.size)
        return replace(version, data=remove_forgotten(data, forgotten))


def _failure(source: Source, error: Exception) -> Problem:
    return problem("reader-failed", f"{type(error).__name__}: {error}", source.display_path)
