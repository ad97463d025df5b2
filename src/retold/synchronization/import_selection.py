"""What of another's archive is to be taken: read with our own reader, and chosen as a sync chooses."""

import os
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from retold.agents.protocol import Agent, AgentHome, Reading, Source
from retold.archive.annotations import forgotten_ids, forgotten_names, remove_forgotten
from retold.archive.database import RetoldError
from retold.archive.foreign import OtherArchive, own_originals, own_paths, sessions_of
from retold.archive.keyed_hashes import KeyedSet
from retold.archive.queries.lookups import clusters
from retold.archive.store import CHUNK, Store
from retold.model.problem import Problem, problem
from retold.projects.resolver import Atlas
from retold.reading.disk import printable
from retold.sessions.conversations import Place, Scraps, conversation_name, conversations, places, scraps
from retold.synchronization.cluster import KeepPolicy, Leaver
from retold.synchronization.disks import LARGEST, ForeignDisk, ForeignOpenFile, Version
from retold.synchronization.owners import owned

START = "import:"
DEFAULT = "imported"
"""Whose files are that nobody has named."""
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\")
_LONGEST, _LONGEST_LABEL = 4096, 64


def is_label(label: str) -> bool:
    """Tell whether a word can stand for a home."""
    return (
        0 < len(label) <= _LONGEST_LABEL
        and label.isprintable()
        and label.strip(" .") == label
        and not set(label) & set("/\\:=")
    )


def placed(path: str, label: str) -> str | None:
    """Return the path here of a file of another machine; None for one that no agent can have had."""
    is_windows = _WINDOWS.match(path) is not None
    if "\0" in path or len(path) > _LONGEST or not (is_windows or path.startswith("/")):
        return None
    parts = [part for part in re.split(r"[\\/]" if is_windows else "/", path) if part]
    if not parts or any(part in (".", "..") for part in parts):
        return None
    if label_in(path) is None:
        parts.insert(0, START + label)
    return os.sep + os.sep.join(parts)


def label_in(path: str) -> str | None:
    """Return whose a file is that the other has imported itself."""
    match = re.match(rf"[\\/]{START}([^\\/]+)[\\/]", path)
    return match[1] if match and is_label(match[1]) else None


T = TypeVar("T")


class ImportOffer(msgspec.Struct):
    """A file of the other's, where it gets its place here."""

    path: str
    home: str
    folder: str
    label: str
    hint: str | None
    """The cluster that the other had it in."""
    is_beside: bool
    versions: list[Version]
    """What it held, the latest first."""
    names: set[int]
    """The other's sessions that were read from it."""


Offers = dict[str, ImportOffer]
"""By path."""


def offers_of(
    foreign: OtherArchive, label: str, agents: Iterable[str]
) -> tuple[dict[str, Offers], dict[str, set[str]], list[str]]:
    """Return what is offered by agent; the places that each home gets; and the files that get none."""
    kept, holders = _by_file(foreign.originals()), _by_file(foreign.holders())
    found: dict[str, Offers] = {agent: {} for agent in agents}
    homes: defaultdict[str, set[str]] = defaultdict(set)
    strays: list[str] = []
    for file in foreign.files():
        whose = label_in(file.path) or (file.label if file.label and is_label(file.label) else label)
        path, home, folder = (placed(path, whose) for path in (file.path, file.home, file.folder))
        if path is None or home is None or folder is None or file.agent not in found:
            strays.append(file.path)
            continue
        homes[file.home].add(home)
        versions = [Version(original) for original in kept.get(file.id, ())]
        _add(found[file.agent], ImportOffer(
            path, home, folder, whose, file.cluster, file.is_beside, versions, set(holders.get(file.id, ()))
        ))  # fmt: skip
    return found, homes, strays


def _by_file(rows: Iterable[tuple[int, T]]) -> Mapping[int, list[T]]:
    found: defaultdict[int, list[T]] = defaultdict(list)
    for number, one in rows:
        found[number].append(one)
    return found


