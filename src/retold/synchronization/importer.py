"""Another's archive merged into one's own: its originals, titles and tags are taken, and everything is read anew."""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from tempfile import TemporaryDirectory

import msgspec

from retold.agents.registry import AGENTS
from retold.archive.annotations import forgotten_names
from retold.archive.foreign import (
    OtherArchive,
    add_clues,
    choose_latest,
    hand_of,
    opened,
    put_hand,
    put_original,
    put_source,
    sweep,
)
from retold.archive.queries.lookups import stamps
from retold.archive.store import CHUNK, UNREAD, Store, exists
from retold.archive.sync_state import all_clues, roots
from retold.model.problem import Problem, problem
from retold.model.session import Clue
from retold.projects.resolver import Atlas
from retold.reading.disk import printable
from retold.synchronization.disks import ForeignOpenFile, Version
from retold.synchronization.import_selection import Selection, Selector, Taking, offers_of
from retold.synchronization.run import Order
from retold.synchronization.update import Lock, brought_up

_PATIENCE = 1.0
"""Seconds after which what was taken is made to be seen."""
LONGEST_TITLE, LONGEST_TAG, MOST_TAGS = 1_000, 100, 1_000
"""Characters of a title and of a tag, and tags of a session, that are taken: more than a person writes."""
Hand = list[tuple[int, str]]
"""What was written by hand, with the name of the session that it is about."""


class Import(msgspec.Struct, frozen=True):
    """What is to be imported, and into which archive."""

    file: str
    folder: str
    label: str
    """Whose those files are to be called that bear no label."""
    excluded: Sequence[str] = ()
    is_trial: bool = False
    """Whether it is only told what would be taken."""


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it: sessions by what became of them, and what was taken."""

    new_sessions: int
    merged: int
    unchanged: int
    left: int
    """Forgotten here, or of a project of which nothing is kept."""
    completed: int
    """New by what an import before had taken, and was stopped before it read that."""
    files: int
    titles: int
    tags: int
    refused_titles: Sequence[tuple[str, str]]
    """Where both have given one: ours, which stays, and theirs."""
    problems: Sequence[Problem]
    seconds: float


class Tells(msgspec.Struct, frozen=True):
    """Whom to tell that another has the archive, how far it is, and that the index is made anew."""

    wait: Callable[[], None]
    progress: Callable[[int, int], None]
    damage: Callable[[str], None]


def import_archive(asked: Import, tells: Tells) -> Imported:
    """Merge another's archive into one's own; raises NoArchive for a file that is none, Stopped for what stops us."""
    began = time.perf_counter()
    with ExitStack() as stack:
        if not asked.is_trial:
            stack.enter_context(Lock(asked.folder, tells.wait))
            sweep(asked.folder)
        theirs = stack.enter_context(opened(asked.file, None if asked.is_trial else asked.folder))
        record = stack.enter_context(_own(asked, stack))
        # What an import before was stopped at is here, and yet to be read: only then can be told what is new.
        completed = 0 if asked.is_trial else _read(record, asked, tells)
        one = _Import(record, OtherArchive(theirs.connection, theirs.path), asked)
        theirs.see_that_it_stayed()
        if not asked.is_trial:
            one.take()
            _read(record, asked, tells)
            one.write_by_hand()
        return one.told(completed, time.perf_counter() - began)


def _read(record: Store, asked: Import, tells: Tells) -> int:
    """Read what was taken and is not read yet; return how many sessions are new by that."""
    if record.fact(UNREAD) is None:
        return 0
    order = Order(asked.folder, "", {}, excluded=tuple(asked.excluded), is_kept_only=True)
    return brought_up(record, order, tells.progress, tells.damage).coverage.new_sessions


def _own(asked: Import, stack: ExitStack) -> Store:
    """Return one's own archive; where nothing is to be written and there is none, an empty one that goes again."""
    if not asked.is_trial:
        return Store(asked.folder, can_write=True)
    if exists(asked.folder):
        return Store(asked.folder)
    return Store(stack.enter_context(TemporaryDirectory()), can_write=True)


