"""What of another's archive is to be taken: read with our own reader, and chosen as a sync chooses."""

from collections.abc import Container, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from retold.agents.protocol import Agent, Home, Reading, Source
from retold.archive.foreign import Foreign
from retold.archive.hand import forgotten_ids, forgotten_names
from retold.archive.record import Record
from retold.archive.sessions import clusters
from retold.archive.struck import struck
from retold.archive.taking import sessions_of
from retold.ingest.derive import conversation_name, conversations, scraps
from retold.ingest.foreign_disk import ForeignDisk, ForeignOpenFile, Version
from retold.ingest.leaving import Leaver, Wanted
from retold.ingest.offers import Offer, Offers, Shelf
from retold.ingest.snapshot import LARGEST
from retold.model.problem import Problem, problem
from retold.projects.atlas import Atlas
from retold.reading.files import printable


class Taking(msgspec.Struct, frozen=True):
    """A file, and what of it is to be taken."""

    agent: str
    offer: Offer
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


class Selector:
    """Chooses among the files of one agent."""

    def __init__(self, record: Record, foreign: Foreign, agent: Agent, offers: Offers, atlas: Atlas) -> None:
        self._record, self._foreign, self._agent, self._offers, self._atlas = (
            record,
            foreign,
            agent,
            offers,
            atlas,
        )
        self._forgotten = forgotten_names(record)
        self._disk = ForeignDisk(foreign, {path: offer.versions[0] for path, offer in offers.items()})
        self._shelf = Shelf(record, agent.NAME, foreign)
        self._known = clusters(record, agent.NAME)
        self._found = self._sources()
        self._beside = {
            path: offer for path, offer in offers.items() if offer.is_beside and path not in self._found
        }
        self._held: dict[str, Sequence[int]] = {}
        self._clusters: dict[str, list[Source]] = {}
        for source in self._found.values():
            if source.cluster is not None:
                self._clusters.setdefault(source.cluster, []).append(source)
        self.selection = Selection()

    def select(self, excluded: Sequence[str]) -> Selection:
        """Look through everything that is offered."""
        wanted, lacking = Wanted(self._forgotten, excluded), self._lacking()
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
        for path, names in self._held.items():
            if self._cluster_of(path) not in chosen:
                self.selection.unchanged.update(names)
        for path, source in self._found.items():
            if source.cluster is None:
                self._choose_loose(path, source, wanted, is_needed=None in hints)
        self._tell_strays()
        return self.selection

    def _cluster_of(self, path: str) -> str | None:
        source = self._found.get(path)
        return None if source is None else source.cluster

    def _sources(self) -> dict[str, Source]:
        """Return the files that the agent itself would find, each in the cluster that it gives it."""
        homes = {(offer.home, offer.folder, offer.label) for offer in self._offers.values()}
        found: dict[str, Source] = {}
        for home, folder, label in sorted(homes):
            for source in self._agent.find(Home(Path(home), Path(folder), label, self._disk)):
                if isinstance(source, Source):
                    found.setdefault(str(source.path), source)
        return found

    def _lacking(self) -> set[str]:
        """Return the files that hold what is not known here, whatever its place."""
        found: set[str] = set()
        for path, offer in self._offers.items():
            if path in self._found and self._found[path].cluster is None:
                continue
            if any(self._shelf.lacks(offer, version) for version in offer.versions):
                found.add(path)
            else:
                self._note_held(offer, self._shelf.holder(offer, offer.versions[0]))
        return found

    def _note_held(self, offer: Offer, holder: int | None) -> None:
        """Take note of the sessions that were read here from a file which holds the same."""
        names = [] if holder is None else sessions_of(self._record, holder)
        self._held[offer.path] = names
        if len(offer.names) == len(names) == 1:
            self.selection.aliases[next(iter(offer.names))] = names[0]

    def _choose(self, cluster: str, lacking: Container[str], wanted: Wanted) -> None:
        """Read a cluster, and take the files of those conversations that are kept here.

        All of them, where one is new: what a file says may hang on those that lie around it.
        """
        sources = self._clusters[cluster]
        self._disk.opened.clear()
        readings, versions = [], {}
        for source in sources:
            for version, reading in self._read(source):
                readings.append(reading)
                versions[id(reading)] = version
        taken: set[tuple[str, int]] = set()
        left: set[tuple[str, int]] = set()
        for group, told, session in conversations(self._agent, readings, {}):
            name = conversation_name(self._agent, group)
            placed = replace(session, project=self._atlas.project(session))
            files = {(str(one.source.path), versions[id(one)].original.id) for one in told}
            is_kept = wanted.accepts(name, placed) and not self._is_forgotten(told)
            (taken if is_kept else left).update(files)
            self._tell(name, told, is_kept=is_kept, is_new=any(path in lacking for path, _ in files))
        for source in sources:
            path = str(source.path)
            lacked = self._shelf.lacking_at(self._offers[path])
            self._add(path, cluster, [one for one in lacked if (path, one.original.id) in taken - left])
        if taken - left:
            self._take_beside(cluster)

    def _take_beside(self, cluster: str | None) -> None:
        """Take what was opened on the way: outputs, markers."""
        for path in sorted(self._disk.opened & self._beside.keys()):
            self._add(path, cluster, self._shelf.lacking_at(self._beside.pop(path)), is_beside=True)

    def _read(self, source: Source) -> Iterator[tuple[Version, Reading]]:
        """Yield what a file says, and has said."""
        path = str(source.path)
        for version in self._offers[path].versions:
            self._disk.pin(path, version)
            readings = self._agent.read(source)
            if isinstance(readings, Problem):
                self.selection.problems.append(readings)
                continue
            yield from ((version, reading) for reading in readings)
        self._disk.unpin()

    def _is_forgotten(self, told: Sequence[Reading]) -> bool:
        """Tell whether a conversation is forgotten by the name that it had elsewhere."""
        names = [self._offers[str(reading.source.path)].names for reading in told]
        return any(found and found <= self._forgotten for found in names)

    def _tell(self, name: int, told: Sequence[Reading], *, is_kept: bool, is_new: bool) -> None:
        chosen = self.selection
        if not is_kept:
            chosen.left.add(name)
            return
        for reading in told:
            names = self._offers[str(reading.source.path)].names
            if len(names) == 1:
                chosen.aliases[next(iter(names))] = name
        if name not in self._known:
            chosen.new.add(name)
        else:
            (chosen.merged if is_new else chosen.unchanged).add(name)

    def _add(
        self, path: str, cluster: str | None, versions: Sequence[Version], *, is_beside: bool = False
    ) -> None:
        if versions:
            taking = Taking(self._agent.NAME, self._offers[path], cluster, is_beside, versions)
            self.selection.takings.append(taking)

    def _choose_loose(self, path: str, source: Source, wanted: Wanted, *, is_needed: bool) -> None:
        """Take a file of many conversations, without those that are forgotten, or of which nothing is to be kept."""
        offer = self._offers[path]
        left_out = forgotten_ids(self._record) | self._left_ids(path, source, wanted)
        offered = [
            one for version in offer.versions if (one := self._struck(path, version, left_out)) is not None
        ]
        versions = [one for one in offered if self._shelf.lacks(offer, one)]
        if not versions and not is_needed:
            holder = self._shelf.holder(offer, offered[0]) if offered else None
            held = [] if holder is None else sessions_of(self._record, holder)
            self.selection.unchanged |= {name for name in held if self._known.get(name, "") is None}
            return
        self._disk.opened.clear()
        for version in offered:
            self._disk.pin(path, version)
            readings = self._agent.read(source)
            self._tell_scraps(() if isinstance(readings, Problem) else readings, wanted)
        self._disk.unpin()
        self._add(path, None, versions)
        self._take_beside(None)

    def _left_ids(self, path: str, source: Source, wanted: Wanted) -> frozenset[bytes]:
        """Return the ids of the conversations in a file of which nothing is to be kept, as digests."""
        if not wanted.excluded:
            return frozenset()
        readings: list[Reading] = []
        for version in self._offers[path].versions:
            self._disk.pin(path, version)
            found = self._agent.read(source)
            readings += () if isinstance(found, Problem) else found
        self._disk.unpin()
        leaving = Leaver(self._record, self._agent, wanted, self._atlas).leaving(
            scraps(self._agent, readings), self.selection.left
        )
        self.selection.left |= leaving.names
        return leaving.ids

    def _tell_scraps(self, readings: Sequence[Reading], wanted: Wanted) -> None:
        """Take note of the conversations of which nothing else is kept, as a sync keeps what is said of them."""
        chosen = self.selection
        told = self._known.keys() | chosen.new | chosen.merged | chosen.unchanged
        for group, said in scraps(self._agent, readings).items():
            name = conversation_name(self._agent, group)
            if name in told:
                continue
            session = self._agent.join(said)
            is_kept = wanted.accepts(name, replace(session, project=self._atlas.project(session)))
            (chosen.new if is_kept else chosen.left).add(name)
            (chosen.left if is_kept else chosen.new).discard(name)

    def _struck(self, path: str, version: Version, forgotten: frozenset[bytes]) -> Version | None:
        if not forgotten:
            return version
        if version.size > LARGEST:
            # What is not held in memory is not struck, and so not taken.
            told = f"larger than {LARGEST >> 20} MB, and something is forgotten here: left out"
            self.selection.problems.append(problem("unreadable-file", told, printable(path)))
            return None
        data = struck(ForeignOpenFile(self._foreign, version).read(version.size), forgotten)
        return replace(version, data=data)

    def _tell_strays(self) -> None:
        for path, offer in self._offers.items():
            if path in self._found or offer.is_beside:
                continue
            told = f"{self._agent.NAME} keeps no sessions there: left out"
            self.selection.problems.append(problem("not-a-session", told, printable(path)))
