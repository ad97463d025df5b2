"""A digest of many sessions: what was done, decided, changed, mended, and left open, each with where it stands."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import chain
from typing import Generic, TypeVar

import msgspec

from retold.archive.queries.conditions import Condition
from retold.archive.queries.listing import is_among
from retold.archive.store import Store
from retold.insights.changes import Changes, FileChange
from retold.insights.decisions import Decision, Decisions
from retold.insights.failures import CallFailure, Failures
from retold.insights.open_ends import OpenEnd, OpenEnds
from retold.insights.text import TurnPlace, placed
from retold.model.session import Entry, Kind, Session, SessionStatus, words_of
from retold.projects.matching import in_project, last_name, whole_path
from retold.search.filters import Filters
from retold.search.listing import listed_keys
from retold.sessions.pages import slices


class Gleaned(msgspec.Struct, frozen=True):
    """What a session comes to."""

    decisions: tuple[Decision, ...] = ()
    failures: tuple[CallFailure, ...] = ()
    open_ends: tuple[OpenEnd, ...] = ()
    changes: tuple[FileChange, ...] = ()
    prompts: int = 0
    """How often a person spoke here; what was said in another session and copied is not counted again."""


def gleaned(entries: Iterable[Entry]) -> Gleaned:
    """Return what a timeline comes to, from its first entry on; it is gone through once."""
    decisions, failures, open_ends, changes = Decisions(), Failures(), OpenEnds(), Changes()
    prompts = 0
    for one in placed(entries):
        prompts += words_of(one.entry) is not None
        decisions.take(one)
        failures.take(one)
        open_ends.take(one)
        changes.take(one)
    failed = failures.found()
    return Gleaned(decisions.found(), failed, open_ends.found(failed), changes.found(), prompts)


MOST = 100
"""Sessions that are looked into, unless more are asked for."""


class Gleaning(msgspec.Struct, frozen=True):
    """A session and what it comes to."""

    session: Session
    """Without its timeline."""
    gleaned: Gleaned
    subagents: "tuple[Gleaning, ...]" = ()
    """Those that it started, and those that they started, in their order."""

    @property
    def all(self) -> "tuple[Gleaning, ...]":
        """This one and its subagents."""
        return (self, *self.subagents)


def gleaning(record: Store, key: str) -> Gleaning | None:
    """Return what a session comes to, without its subagents; None if there is none. Of a long one, little is held at a time."""
    parts = slices(record, key)
    first = next(parts, None)
    if first is None:
        return None
    rest = chain.from_iterable(part.session.timeline for part in parts)
    found = gleaned(chain(first.session.timeline, rest))
    session = msgspec.structs.replace(first.session, timeline=())
    if session.kind == "prompts-only":  # whatever was answered is lost
        found = msgspec.structs.replace(found, open_ends=())
    return Gleaning(session, found)


def with_subagents(record: Store, found: Gleaning, reach: Sequence[Condition] = ()) -> Gleaning:
    """Return the same with what its subagents come to, if somebody may see them: they may work elsewhere."""
    return msgspec.structs.replace(
        found, subagents=tuple(_subagents(record, found.session, {found.session.key}, reach))
    )


def _subagents(
    record: Store, session: Session, told: set[str], reach: Sequence[Condition]
) -> Iterator[Gleaning]:
    for key in session.children:
        if key in told or not is_among(record, key, reach):
            continue
        told.add(key)
        child = gleaning(record, key)
        if child is not None and child.session.kind == "subagent":
            yield child
            yield from _subagents(record, child.session, told, reach)


def gleanings(
    record: Store, wanted: Filters, most: int = MOST, reach: Sequence[Condition] = ()
) -> Iterator[Gleaning]:
    """Yield what the meant sessions come to, the newest first, with their subagents as far as they are within reach."""
    for key in listed_keys(record, wanted)[:most]:
        found = gleaning(record, key)
        if found is not None:
            yield with_subagents(record, found, reach)


T = TypeVar("T")


class Cited(msgspec.Struct, Generic[T], frozen=True):
    """Something, and the session that it stands in."""

    key: str
    what: T


class Chapter(msgspec.Struct, frozen=True, kw_only=True):
    """A session of a digest; what its subagents took is counted with it."""

    key: str
    agent: str
    kind: Kind
    title: str | None
    status: SessionStatus
    started_at: datetime | None
    ended_at: datetime | None
    prompts: int
    """What people said here, and not in the session that it was copied from."""
    subagents: int
    tokens: int | None
    is_estimated: bool
    cost_usd: Decimal | None


class ChangedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file, and what all sessions did to it."""

    path: str
    """From the root of all, as far as that is known."""
    name: str
    """From the root of the project, where all sessions are of one; else by the project's name."""
    edits: int
    added: int | None
    removed: int | None
    sessions: tuple[str, ...]
    """Their keys, the newest first."""
    last: Cited[TurnPlace]


