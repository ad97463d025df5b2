"""Which part of all work figures are of: what can be chosen, and the question that a choice makes."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from retold.archive.queries.conditions import OF_SESSIONS, Condition, of_key
from retold.archive.queries.reports import (
    agent_rows,
    model_rows,
    named_model,
    of_project,
    project_rows,
    with_model,
)
from retold.archive.store import Store
from retold.query.places import ProjectPlace
from retold.query.question import UNKNOWN, ReportQuery
from retold.query.wanted import Filters

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from retold.archive.queries.reports import QuarterSpan


class Choices(msgspec.Struct, frozen=True):
    """All that can be chosen from."""

    agents: tuple[str, ...]
    models: tuple[str, ...]
    projects: Mapping[str, str | None]
    """What each is known by, by all that it may be asked for: its root, its hash, the agent's own name for it.

    None is the project of sessions of which nothing tells where they were.
    """


class ReportFilters(msgspec.Struct, frozen=True):
    """What was chosen: an empty text is all."""

    agent: str = ""
    project: str = ""
    model: str = ""
    tool: str = ""
    session: str = ""


class _Exact(ReportQuery):
    """A question in which a model is meant by its whole name, so that a figure and what it is made of are the same."""

    is_exact = True

    def of_requests(self, table: str) -> list[Condition]:
        """Return what must hold of requests, or of sums of them."""
        if self._model is None:
            return self.sessions
        return [*self.sessions, named_model(table, None if self._model == UNKNOWN else self._model)]


def choices(record: Store) -> Choices:
    """Return what an archive has to choose from."""
    projects: dict[str, str | None] = {}
    rows = list(project_rows(record))
    for key, *others in rows:
        projects |= {name: key for name in others if name}
    projects |= {key or UNKNOWN: key for key, *_ in rows}  # what one is known by is no other
    agents = tuple(agent for (agent,) in agent_rows(record))
    return Choices(agents, tuple(model for (model,) in model_rows(record)), projects)


def narrowed(record: Store, choice: ReportFilters, known: Choices, span: QuarterSpan) -> ReportQuery:
    """Return the question that a choice makes."""
    wanted = Filters()
    if choice.agent:
        # The address of a page may name an agent that does not exist: no session is of it.
        wanted.sessions.append(Condition(OF_SESSIONS["agent"], choice.agent))
    if choice.project:
        if choice.project in known.projects:
            wanted.sessions.append(of_project(known.projects[choice.project]))
        else:
            wanted.add("project", choice.project)
    if choice.model and choice.model != UNKNOWN:
        wanted.sessions.append(with_model(choice.model))
    if choice.session:
        wanted.sessions.append(of_key(choice.session))
    return _Exact(record, wanted, span, choice.model or None, choice.tool or None)


def key_of(place: ProjectPlace) -> str | None:
    """Return what a project is known by in reports; None for that of sessions of which nothing tells where they were."""
    return place.root or place.hash or next(iter(place.native_keys), None)


def is_called(place: ProjectPlace, key: str | None) -> bool:
    """Tell whether a project is the one that is known by this."""
    names = [name for name in (place.root, place.hash, *place.native_keys) if name]
    return key in names if key else not names
