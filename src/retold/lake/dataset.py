"""Datasets of Parquet files: only changed parts are written, and readers see complete files only."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from retold.archive.database import RetoldError
from retold.archive.store import Store
from retold.lake.dataset_files import DatasetFolder, Manifest, PartPlan, plan_parts, write_part
from retold.lake.dataset_items import (
    UNREAD,
    DatasetOptions,
    load_items,
    load_keyed_digest,
    make_row_source,
    select_items,
)
from retold.lake.session_rows import RowSource, UnreadFile
from retold.model.tables import VERSION
from retold.redaction import Redactor
from retold.redaction.redactor import Removal
from retold.synchronization.fingerprints import REVISION
from retold.synchronization.workers import run_in_processes

ShowProgress = Callable[[int, int], None]
"""Is called with the number of sessions done and the number of all."""
_ROUNDS = 3
"""How many times everything is written if each time a sync adds a secret meanwhile."""


class DatasetOutcome(msgspec.Struct, frozen=True):
    """The result of writing a dataset, in sessions."""

    written: int
    """Sessions in parts that were written."""
    unchanged: int
    removed: int
    removals: list[Removal]
    """The secrets removed from the sessions that were written."""


class _WrittenPart(msgspec.Struct, frozen=True):
    """A part that a process wrote."""

    number: int
    files: dict[str, int]
    removals: list[Removal]


class Dataset:
    """The sessions of an archive that a dataset holds, and how they are redacted."""

    def __init__(
        self, store: Store, options: DatasetOptions, redactor: Redactor | None, version: str
    ) -> None:
        """Take the redactor, if any, and the version of retold: other versions may write other rows."""
        self._store, self._options, self._retold_version = store, options, version
        self._empty_redactor = self._redactor = redactor
        self._digest = load_keyed_digest(store.folder)

    def write(self, folder: DatasetFolder, show: ShowProgress, *, is_full: bool = False) -> DatasetOutcome:
        """Bring a folder up to date, or write everything; raise RetoldError if syncs keep adding secrets."""
        folder.remove_leftovers(None)
        names = self._names(folder.manifest)
        self._load(show)
        for _ in range(_ROUNDS):
            manifest, written, removals = self._write_parts(folder, is_full=is_full)
            if not self._has_new_secrets(show):
                is_redacted = self._redactor is not None
                folder.write_manifest(replace(manifest, is_redacted=is_redacted, is_complete=True))
                left = self._names(manifest)
                return DatasetOutcome(written, len(left) - written, len(names - left), removals)
            # Any file may contain the secrets that are known only now.
            folder.write_manifest(replace(manifest, is_redacted=False))
        raise RetoldError(
            f"{folder.path}: not complete, as syncs brought secrets all the while; try again later"
        )

    def _load(self, show: ShowProgress) -> None:
        """Select the items, and learn all their secrets; forget those of sessions that are gone."""
        self._version = self._store.data_version()
        self._items = select_items(self._store, self._options, self._digest)
        self._redactor = self._empty_redactor and self._empty_redactor.copy()
        if self._redactor is None:
            return
        # A secret that only a later session gives away must not be in the rows of an earlier one.
        for number, item in enumerate(load_items(self._store, self._items)):
            show(number, len(self._items))
            self._redactor.learn(item if isinstance(item, UnreadFile) else item.session)

    def _has_new_secrets(self, show: ShowProgress) -> bool:
        """Load again if the archive has changed; return whether the known secrets differ from those when files were written."""
        if self._redactor is None or self._store.data_version() == self._version:
            return False
        digest = self._rows_digest()
        self._load(show)
        return self._rows_digest() != digest

    def _write_parts(self, folder: DatasetFolder, *, is_full: bool) -> tuple[Manifest, int, list[Removal]]:
        """Write the changed parts; return the new manifest, the number of sessions written, and the removals."""
        before, digest = folder.manifest, self._rows_digest()
        is_known = before is not None and before.digest == digest and not is_full
        known = before.parts if before is not None and is_known else ()
        plans = plan_parts(known, self._items)
        changed = {
            number
            for number, plan in enumerate(plans)
            if plan.is_changed or not folder.is_complete(plan.before)
        }
        parts = [plan.start() if number in changed else plan.before for number, plan in enumerate(plans)]
        # While files of an earlier run are left, the manifest must be true of them as well.
        is_redacted = self._redactor is not None and (before is None or before.is_redacted)
        manifest = Manifest(is_redacted, digest, tuple(parts), names=self._digest.hexdigest("names"))
        if before is None or (before.parts, before.digest) != (manifest.parts, digest):
            # Written first, so that the next run knows which files it cannot rely on if this one is interrupted.
            folder.write_manifest(manifest)
        removals: list[Removal] = []
        for written in self._run(folder, plans, sorted(changed)):
            parts[written.number] = plans[written.number].finish(written.files)
            removals += written.removals
        folder.remove_leftovers({(table, *part.key) for part in parts for table in part.files})
        count = sum(item.key is not None for number in changed for item in plans[number].items)
        return replace(manifest, parts=tuple(parts)), count, removals

    def _names(self, manifest: Manifest | None) -> set[str]:
        """Return the names of the sessions in a dataset; none if they were made with another key."""
        if manifest is None or manifest.names != self._digest.hexdigest("names"):
            return set()
        return {name for part in manifest.parts for name in part.digests} - {UNREAD}

    def _rows_digest(self) -> str:
        """Return a digest of everything that the rows of all sessions depend on."""
        redactor = self._redactor
        known = (None,) if redactor is None else redactor.known_values()
        images = redactor and redactor.keeps_images
        return self._digest.hexdigest(VERSION, REVISION, self._retold_version, images, *known)

    def _run(
        self, folder: DatasetFolder, plans: Sequence[PartPlan], numbers: Sequence[int]
    ) -> Iterable[_WrittenPart]:
        """Write parts and yield each when it is written; two processes write if there is much."""

        def write(numbers: Sequence[int]) -> Iterator[_WrittenPart]:
            # A connection cannot be taken into another process, so each opens its own.
            with Store(self._store.folder) as store:
                store.begin_snapshot()
                for number in numbers:
                    removals: list[Removal] = []
                    sources = self._row_sources(store, plans[number], removals)
                    files = write_part(folder, plans[number].before, sources)
                    yield _WrittenPart(number, files, removals)

        return run_in_processes(write, numbers, lambda number: plans[number].size, _WrittenPart)

    def _row_sources(
        self, store: Store, plan: PartPlan, removals: list[Removal]
    ) -> Iterator[RowSource | UnreadFile]:
        """Yield the sources of the rows of a part, and add the secrets removed from them to `removals`."""
        for item in load_items(store, plan.items):
            # A copy for each: rows depend on the secrets of all sessions and on nothing else.
            redactor = None if self._redactor is None else self._redactor.copy()
            yield make_row_source(store, item, redactor)
            removals += () if redactor is None else redactor.report()
