"""The import of another archive: its originals, titles and tags are copied, and every copied file is read again."""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from tempfile import TemporaryDirectory

import msgspec

from retold.agents import NAMES
from retold.agents.registry import AGENTS
from retold.archive.annotations import load_forgotten_uids
from retold.archive.foreign import (
    OtherArchive,
    add_clues,
    choose_latest,
    load_annotations,
    open_archive,
    remove_copies,
    write_annotations,
    write_original,
    write_source,
)
from retold.archive.queries.lookups import load_stamps
from retold.archive.store import CHUNK, UNREAD, Store, archive_exists
from retold.archive.sync_state import load_all_clues, load_roots
from retold.model.problem import Problem, problem
from retold.model.session import Clue
from retold.projects.resolver import ProjectResolver
from retold.reading.disk import printable_path
from retold.synchronization.import_offers import FileVersion, OfferedOpenFile, load_offer
from retold.synchronization.import_selection import ImportedFile, ImportSelector
from retold.synchronization.update import Lock, SyncOptions, sync_or_rebuild

_COMMIT_SECONDS = 1.0
"""Seconds after which copied originals are committed."""
LONGEST_TITLE, LONGEST_TAG, MOST_TAGS = 1_000, 100, 1_000
"""Characters of the longest title and tag, and most tags of a session, that are imported: a person writes less."""
Annotations = list[tuple[int, str]]
"""Titles or tags, with the uids of their sessions."""


