"""A digest of many sessions: what was done, decided, changed, mended, and left open, each with where it stands."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Generic, TypeVar

import msgspec

from retold.analysis.changes import FileChange
from retold.analysis.decisions import Decision
from retold.analysis.failures import CallFailure
from retold.analysis.open_ends import OpenEnd
from retold.analysis.places import TurnPlace
from retold.archive.queries.conditions import Condition
from retold.archive.store import Store
from retold.ingest.gleanings import MOST, Gleaning, gleanings
from retold.model.session import Kind, SessionStatus
from retold.projects.matching import in_project, last_name, whole_path
from retold.query.listing import listed_keys
from retold.query.wanted import Filters

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