class Digest(msgspec.Struct, frozen=True, kw_only=True):
    """What sessions come to, the newest first; within a session, in its order."""

    roots: tuple[str, ...]
    """Of their projects."""
    sessions: tuple[Chapter, ...]
    left_out: int
    """Older sessions that are meant, and were not looked into."""
    decisions: tuple[Cited[Decision], ...]
    failures: tuple[Cited[CallFailure], ...]
    open_ends: tuple[Cited[OpenEnd], ...]
    """Of the sessions alone: what a subagent leaves open, whoever started it deals with."""
    files: tuple[ChangedFile, ...]
    """Those that were changed most first."""


def digest(record: Store, wanted: Filters, most: int = MOST, reach: Sequence[Condition] = ()) -> Digest:
    """Return what the meant sessions come to; no more than the newest so many are looked into.

    Of their subagents those count that are within reach.
    """
    found = list(gleanings(record, wanted, most, reach))
    return digested(found, left_out=max(len(listed_keys(record, wanted)) - most, 0))


def digested(found: Sequence[Gleaning], left_out: int = 0) -> Digest:
    """Return the digest of what sessions come to."""
    every = [(one.session.key, one.gleaned) for whole in found for one in whole.all]
    roots = dict.fromkeys(one.session.project.root for one in found if one.session.project.root)
    return Digest(
        roots=tuple(roots),
        sessions=tuple(map(_chapter, found)),
        left_out=left_out,
        decisions=tuple(Cited(key, one) for key, told in every for one in told.decisions),
        failures=tuple(Cited(key, one) for key, told in every for one in told.failures),
        open_ends=tuple(Cited(one.session.key, end) for one in found for end in one.gleaned.open_ends),
        files=_files(found, tuple(roots)),
    )


def _chapter(found: Gleaning) -> Chapter:
    session, every = found.session, [one.session for one in found.all]
    return Chapter(
        key=session.key,
        agent=session.agent,
        kind=session.kind,
        title=session.title,
        status=session.status,
        started_at=session.started_at,
        ended_at=session.ended_at,
        prompts=found.gleaned.prompts,
        subagents=len(found.subagents),
        tokens=_known_sum(one.usage.total for one in every),
        is_estimated=any(one.usage.estimated for one in every),
        cost_usd=sum((one.cost_usd for one in every if one.cost_usd is not None), Decimal(0))
        if any(one.cost_usd is not None for one in every)
        else None,
    )


def _files(found: Sequence[Gleaning], roots: Sequence[str]) -> tuple[ChangedFile, ...]:
    changed: dict[str, ChangedFile] = {}
    for whole in found:
        for path, change, last in _changes(whole):
            root = whole.session.project.root
            before = changed.get(path)
            changed[path] = ChangedFile(
                path=path,
                name=_name(path, root, roots),
                edits=change.edits + (before.edits if before else 0),
                added=_known_sum([change.added, before.added if before else None]),
                removed=_known_sum([change.removed, before.removed if before else None]),
                sessions=tuple(dict.fromkeys([*(before.sessions if before else ()), whole.session.key])),
                last=before.last if before else last,
            )
    return tuple(sorted(changed.values(), key=lambda one: (-len(one.sessions), -one.edits, one.path)))


def _changes(whole: Gleaning) -> Iterator[tuple[str, FileChange, Cited[TurnPlace]]]:
    """Yield the whole path of each file that a session, or a subagent of it, changed."""
    for one in whole.all:
        for change in one.gleaned.changes:
            path = whole_path(change.path, one.session.project.root or whole.session.project.root)
            yield path, change, Cited(one.session.key, change.last)


def _name(path: str, root: str | None, roots: Sequence[str]) -> str:
    name = in_project(path, root)
    return name.removeprefix(f"{last_name(root)}/") if root is not None and len(roots) == 1 else name


def _known_sum(figures: Iterable[int | None]) -> int | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None