class ImportRequest(msgspec.Struct, frozen=True):
    """The options of an import."""

    file: str
    folder: str
    """The folder of our own archive."""
    label: str
    """The label of homes that have none."""
    excluded: Sequence[str] = ()
    is_trial: bool = False
    """Whether nothing is written."""


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an import: counts of sessions, files, titles and tags."""

    new_sessions: int
    merged: int
    unchanged: int
    left: int
    """Sessions that are forgotten here, or of an excluded project."""
    completed: int
    """New sessions in files that an interrupted import had copied."""
    files: int
    titles: int
    tags: int
    refused_titles: Sequence[tuple[str, str]]
    """Titles of sessions with two: ours, which stays, and theirs."""
    problems: Sequence[Problem]
    seconds: float


class ImportCallbacks(msgspec.Struct, frozen=True):
    """Functions that are called when another process has the lock, on progress, and when the index is rebuilt."""

    wait: Callable[[], None]
    progress: Callable[[int, int], None]
    damage: Callable[[str], None]


def import_archive(request: ImportRequest, callbacks: ImportCallbacks) -> ImportReport:
    """Merge another archive into our own; raises NotAnArchive for another kind of file, RetoldError for other failures."""
    began = time.perf_counter()
    with ExitStack() as stack:
        if not request.is_trial:
            stack.enter_context(Lock(request.folder, callbacks.wait))
            remove_copies(request.folder)
        theirs = stack.enter_context(open_archive(request.file, None if request.is_trial else request.folder))
        store = stack.enter_context(_open_own(request, stack))
        # Files of an interrupted import are read first: only then are the new sessions known.
        completed = 0 if request.is_trial else _read_copied(store, request, callbacks)
        run = _ImportRun(store, OtherArchive(theirs.connection, theirs.path), request)
        theirs.check_unchanged()
        if not request.is_trial:
            run.copy_files()
            _read_copied(store, request, callbacks)
            run.write_annotations()
        return run.report(completed, time.perf_counter() - began)


def _read_copied(store: Store, request: ImportRequest, callbacks: ImportCallbacks) -> int:
    """Read copied files that were not read yet; return the number of new sessions in them."""
    if store.fact(UNREAD) is None:
        return 0
    options = SyncOptions(request.folder, {}, excluded=request.excluded, archive_only=True)
    outcome = sync_or_rebuild(store, options, NAMES, callbacks.progress, callbacks.damage)
    return outcome.coverage.new_sessions


def _open_own(request: ImportRequest, stack: ExitStack) -> Store:
    """Return our own archive; for a trial without one, an empty archive in a temporary folder."""
    if not request.is_trial:
        return Store(request.folder, can_write=True)
    if archive_exists(request.folder):
        return Store(request.folder)
    return Store(stack.enter_context(TemporaryDirectory()), can_write=True)


class _ImportRun:
    """A run of an import. Everything is selected before anything is copied."""

    def __init__(self, store: Store, foreign: OtherArchive, request: ImportRequest) -> None:
        self._store, self._foreign, self._request = store, foreign, request
        offer = load_offer(foreign, request.label, AGENTS)
        self._clues: defaultdict[str, list[Clue]] = defaultdict(list)
        for home, clue in foreign.clues():
            for own_home in offer.homes.get(home, ()):
                self._clues[own_home].append(clue)
        resolver = self._resolver()
        self._selections = [
            ImportSelector(store, foreign, AGENTS[agent], files, resolver).select(request.excluded)
            for agent, files in offer.files.items()
        ]
        self._files = [file for one in self._selections for file in one.files]
        self._problems = [
            problem("not-a-session", "no path of an agent's: left out", printable_path(path))
            for path in offer.strays
        ]
        # Listed now: from here on only chunks are read, and each is compared with its digest.
        for file in self._files:
            for version in file.versions:
                foreign.pieces(version.original)
        self._own: dict[int, tuple[str | None, frozenset[str]]] = {}
        self._titles, self._refused = self._select_titles()
        self._tags = [(uid, tag) for uid, tags in self._select_tags().items() for tag in sorted(tags)]

    def _resolver(self) -> ProjectResolver:
        clues: defaultdict[str, list[Clue]] = defaultdict(list)
        for home, row in load_all_clues(self._store):
            clues[home].append(Clue(*row))
        for home, found in self._clues.items():
            clues[home].extend(found)
        return ProjectResolver(clues, load_roots(self._store), os.getcwd())

    def _select_titles(self) -> tuple[dict[int, str], list[tuple[str, str]]]:
        """Return the new titles, each on one line, and the pairs of titles of which ours stays."""
        titles: dict[int, str] = {}
        refused, too_long = [], 0
        for uid, given in self._for_known_sessions(self._foreign.titles()):
            title = " ".join(given.split())
            own = titles.get(uid) or self._own_annotations(uid)[0]
            if len(title) > LONGEST_TITLE:
                too_long += 1
            elif own is None and title:
                titles[uid] = title
            elif own is not None and " ".join(own.split()) != title:
                refused.append((own, title))
        self._report_left_out(too_long, f"titles of more than {LONGEST_TITLE:,} characters")
        return titles, refused

    def _select_tags(self) -> dict[int, set[str]]:
        """Return the new tags: single words, up to the most tags of a session."""
        tags: defaultdict[int, set[str]] = defaultdict(set)
        left_out = 0
        for uid, tag in self._for_known_sessions(self._foreign.tags()):
            own = self._own_annotations(uid)[1]
            if tag in own or tag in tags[uid]:
                continue
            is_word = tag.split() == [tag] and tag.isprintable() and len(tag) <= LONGEST_TAG
            if is_word and len(own) + len(tags[uid]) < MOST_TAGS:
                tags[uid].add(tag)
            else:
                left_out += 1
        self._report_left_out(left_out, f"tags that are no words, or more than {MOST_TAGS:,} of a session")
        return tags

    def _own_annotations(self, uid: int) -> tuple[str | None, frozenset[str]]:
        """Return the title and the tags that a session has here, from a cache."""
        if uid not in self._own:
            title, tags = load_annotations(self._store, uid)
            self._own[uid] = title, frozenset(tags)
        return self._own[uid]

    def _report_left_out(self, count: int, what: str) -> None:
        if count:
            message = f"{what}: {count:,} left out"
            self._problems.append(problem("unexpected-shape", message, printable_path(self._request.file)))

    def _for_known_sessions(self, annotations: Annotations) -> Iterator[tuple[int, str]]:
        """Yield the annotations of sessions that are here or will be, with the uids that they have here."""
        known = {*load_stamps(self._store), *chain.from_iterable(one.new for one in self._selections)}
        aliases = {theirs: own for one in self._selections for theirs, own in one.aliases.items()}
        forgotten = load_forgotten_uids(self._store)
        for theirs, text in annotations:
            uid = theirs if theirs in known else aliases.get(theirs, theirs)
            if uid in known and theirs not in forgotten:
                yield uid, text

    def copy_files(self) -> None:
        """Copy the selected files. If the process ends meanwhile, the next sync reads those that were copied."""
        if not self._files:
            return
        with self._store.connection:
            self._store.set_fact(UNREAD, 1)
            for home, clues in self._clues.items():
                rows = [(clue.root, clue.evidence, clue.native_key) for clue in clues]
                add_clues(self._store, home, rows)
        waiting = iter(self._files)
        while (file := next(waiting, None)) is not None:
            ends = time.monotonic() + _COMMIT_SECONDS
            with self._store.connection:
                self._copy(file)
                while time.monotonic() < ends and (file := next(waiting, None)) is not None:
                    self._copy(file)

    def _copy(self, imported: ImportedFile) -> None:
        file = imported.file
        source = write_source(
            self._store,
            imported.agent,
            file.path,
            file.home,
            file.folder,
            file.label,
            imported.cluster,
            is_companion=imported.is_companion,
        )
        words = (imported.agent, file.path)
        for version in imported.versions:
            write_original(self._store, source, words, version.original.modified_ns, self._chunks(version))
        choose_latest(self._store, source)

    def _chunks(self, version: FileVersion) -> Iterator[bytes]:
        if version.data is None:
            yield from self._foreign.chunks(version.original)
            return
        file = OfferedOpenFile(self._foreign, version)
        while data := file.read(CHUNK):
            yield data

    def write_annotations(self) -> None:
        """Write the selected titles and tags."""
        if self._titles or self._tags:
            with self._store.connection:
                write_annotations(self._store, list(self._titles.items()), self._tags)

    def report(self, completed: int, seconds: float) -> ImportReport:
        """Return the result."""

        def count(uids: Iterable[set[int]]) -> int:
            return sum(map(len, uids))

        return ImportReport(
            new_sessions=count(one.new for one in self._selections),
            merged=count(one.merged for one in self._selections),
            unchanged=count(one.unchanged for one in self._selections),
            left=count(one.excluded for one in self._selections),
            completed=completed,
            files=len(self._files),
            titles=len(self._titles),
            tags=len(self._tags),
            refused_titles=self._refused,
            problems=[*self._problems, *chain.from_iterable(one.problems for one in self._selections)],
            seconds=seconds,
        )
