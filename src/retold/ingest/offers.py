"""What another's archive offers, file by file, and what of it this one has not."""

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from retold.archive.foreign import OtherArchive, own_originals, own_paths
from retold.archive.store import CHUNK, Store
from retold.ingest.elsewhere import is_label, label_in, placed
from retold.ingest.foreign_disk import ForeignOpenFile, Version

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
