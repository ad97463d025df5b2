"""Sessions as a dataset of Parquet files: only what has changed is written, and whoever reads it sees whole files."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from retold.archive.record import Record
from retold.ingest.revision import REVISION
from retold.ingest.shares import shared_out
from retold.lake.folder import Folder
from retold.lake.items import Choice, Item, items
from retold.lake.manifest import Manifest, Part
from retold.lake.parts import write_part
from retold.lake.plan import Plan, planned
from retold.lake.seal import kept_seal
from retold.lake.telling import as_told, told
from retold.lake.told import Refused, Told
from retold.model.tables import VERSION
from retold.redaction import Redactor
from retold.redaction.report import Removal

Show = Callable[[int, int], None]
"""Is told how far it is."""


class Outcome(msgspec.Struct, frozen=True):
    """What became of a dataset."""

    written: int
    """Sessions in parts that were written."""
    unchanged: int
    removed: int
    removals: list[Removal]
    """What was taken out of what was written."""


class _Written(msgspec.Struct, frozen=True):
    """A part that a process wrote."""

    place: int
    files: dict[str, int]
    removals: list[Removal]


class Dataset:
    """What a dataset is to hold of an archive, and how it is told."""

    def __init__(self, record: Record, choice: Choice, redactor: Redactor | None, maker: str) -> None:
        """Take what is chosen, who takes out secrets, and the version of whoever writes it: another may know more."""
        self._record, self._redactor, self._maker = record, redactor, maker
        self._seal = kept_seal(record.folder)
        self._items = items(record, choice, self._seal)

    def write(self, folder: Folder, show: Show, *, is_anew: bool = False) -> Outcome:
        """Bring a folder up to date, or write everything anew."""
        folder.sweep(None)
        self._learn(show)
        before, seal = folder.manifest, self._how()
        is_known = before is not None and before.seal == seal and not is_anew
        known = before.parts if before is not None and is_known else ()
        plans = planned(known, self._items)
        waiting = {
            place for place, plan in enumerate(plans) if plan.is_changed or not folder.has(plan.before)
        }
        parts = [plan.begun() if place in waiting else plan.before for place, plan in enumerate(plans)]
        # As long as there are files of before, nothing is said of them that is not true.
        is_quiet, was_quiet = self._redactor is not None, before is None or before.is_redacted
        manifest = Manifest(is_quiet and was_quiet, seal, tuple(parts))
        if before is None or (before.parts, before.seal) != (manifest.parts, seal):
            # Before any file is touched: whoever stops us, the next run knows what it cannot rely on.
            folder.keep(manifest)
        removals: list[Removal] = []
        for written in self._written(folder, plans, sorted(waiting)):
            parts[written.place] = plans[written.place].written(written.files)
            removals += written.removals
        folder.sweep({(table, *part.place) for part in parts for table in part.files})
        folder.keep(replace(manifest, is_redacted=is_quiet, parts=tuple(parts), is_complete=True))
        written_now = sum(_sessions(plans[place].items) for place in waiting)
        removed = self._removed(before)
        return Outcome(written_now, _sessions(self._items) - written_now, removed, removals)

    def _removed(self, before: Manifest | None) -> int:
        """Return how many sessions were there and are not any more; of names by another key, nothing is known."""
        names = set() if before is None else _names(before.parts)
        there = {item.name for item in self._items}
        return len(names - there) if names & there else 0

    def _how(self) -> str:
        """Return a digest of all that the rows of any session depend on."""
        redactor = self._redactor
        known = (None,) if redactor is None else redactor.everything()
        return self._seal.of(VERSION, REVISION, self._maker, redactor and redactor.keeps_images, *known)

    def _learn(self, show: Show) -> None:
        """Learn all secrets: what only a later session gives away must not stand in an earlier one."""
        if self._redactor is None:
            return
        for place, found in enumerate(told(self._record, self._items)):
            show(place, len(self._items))
            self._redactor.learn(found if isinstance(found, Refused) else found[-1])

    def _written(self, folder: Folder, plans: Sequence[Plan], waiting: Sequence[int]) -> Iterable[_Written]:
        """Yield parts as they are written, by two processes where it is much."""

        def work(places: Sequence[int]) -> Iterator[_Written]:
            # Its own: no connection can be taken into another process.
            with Record(self._record.folder) as record:
                record.stand_still()
                for place in places:
                    plan, removals = plans[place], list[Removal]()
                    files = write_part(folder, plan.before, self._told(record, plan, removals))
                    yield _Written(place, files, removals)

        return shared_out(work, waiting, lambda place: plans[place].size, _Written)

    def _told(self, record: Record, plan: Plan, removals: list[Removal]) -> Iterator[Told | Refused]:
        """Yield what goes into a part; what was taken out of it is added to the removals."""
        for found in told(record, plan.items):
            # Each has a redactor of its own: its rows depend on what all sessions give away, and on nothing else.
            redactor = None if self._redactor is None else self._redactor.copy()
            yield as_told(record, found, redactor)
            removals += () if redactor is None else redactor.report()


def _sessions(held: Sequence[Item]) -> int:
    return sum(item.key is not None for item in held)


def _names(parts: Sequence[Part]) -> set[str]:
    return {name for part in parts for name in part.marks}
