"""Sessions as a dataset of Parquet files: only what has changed is written, and whoever reads it sees whole files."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from retold.archive.database import RetoldError
from retold.archive.store import Store
from retold.lake.dataset_files import Folder, Manifest, PartPlan, part_plans, write_part
from retold.lake.dataset_items import REFUSED, DatasetItem, DatasetOptions, as_told, items, kept, kept_seal
from retold.lake.session_rows import RowSource, UnreadFile
from retold.model.tables import VERSION
from retold.redaction import Redactor
from retold.redaction.redactor import Removal
from retold.synchronization.fingerprints import REVISION
from retold.synchronization.workers import shared_out

Show = Callable[[int, int], None]
"""Is told how far it is."""
_ROUNDS = 3
"""How often all is written, where each time a sync brings a secret meanwhile."""


class DatasetOutcome(msgspec.Struct, frozen=True):
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

    def __init__(self, record: Store, choice: DatasetOptions, redactor: Redactor | None, maker: str) -> None:
        """Take what is chosen, who takes out secrets, and the version of whoever writes it: another may know more."""
        self._record, self._choice, self._maker = record, choice, maker
        self._blank = self._redactor = redactor
        self._seal = kept_seal(record.folder)

    def write(self, folder: Folder, show: Show, *, is_anew: bool = False) -> DatasetOutcome:
        """Bring a folder up to date, or write everything anew; raises Stopped where syncs bring secrets all the while."""
        folder.sweep(None)
        names = self._names(folder.manifest)
        self._look(show)
        for _ in range(_ROUNDS):
            manifest, written, removals = self._brought(folder, is_anew=is_anew)
            if not self._has_learned(show):
                folder.keep(replace(manifest, is_redacted=self._redactor is not None, is_complete=True))
                there = self._names(manifest)
                return DatasetOutcome(written, len(there) - written, len(names - there), removals)
            # What is known to be a secret only now may stand in any file.
            folder.keep(replace(manifest, is_redacted=False))
        raise RetoldError(
            f"{folder.path}: not complete, as syncs brought secrets all the while; try again later"
        )

    def _look(self, show: Show) -> None:
        """See what is to be told, and learn all secrets of it: of what is gone since the last look, none are known."""
        self._version = self._record.version()
        self._items = items(self._record, self._choice, self._seal)
        self._redactor = self._blank and self._blank.copy()
        self._learn(show)

    def _has_learned(self, show: Show) -> bool:
        """Look again where others have written meanwhile; tell whether other secrets are known than when files were written."""
        if self._redactor is None or self._record.version() == self._version:
            return False
        seal = self._how()
        self._look(show)
        return self._how() != seal

    def _brought(self, folder: Folder, *, is_anew: bool) -> tuple[Manifest, int, list[Removal]]:
        """Write the parts that have changed; return what is there then, the sessions that were written, and what was taken out."""
        before, seal = folder.manifest, self._how()
        is_known = before is not None and before.seal == seal and not is_anew
        known = before.parts if before is not None and is_known else ()
        plans = part_plans(known, self._items)
        waiting = {
            place for place, plan in enumerate(plans) if plan.is_changed or not folder.has(plan.before)
        }
        parts = [plan.begun() if place in waiting else plan.before for place, plan in enumerate(plans)]
        # As long as there are files of before, nothing is said of them that is not true.
        is_quiet, was_quiet = self._redactor is not None, before is None or before.is_redacted
        manifest = Manifest(is_quiet and was_quiet, seal, tuple(parts), names=self._seal.of("names"))
        if before is None or (before.parts, before.seal) != (manifest.parts, seal):
            # Before any file is touched: whoever stops us, the next run knows what it cannot rely on.
            folder.keep(manifest)
        removals: list[Removal] = []
        for written in self._written(folder, plans, sorted(waiting)):
            parts[written.place] = plans[written.place].written(written.files)
            removals += written.removals
        folder.sweep({(table, *part.place) for part in parts for table in part.files})
        count = sum(_sessions(plans[place].items) for place in waiting)
        return replace(manifest, parts=tuple(parts)), count, removals

    def _names(self, manifest: Manifest | None) -> set[str]:
        """Return the names of sessions in a dataset; of those by another key, nothing is known."""
        if manifest is None or manifest.names != self._seal.of("names"):
            return set()
        return {name for part in manifest.parts for name in part.marks} - {REFUSED}

    def _how(self) -> str:
        """Return a digest of all that the rows of any session depend on."""
        redactor = self._redactor
        known = (None,) if redactor is None else redactor.everything()
        return self._seal.of(VERSION, REVISION, self._maker, redactor and redactor.keeps_images, *known)

    def _learn(self, show: Show) -> None:
        """Learn all secrets: what only a later session gives away must not stand in an earlier one."""
        if self._redactor is None:
            return
        for place, found in enumerate(kept(self._record, self._items)):
            show(place, len(self._items))
            self._redactor.learn(found if isinstance(found, UnreadFile) else found[-1])

    def _written(
        self, folder: Folder, plans: Sequence[PartPlan], waiting: Sequence[int]
    ) -> Iterable[_Written]:
        """Yield parts as they are written, by two processes where it is much."""

        def work(places: Sequence[int]) -> Iterator[_Written]:
            # Its own: no connection can be taken into another process.
            with Store(self._record.folder) as record:
                record.stand_still()
                for place in places:
                    plan, removals = plans[place], list[Removal]()
                    files = write_part(folder, plan.before, self._told(record, plan, removals))
                    yield _Written(place, files, removals)

        return shared_out(work, waiting, lambda place: plans[place].size, _Written)

    def _told(
        self, record: Store, plan: PartPlan, removals: list[Removal]
    ) -> Iterator[RowSource | UnreadFile]:
        """Yield what goes into a part; what was taken out of it is added to the removals."""
        for found in kept(record, plan.items):
            # Each has a redactor of its own: its rows depend on what all sessions give away, and on nothing else.
            redactor = None if self._redactor is None else self._redactor.copy()
            yield as_told(record, found, redactor)
            removals += () if redactor is None else redactor.report()


def _sessions(held: Sequence[DatasetItem]) -> int:
    return sum(item.key is not None for item in held)