class _Import:
    """One run: everything is looked at before anything is taken."""

    def __init__(self, record: Store, foreign: OtherArchive, asked: Import) -> None:
        self._record, self._foreign, self._asked = record, foreign, asked
        offers, homes, strays = offers_of(foreign, asked.label, AGENTS)
        self._clues = _placed_clues(foreign, homes)
        atlas = self._atlas()
        self._chosen: list[Selection] = [
            Selector(record, foreign, AGENTS[agent], found, atlas).select(asked.excluded)
            for agent, found in offers.items()
        ]
        self._problems = [
            problem("not-a-session", "no path of an agent's: left out", printable(path)) for path in strays
        ]
        # From here on nothing but chunks is read, and each has its digest.
        for version in (
            version for one in self._chosen for taking in one.takings for version in taking.versions
        ):
            foreign.pieces(version.original)
        self._own: dict[int, tuple[str | None, frozenset[str]]] = {}
        self._titles, self._refused = self._new_titles()
        self._tags = [(name, tag) for name, tags in self._new_tags().items() for tag in sorted(tags)]

    def _atlas(self) -> Atlas:
        known: defaultdict[str, list[Clue]] = defaultdict(list)
        for home, told in all_clues(self._record):
            known[home].append(Clue(*told))
        for home, clues in self._clues.items():
            known[home].extend(clues)
        return Atlas(known, roots(self._record), os.getcwd())

    def _new_titles(self) -> tuple[dict[int, str], list[tuple[str, str]]]:
        """Return the titles that are new, each on one line, and those that give way to ours."""
        found: dict[int, str] = {}
        refused, left = [], 0
        for name, given in self._meant(self._foreign.titles()):
            title = " ".join(given.split())
            ours = found.get(name) or self._own_hand(name)[0]
            if len(title) > LONGEST_TITLE:
                left += 1
            elif ours is None and title:
                found[name] = title
            elif ours is not None and " ".join(ours.split()) != title:
                refused.append((ours, title))
        self._tell_left(left, f"titles of more than {LONGEST_TITLE:,} characters")
        return found, refused

    def _new_tags(self) -> dict[int, set[str]]:
        """Return the tags that are new: words, as many as a person gives."""
        found: defaultdict[int, set[str]] = defaultdict(set)
        left = 0
        for name, tag in self._meant(self._foreign.tags()):
            ours = self._own_hand(name)[1]
            if tag in ours or tag in found[name]:
                continue
            is_word = tag.split() == [tag] and tag.isprintable() and len(tag) <= LONGEST_TAG
            if is_word and len(ours) + len(found[name]) < MOST_TAGS:
                found[name].add(tag)
            else:
                left += 1
        self._tell_left(left, f"tags that are no words, or more than {MOST_TAGS:,} of a session")
        return found

    def _own_hand(self, name: int) -> tuple[str | None, frozenset[str]]:
        """Return the title and the tags that a session has here; it is looked for once."""
        if name not in self._own:
            title, tags = hand_of(self._record, name)
            self._own[name] = title, frozenset(tags)
        return self._own[name]

    def _tell_left(self, count: int, what: str) -> None:
        if count:
            told = problem("unexpected-shape", f"{what}: {count:,} left out", printable(self._asked.file))
            self._problems.append(told)

    def _meant(self, hand: Hand) -> Iterator[tuple[int, str]]:
        """Yield what was written about sessions that are here, or will be."""
        known = {*stamps(self._record), *chain.from_iterable(one.new for one in self._chosen)}
        aliases = {theirs: ours for one in self._chosen for theirs, ours in one.aliases.items()}
        forgotten = forgotten_names(self._record)
        for theirs, text in hand:
            name = theirs if theirs in known else aliases.get(theirs, theirs)
            if name in known and theirs not in forgotten:
                yield name, text

    def take(self) -> None:
        """Keep the originals; whoever ends us, the next sync reads what was kept by then."""
        takings = [taking for one in self._chosen for taking in one.takings]
        if not takings:
            return
        with self._record.connection:
            self._record.set_fact(UNREAD, 1)
            for home, clues in self._clues.items():
                told = [(clue.root, clue.evidence, clue.native_key) for clue in clues]
                add_clues(self._record, home, told)
        waiting = iter(takings)
        while (taking := next(waiting, None)) is not None:
            ends = time.monotonic() + _PATIENCE
            with self._record.connection:
                self._take(taking)
                while time.monotonic() < ends and (taking := next(waiting, None)) is not None:
                    self._take(taking)

    def _take(self, taking: Taking) -> None:
        offer = taking.offer
        source = put_source(
            self._record,
            taking.agent,
            offer.path,
            offer.home,
            offer.folder,
            offer.label,
            taking.cluster,
            is_beside=taking.is_beside,
        )
        for version in taking.versions:
            named = (taking.agent, offer.path)
            put_original(self._record, source, named, version.original.modified_ns, self._pieces(version))
        choose_latest(self._record, source)

    def _pieces(self, version: Version) -> Iterator[bytes]:
        if version.data is None:
            yield from self._foreign.chunks(version.original)
            return
        file = ForeignOpenFile(self._foreign, version)
        while data := file.read(CHUNK):
            yield data

    def write_by_hand(self) -> None:
        """Keep titles and tags."""
        if self._titles or self._tags:
            with self._record.connection:
                put_hand(self._record, list(self._titles.items()), self._tags)

    def told(self, completed: int, seconds: float) -> Imported:
        """Return what came of it."""

        def count(names: Iterable[set[int]]) -> int:
            return sum(map(len, names))

        return Imported(
            new_sessions=count(one.new for one in self._chosen),
            merged=count(one.merged for one in self._chosen),
            unchanged=count(one.unchanged for one in self._chosen),
            left=count(one.left for one in self._chosen),
            completed=completed,
            files=sum(len(one.takings) for one in self._chosen),
            titles=len(self._titles),
            tags=len(self._tags),
            refused_titles=self._refused,
            problems=[*self._problems, *chain.from_iterable(one.problems for one in self._chosen)],
            seconds=seconds,
        )


def _placed_clues(foreign: OtherArchive, homes: Mapping[str, set[str]]) -> dict[str, list[Clue]]:
    """Return what each home said about its projects, where the home gets its place here."""
    found: defaultdict[str, list[Clue]] = defaultdict(list)
    for home, clue in foreign.clues():
        for place in homes.get(home, ()):
            found[place].append(clue)
    return found
