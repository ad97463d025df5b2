"""The insights of a session, and the digest of many: prompts, decisions, changed files, failures and open ends."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import chain
from typing import Generic, TypeVar

import msgspec

from retold.archive.queries.listing import Condition, is_selected
from retold.archive.store import Store
from retold.insights.changes import ChangeCollector, FileChange
from retold.insights.decisions import Decision, DecisionCollector
from retold.insights.failures import CallFailure, FailureCollector
from retold.insights.open_ends import OpenEnd, OpenEndCollector
from retold.insights.text import TurnPlace, place_entries
from retold.model.session import Entry, Kind, Session, SessionStatus, prompt_words
from retold.projects.matching import absolute_path, folder_name, path_in_project
from retold.search.filters import Filters
from retold.search.listing import list_keys
from retold.sessions.slices import load_slices

MOST = 100
"""Sessions in a digest, unless the caller asks for more."""
T = TypeVar("T")


class Insights(msgspec.Struct, frozen=True):
    """The insights of a timeline."""

    decisions: tuple[Decision, ...] = ()
    failures: tuple[CallFailure, ...] = ()
    open_ends: tuple[OpenEnd, ...] = ()
    changes: tuple[FileChange, ...] = ()
    prompts: int = 0
    """The session's own prompts, without copied ones."""


def collect_insights(entries: Iterable[Entry]) -> Insights:
    """Return the insights of a timeline, which is iterated once."""
    decisions, failures, changes = DecisionCollector(), FailureCollector(), ChangeCollector()
    open_ends = OpenEndCollector()
    prompts = 0
    for one in place_entries(entries):
        prompts += prompt_words(one.entry) is not None
        decisions.add(one)
        failures.add(one)
        open_ends.add(one)
        changes.add(one)
    failed = failures.failures()
    return Insights(decisions.decisions(), failed, open_ends.open_ends(failed), changes.changes(), prompts)


class SessionInsights(msgspec.Struct, frozen=True):
    """A session with its insights."""

    session: Session
    """Without its timeline."""
    insights: Insights
    subagents: "tuple[SessionInsights, ...]" = ()
    """The subagents that it started, and those that they started, in order."""

    @property
    def all(self) -> "tuple[SessionInsights, ...]":
        """This session and its subagents."""
        return (self, *self.subagents)


def load_insights(store: Store, key: str) -> SessionInsights | None:
    """Return a session with its insights, without its subagents; None if there is none. It is read slice by slice."""
    slices = load_slices(store, key)
    first = next(slices, None)
    if first is None:
        return None
    rest = chain.from_iterable(part.session.timeline for part in slices)
    insights = collect_insights(chain(first.session.timeline, rest))
    session = msgspec.structs.replace(first.session, timeline=())
    if session.kind == "prompts-only":  # the answers are lost
        insights = msgspec.structs.replace(insights, open_ends=())
    return SessionInsights(session, insights)


def add_subagents(
    store: Store, found: SessionInsights, conditions: Sequence[Condition] = ()
) -> SessionInsights:
    """Return a session with the subagents that satisfy conditions: they may work in other projects."""
    seen = {found.session.key}
    return msgspec.structs.replace(
        found, subagents=tuple(_load_subagents(store, found.session, seen, conditions))
    )


def _load_subagents(
    store: Store, session: Session, seen: set[str], conditions: Sequence[Condition]
) -> Iterator[SessionInsights]:
    for key in session.children:
        if key in seen or not is_selected(store, key, conditions):
            continue
        seen.add(key)
        child = load_insights(store, key)
        if child is not None and child.session.kind == "subagent":
            yield child
            yield from _load_subagents(store, child.session, seen, conditions)


def load_many_insights(
    store: Store, filters: Filters, most: int = MOST, conditions: Sequence[Condition] = ()
) -> Iterator[SessionInsights]:
    """Yield the selected sessions with their insights, the newest first, with those subagents that satisfy conditions."""
    for key in list_keys(store, filters)[:most]:
        found = load_insights(store, key)
        if found is not None:
            yield add_subagents(store, found, conditions)


class Cited(msgspec.Struct, Generic[T], frozen=True):
    """A value with the key of the session that it is from."""

    key: str
    value: T


class DigestSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session of a digest. Tokens and cost include its subagents."""

    key: str
    agent: str
    kind: Kind
    title: str | None
    status: SessionStatus
    started_at: datetime | None
    ended_at: datetime | None
    prompts: int
    """The session's own prompts, without copied ones."""
    subagents: int
    tokens: int | None
    is_estimated: bool
    cost_usd: Decimal | None


class ChangedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file with its changes in all sessions."""

    path: str
    """The absolute path, as far as it is known."""
    name: str
    """The path in the project; with the project's name if the sessions are of several."""
    edits: int
    added: int | None
    removed: int | None
    sessions: tuple[str, ...]
    """The keys of the sessions, the newest first."""
    last: Cited[TurnPlace]


class Digest(msgspec.Struct, frozen=True, kw_only=True):
    """The insights of many sessions, the newest first; within a session, in order."""

    roots: tuple[str, ...]
    """The roots of their projects."""
    sessions: tuple[DigestSession, ...]
    left_out: int
    """Older sessions that were selected but not read."""
    decisions: tuple[Cited[Decision], ...]
    failures: tuple[Cited[CallFailure], ...]
    open_ends: tuple[Cited[OpenEnd], ...]
    """Without those of subagents, which the session that started them deals with."""
    files: tuple[ChangedFile, ...]
    """Those with the most changes first."""


def load_digest(
    store: Store, filters: Filters, most: int = MOST, conditions: Sequence[Condition] = ()
) -> Digest:
    """Return the digest of the newest selected sessions, with those subagents that satisfy conditions."""
    found = list(load_many_insights(store, filters, most, conditions))
    return make_digest(found, left_out=max(len(list_keys(store, filters)) - most, 0))


def make_digest(found: Sequence[SessionInsights], left_out: int = 0) -> Digest:
    """Return the digest of sessions."""
    every = [(one.session.key, one.insights) for whole in found for one in whole.all]
    roots = dict.fromkeys(one.session.project.root for one in found if one.session.project.root)
    return Digest(
        roots=tuple(roots),
        sessions=tuple(map(_digest_session, found)),
        left_out=left_out,
        decisions=tuple(Cited(key, one) for key, insights in every for one in insights.decisions),
        failures=tuple(Cited(key, one) for key, insights in every for one in insights.failures),
        open_ends=tuple(Cited(one.session.key, end) for one in found for end in one.insights.open_ends),
        files=_changed_files(found, tuple(roots)),
    )


def _digest_session(found: SessionInsights) -> DigestSession:
    session, every = found.session, [one.session for one in found.all]
    costs = [one.cost_usd for one in every if one.cost_usd is not None]
    return DigestSession(
        key=session.key,
        agent=session.agent,
        kind=session.kind,
        title=session.title,
        status=session.status,
        started_at=session.started_at,
        ended_at=session.ended_at,
        prompts=found.insights.prompts,
        subagents=len(found.subagents),
        tokens=_known_sum(one.usage.total for one in every),
        is_estimated=any(one.usage.estimated for one in every),
        cost_usd=sum(costs, Decimal(0)) if costs else None,
    )


def _changed_files(found: Sequence[SessionInsights], roots: Sequence[str]) -> tuple[ChangedFile, ...]:
    files: dict[str, ChangedFile] = {}
    for whole in found:
        root = whole.session.project.root
        for one in whole.all:
            for change in one.insights.changes:
                path = absolute_path(change.path, one.session.project.root or root)
                before = files.get(path)
                files[path] = ChangedFile(
                    path=path,
                    name=_file_name(path, root, roots),
                    edits=change.edits + (before.edits if before else 0),
                    added=_known_sum([change.added, before.added if before else None]),
                    removed=_known_sum([change.removed, before.removed if before else None]),
                    sessions=tuple(dict.fromkeys([*(before.sessions if before else ()), whole.session.key])),
                    last=before.last if before else Cited(one.session.key, change.last),
                )
    return tuple(sorted(files.values(), key=lambda file: (-len(file.sessions), -file.edits, file.path)))


def _file_name(path: str, root: str | None, roots: Sequence[str]) -> str:
    name = path_in_project(path, root)
    return name.removeprefix(f"{folder_name(root)}/") if root is not None and len(roots) == 1 else name


def _known_sum(figures: Iterable[int | None]) -> int | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None