def _add(offers: Offers, offer: ImportOffer) -> None:
    """Add a file; two of the other's may be one here, if it has imported what it also reads itself."""
    known = offers.setdefault(offer.path, offer)
    if known is not offer:
        known.versions += offer.versions
        known.names |= offer.names
    known.versions.sort(key=lambda one: (one.original.modified_ns, one.size, one.original.id), reverse=True)


class OfferedFiles:
    """What this archive has of one agent's files, by where they lie in their homes."""

    def __init__(self, record: Store, agent: str, foreign: OtherArchive) -> None:
        self._record, self._foreign = record, foreign
        self._sources: defaultdict[str, list[int]] = defaultdict(list)
        self._at: dict[str, int] = {}
        for number, path, home, folder in own_paths(record, agent):
            self._sources[_inner(path, home, folder)].append(number)
            self._at[path] = number

    def lacks(self, offer: ImportOffer, version: Version) -> bool:
        """Tell whether no file in the same place of a home holds this, or begins with it."""
        return self.holder(offer, version) is None

    def lacking_at(self, offer: ImportOffer) -> list[Version]:
        """Return what a file holds that is not known of it, whatever others hold."""
        own = [self._at[offer.path]] if offer.path in self._at else []
        return [version for version in offer.versions if self._holder(own, version) is None]

    def holder(self, offer: ImportOffer, version: Version) -> int | None:
        """Return the file of ours that holds this already, or more of it."""
        return self._holder(self._sources.get(_inner(offer.path, offer.home, offer.folder), ()), version)

    def _holder(self, sources: Iterable[int], version: Version) -> int | None:
        for source in sources:
            if any(
                _may_begin(version, size, modified_ns) and self._is_begin(version, number)
                for number, size, modified_ns in own_originals(self._record, source)
            ):
                return source
        return None

    def _is_begin(self, version: Version, number: int) -> bool:
        originals = self._record.originals
        place, file = 0, ForeignOpenFile(self._foreign, version)
        if version.data is None:
            ours = zip(originals.digests(number), (size for _, size in originals.pieces(number)), strict=True)
            for (_, name, size), own in zip(self._foreign.pieces(version.original), ours, strict=False):
                if (name, size) != own:
                    break
                place += size
        file.seek(place)
        while place < version.size:
            data = file.read(CHUNK)
            if data != originals.data(number, place, len(data)):
                return False
            place += len(data)
        return True


def _may_begin(version: Version, size: int, modified_ns: int) -> bool:
    """Tell whether an original may say all that a version says: a later one that is shorter says something else."""
    return size == version.size or (size > version.size and modified_ns >= version.original.modified_ns)


def _inner(path: str, home: str, folder: str) -> str:
    """Return where a file lies in its home, whatever the home's own place."""
    for kind, place in (("sessions", folder), ("home", home)):
        below = place.rstrip(os.sep) + os.sep
        if path.startswith(below):
            return f"{kind}{os.sep}{path[len(below) :]}"
    return path


class Taking(msgspec.Struct, frozen=True):
    """A file, and what of it is to be taken."""

    agent: str
    offer: ImportOffer
    cluster: str | None
    is_beside: bool
    versions: Sequence[Version]


class Selection(msgspec.Struct):
    """What is to be taken of one agent, and what becomes of the conversations in it."""

    takings: list[Taking] = []
    new: set[int] = set()
    """The names of sessions that are not known here."""
    merged: set[int] = set()
    """Those of which there is more than is known here."""
    unchanged: set[int] = set()
    left: set[int] = set()
    """Those that are forgotten here, or of a project of which nothing is kept."""
    aliases: dict[int, int] = {}
    """Sessions that have another name here, because it is made of where their files lie."""
    problems: list[Problem] = []


class _Conversation(msgspec.Struct, frozen=True):
    """A conversation as our own reader tells it, and what becomes of it."""

    name: int
    readings: Sequence[Reading]
    files: frozenset[tuple[str, int]]
    """Where it stands: paths, each with the number of an original."""
    is_kept: bool
    """Whether it is neither forgotten here, nor of a project of which nothing is kept."""


