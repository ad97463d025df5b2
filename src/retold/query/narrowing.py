"""Which part of all work figures are of: what can be chosen, and the question that a choice makes."""

from __future__ import annotations

import msgspec

from retold.archive.breakdowns import agent_rows, model_rows, named_model, of_project, of_session, with_model
from retold.archive.conditions import Condition
from retold.archive.record import Record
from retold.query.places import Place, places
from retold.query.question import UNKNOWN, Question
from retold.query.wanted import Wanted

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from retold.archive.reports import Span


class Choices(msgspec.Struct, frozen=True):
    """All that can be chosen from."""

    agents: tuple[str, ...]
    models: tuple[str, ...]
    projects: tuple[Place, ...]
    """The one used last first."""

    def project(self, text: str) -> Place | None:
        """Return the project that a text names: by its root, its hash or the agent's own name for it."""
        return next((place for place in self.projects if text in names_of(place)), None)


class Narrowing(msgspec.Struct, frozen=True):
    """What was chosen: an empty text is all."""

    agent: str = ""
    project: str = ""
    model: str = ""
    tool: str = ""
    session: str = ""


class _Exact(Question):
    """A question in which a model is meant by its whole name, so that a figure and what it is made of are the same."""

    def of_requests(self, table: str) -> list[Condition]:
        """Return what must hold of requests, or of sums of them."""
        if self._model is None:
            return self.sessions
        return [*self.sessions, named_model(table, None if self._model == UNKNOWN else self._model)]


def choices(record: Record) -> Choices:
    """Return what an archive has to choose from."""
    agents = tuple(agent for (agent,) in agent_rows(record))
    return Choices(agents, tuple(model for (model,) in model_rows(record)), tuple(places(record)))


def narrowed(record: Record, choice: Narrowing, known: Choices, span: Span) -> Question:
    """Return the question that a choice makes."""
    wanted = Wanted()
    if choice.agent:
        wanted.add("agent", choice.agent)
    if choice.project:
        place = known.project(choice.project)
        if place is None:
            wanted.add("project", choice.project)
        else:
            wanted.sessions.append(of_project(key_of(place)))
    if choice.model and choice.model != UNKNOWN:
        wanted.sessions.append(with_model(choice.model))
    if choice.session:
        wanted.sessions.append(of_session(choice.session))
    return _Exact(record, wanted, span, choice.model or None, choice.tool or None)


def key_of(place: Place) -> str | None:
    """Return what a project is known by in reports; None for that of sessions of which nothing tells where they were."""
    return place.root or place.hash or next(iter(place.native_keys), None)


def names_of(place: Place) -> tuple[str, ...]:
    """Return all by which a project may be asked for."""
    found = [name for name in (place.root, place.hash, *place.native_keys) if name]
    return tuple(found) or (UNKNOWN,)