class Selector:
    """Chooses among the files of one agent."""

    def __init__(
        self, record: Store, foreign: OtherArchive, agent: Agent, offers: Offers, atlas: Atlas
    ) -> None:
        self._record, self._foreign, self._agent, self._offers, self._atlas = (
            record,
            foreign,
            agent,
            offers,
            atlas,
        )
        self._forgotten = forgotten_names(record)
        self._disk = ForeignDisk(foreign, {path: offer.versions[0] for path, offer in offers.items()})
        self._shelf = OfferedFiles(record, agent.NAME, foreign)
        self._known = clusters(record, agent.NAME)
        self._found = self._sources()
        self._beside = {
            path: offer for path, offer in offers.items() if offer.is_beside and path not in self._found
        }
        self._held: dict[str, Sequence[int]] = {}
        self._places: dict[Place, int] = {}
        """The names of the conversations that were read, by the folders and ids under which their prompts are logged."""
        self._clusters: dict[str, list[Source]] = {}
        for source in self._found.values():
            if source.cluster is not None:
                self._clusters.setdefault(source.cluster, []).append(source)
        self.selection = Selection()

    def select(self, excluded: Sequence[str]) -> Selection:
        """Look through everything that is offered."""
        wanted, lacking = KeepPolicy(self._forgotten, excluded), self._lacking()
        hints = {offer.hint for path, offer in self._beside.items() if path in lacking}
        waiting = [
            cluster
            for cluster, sources in self._clusters.items()
            if cluster in hints or any(str(source.path) in lacking for source in sources)
        ]
        chosen: set[str] = set()
        while waiting:
            cluster = waiting.pop()
            if cluster not in chosen:
                chosen.add(cluster)
                self._choose(cluster, lacking, wanted)
                # What one conversation goes on from may stand in the file of another.
                waiting += [
                    told for path in self._disk.opened if (told := self._cluster_of(path)) is not None
                ]
        for path, source in self._found.items():
            if source.cluster is None:
                self._choose_loose(path, source, wanted, is_needed=None in hints)
        self._tell_strays()
        self._tell_unread(chosen)
        return self.selection

    def _cluster_of(self, path: str) -> str | None:
        source = self._found.get(path)
        return None if source is None else source.cluster

    def _sources(self) -> dict[str, Source]:
        """Return the files that the agent itself would find, each in the cluster that it gives it."""
        homes = {(offer.home, offer.folder, offer.label) for offer in self._offers.values()}
        found: dict[str, Source] = {}
        for home, folder, label in sorted(homes):
            for source in self._agent.find(AgentHome(Path(home), Path(folder), label, self._disk)):
                if isinstance(source, Source):
                    found.setdefault(str(source.path), source)
        return found

    def _lacking(self) -> set[str]:
        """Return the files that hold what is not known here, whatever its place."""
        found: set[str] = set()
        for path, offer in self._offers.items():
            if path in self._found and self._found[path].cluster is None:
                continue
            holders = [self._shelf.holder(offer, version) for version in offer.versions]
            if holders[0] is None or None in holders:
                found.add(path)
            else:
                self._note_held(offer, holders[0])
        return found

    def _note_held(self, offer: ImportOffer, holder: int) -> None:
        """Take note of the sessions that were read here from a file which holds the same."""
        names = sessions_of(self._record, holder)
        self._held[offer.path] = names
        if len(offer.names) == len(names) == 1:
            self.selection.aliases[next(iter(offer.names))] = names[0]

    def _choose(self, cluster: str, lacking: Container[str], wanted: KeepPolicy) -> None:
        """Read a cluster, and take the files of those conversations that are kept here.

        All of them, where one is new: what a file says may hang on those that lie around it.
        """
        self._disk.opened.clear()
        found = self._conversations(cluster, wanted)
        left = {file for one in found if not one.is_kept for file in one.files}
        taken = {file for one in found for file in one.files} - left
        for one in found:
            self._tell(one, lacking, left)
        for source in self._clusters[cluster]:
            path = str(source.path)
            lacked = self._shelf.lacking_at(self._offers[path])
            self._add(path, cluster, [one for one in lacked if (path, one.original.id) in taken])
        if taken:
            self._take_beside(cluster)

    def _conversations(self, cluster: str, wanted: KeepPolicy) -> list[_Conversation]:
        readings, versions = [], {}
        for source in self._clusters[cluster]:
            for version, reading in self._read(source):
                readings.append(reading)
                versions[id(reading)] = version
        found = []
        for group, told, session in conversations(self._agent, readings, Scraps(), fail=self._fail):
            name = conversation_name(self._agent, group)
            placed = replace(session, project=self._atlas.project(session))
            self._places |= dict.fromkeys(places(self._agent, told), name)
            files = frozenset((str(one.source.path), versions[id(one)].original.id) for one in told)
            is_kept = wanted.accepts(name, placed) and not self._is_forgotten(told)
            found.append(_Conversation(name, told, files, is_kept))
        return found

    def _take_beside(self, cluster: str | None) -> None:
        """Take what was opened on the way: outputs, markers."""
        for path in sorted(self._disk.opened & self._beside.keys()):
            self._add(path, cluster, self._shelf.lacking_at(self._beside.pop(path)), is_beside=True)

    def _read(self, source: Source) -> Iterator[tuple[Version, Reading]]:
        """Yield what a file says, and has said."""
        path = str(source.path)
        for version in self._offers[path].versions:
            self._disk.pin(path, version)
            readings = self._said(source)
            if isinstance(readings, Problem):
                self.selection.problems.append(readings)
                continue
            yield from ((version, reading) for reading in readings)
        self._disk.unpin()

    def _said(self, source: Source) -> Sequence[Reading] | Problem:
        """Return what a file says; a problem where our own reader fails on it, and then it is not taken."""
        try:
            return self._agent.read(source)
        except RetoldError:
            raise
        except Exception as error:  # noqa: BLE001 - one bad file costs no other
            return _failure(source, error)

    def _fail(self, readings: Sequence[Reading], error: Exception) -> None:
        """Take note that the agent failed on what files say."""
        if isinstance(error, RetoldError):
            raise error
        problems = (_failure(reading.source, error) for reading in readings)
        self.selection.problems.extend(dict.fromkeys(problems))

    def _is_forgotten(self, told: Sequence[Reading]) -> bool:
        """Tell whether a conversation is forgotten by the name that it had elsewhere."""
        names = [self._offers[str(reading.source.path)].names for reading in told]
        return any(found and all(name in self._forgotten for name in found) for found in names)

    def _tell(self, one: _Conversation, lacking: Container[str], left: set[tuple[str, int]]) -> None:
        """Take note of what becomes of a conversation, when it is known which files are left."""
        chosen = self.selection
        if not one.is_kept:
            chosen.left.add(one.name)
            return
        for reading in one.readings:
            names = self._offers[str(reading.source.path)].names
            if len(names) == 1:
                chosen.aliases[next(iter(names))] = one.name
        for path in sorted({path for path, _ in one.files & left if path in lacking}):
            told = "what is forgotten here, or not kept, stands in the same file: left out"
            chosen.problems.append(problem("unreadable-file", told, printable(path)))
        rest = one.files - left
        if one.name in self._known:
            (chosen.merged if any(path in lacking for path, _ in rest) else chosen.unchanged).add(one.name)
        else:
            (chosen.new if rest else chosen.left).add(one.name)

    def _tell_unread(self, read: Container[str]) -> None:
        """Take note of the other's conversations of which nothing had to be read; each counts once."""
        chosen = self.selection
        chosen.left -= chosen.new | chosen.merged
        told = chosen.new | chosen.merged | chosen.left
        for path, offer in self._offers.items():
            if self._cluster_of(path) in read:
                continue
            names = {chosen.aliases.get(name, name) for name in offer.names or self._held.get(path, ())}
            here = names if path in self._held else names & self._known.keys()
            chosen.unchanged |= here - told
            chosen.left |= names - here - told
        chosen.unchanged -= told

    def _add(
        self, path: str, cluster: str | None, versions: Sequence[Version], *, is_beside: bool = False
    ) -> None:
        if versions:
            taking = Taking(self._agent.NAME, self._offers[path], cluster, is_beside, versions)
            self.selection.takings.append(taking)

    def _choose_loose(self, path: str, source: Source, wanted: KeepPolicy, *, is_needed: bool) -> None:
        """Take a file of many conversations, without those that are forgotten, or of which nothing is to be kept."""
        offer = self._offers[path]
        left_out = forgotten_ids(self._record) | self._left_ids(path, source, wanted)
        offered = [
            one for version in offer.versions if (one := self._struck(path, version, left_out)) is not None
        ]
        versions = [one for one in offered if self._shelf.lacks(offer, one)]
        if not versions and not is_needed:
            return
        self._disk.opened.clear()
        for version in offered:
            self._disk.pin(path, version)
            readings = self._said(source)
            if isinstance(readings, Problem):
                self.selection.problems.append(readings)
            else:
                self._tell_scraps(readings, wanted)
        self._disk.unpin()
        self._add(path, None, versions)
        self._take_beside(None)

    def _left_ids(self, path: str, source: Source, wanted: KeepPolicy) -> frozenset[bytes]:
        """Return the ids of the conversations in a file of which nothing is to be kept, as digests."""
        if not wanted.excluded:
            return frozenset()
        readings: list[Reading] = []
        for version in self._offers[path].versions:
            self._disk.pin(path, version)
            found = self._said(source)
            readings += () if isinstance(found, Problem) else found
        self._disk.unpin()
        leaving = Leaver(self._record, self._agent, wanted, self._atlas).leaving(
            scraps(self._agent, readings, self._fail), self.selection.left
        )
        self.selection.left |= leaving.names
        return leaving.ids

    def _tell_scraps(self, readings: Sequence[Reading], wanted: KeepPolicy) -> None:
        """Take note of the conversations of which nothing else is kept, as a sync keeps what is said of them."""
        chosen = self.selection
        told = self._known.keys() | chosen.new | chosen.merged | chosen.unchanged
        for name, said in owned(
            self._record, self._agent, scraps(self._agent, readings, self._fail), self._known
        ).said.items():
            if name in told or any(self._places.get(place) in told for place in places(self._agent, said)):
                continue
            try:
                session = self._agent.join(said)
            except Exception as error:  # noqa: BLE001 - one bad conversation costs no other
                self._fail(said, error)
                continue
            is_kept = wanted.accepts(name, replace(session, project=self._atlas.project(session)))
            (chosen.new if is_kept else chosen.left).add(name)
            (chosen.left if is_kept else chosen.new).discard(name)

    def _struck(self, path: str, version: Version, forgotten: KeyedSet) -> Version | None:
        if not forgotten:
            return version
        if version.size > LARGEST:
            # What is not held in memory is not struck, and so not taken.
            told = f"larger than {LARGEST >> 20} MB, and something is forgotten here: left out"
            self.selection.problems.append(problem("unreadable-file", told, printable(path)))
            return None
        data = remove_forgotten(ForeignOpenFile(self._foreign, version).read(version.size), forgotten)
        return replace(version, data=data)

    def _tell_strays(self) -> None:
        for path, offer in self._offers.items():
            if path in self._found or offer.is_beside:
                continue
            told = f"{self._agent.NAME} keeps no sessions there: left out"
            self.selection.problems.append(problem("not-a-session", told, printable(path)))


def _failure(source: Source, error: Exception) -> Problem:
    return problem("reader-failed", f"{type(error).__name__}: {error}", source.shown)
