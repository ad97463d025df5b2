"""By what conversations can be narrowed down: each value with how many there are of it, under whatever else was chosen."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec

from retold.archive.queries.conditions import Condition, register_functions
from retold.archive.queries.facets import joined_rows, model_rows, own_rows, span_counts, tool_rows
from retold.archive.queries.listing import among, count_of, session_ids
from retold.archive.queries.reports import of_project
from retold.archive.store import Store
from retold.projects.matching import is_meant
from retold.search.filters import FILTERS, Filters, moment
from retold.search.report_query import UNKNOWN

MOST = 40
"""Values of one facet that are told; whoever means another one types it."""
DATES = ("since", "until")
_OWN = ("agent", "status", "project")
_ORDER = ("agent", "project", "model", "tool", "status", "tag", "home")
_FIRST, _LAST = "0000", "9999"
"""What sorts before and behind every time."""


class Value(msgspec.Struct, frozen=True):
    """What conversations have in common."""

    value: str
    """As a filter means it."""
    count: int
    root: str | None = None
    """Of a project."""


class Facet(msgspec.Struct, frozen=True):
    """The values of one kind, those of most conversations first."""

    name: str
    values: tuple[Value, ...]


class Facets:
    """Conversations, and filters that narrow them down, each by one value."""

    def __init__(self, record: Store, base: Sequence[Condition], filters: Mapping[str, str]) -> None:
        """Take what holds of all conversations that are looked at; raises ValueError for a date that is none."""
        self._record, self._base = record, list(base)
        self._filters = {
            name: conditions_of({name: value}) for name, value in filters.items() if name in FILTERS
        }
        self._known: dict[tuple[str, ...], list[Condition]] = {}
        register_functions(record.connection, is_meant)

    @cached_property
    def count(self) -> int:
        """How many there are under all filters."""
        return count_of(self._record, self.all)

    @property
    def all(self) -> list[Condition]:
        """What holds under all filters."""
        return self._without(())

    def _without(self, names: Sequence[str]) -> list[Condition]:
        """Return what holds under the other filters: asked once, for many counts."""
        others = tuple(name for name in self._filters if name not in names)
        if not others:
            return self._base
        if others not in self._known:
            chosen = [one for name in others for one in self._filters[name]]
            self._known[others] = [among(session_ids(self._record, [*self._base, *chosen]))]
        return self._known[others]

    def facets(self) -> list[Facet]:
        """Return all that there is to choose from."""
        plain = self._own(())
        found = {name: self._own((name,))[name] if name in self._filters else plain[name] for name in _OWN}
        found["model"] = _models(model_rows(self._record, self._without(("model",))))
        tools: Counter[str] = Counter()
        for tool, count in tool_rows(self._record, self._without(("tool",))):
            tools[tool] += count
        found["tool"] = [Value(tool, count) for tool, count in tools.items()]
        for name in ("tag", "home"):
            rows = joined_rows(self._record, name, self._without((name,)))
            found[name] = [Value(value, count) for value, count in rows]
        return [Facet(name, _most(found[name])) for name in _ORDER if found[name]]

    def spans(self, spans: Sequence[Mapping[str, str]]) -> list[int]:
        """Return how many conversations there are in times, each given as filters give it."""
        return span_counts(self._record, self._without(DATES), [_moments(span) for span in spans])

    def _own(self, without: Sequence[str]) -> dict[str, list[Value]]:
        counts: dict[str, Counter[tuple[str, str | None]]] = {name: Counter() for name in _OWN}
        for agent, status, root, native_key, project_hash, count in own_rows(
            self._record, self._without(without)
        ):
            counts["agent"][agent, None] += count
            counts["status"][status, None] += count
            counts["project"][root or project_hash or native_key or UNKNOWN, root] += count
        return {
            name: [Value(value, count, root) for (value, root), count in told.items()]
            for name, told in counts.items()
        }


def conditions_of(filters: Mapping[str, str]) -> list[Condition]:
    """Return what filters ask of sessions; raises ValueError for a date that is none.

    A project that is called unknown here is that of sessions of which nothing tells where they were.
    """
    wanted = Filters()
    for name, value in filters.items():
        if (name, value) == ("project", UNKNOWN):
            wanted.sessions.append(of_project(None))
            continue
        try:
            wanted.add(name, value, in_messages=False)
        except OverflowError as error:
            raise ValueError(value) from error
    return wanted.sessions


def _models(rows: Iterable[tuple[str, int]]) -> list[Value]:
    """Return models as the filter means them: by a part of their name, so that one may count for another too."""
    told = [(json.loads(models), count) for models, count in rows]
    names = {model for models, _ in told for model in models}
    return [
        Value(
            name,
            sum(count for models, count in told if any(name.lower() in model.lower() for model in models)),
        )
        for name in names
    ]


def _most(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(sorted(values, key=lambda one: (-one.count, one.value))[:MOST])


def _moments(span: Mapping[str, str]) -> tuple[str, str]:
    since, until = span.get("since"), span.get("until")
    return (
        moment("after", since) if since else _FIRST,
        moment("before", until) if until else _LAST,
    )


class Extent(msgspec.Struct, frozen=True):
    """Names with how many there are of each, the most first."""

    projects: tuple[tuple[str, int], ...]
    agents: tuple[tuple[str, int], ...]


def extent(record: Store, conditions: Iterable[Condition]) -> Extent:
    """Return how much there is of which conditions hold."""
    projects: Counter[str] = Counter()
    agents: Counter[str] = Counter()
    for agent, _, root, native_key, project_hash, count in own_rows(record, conditions):
        projects[root or native_key or project_hash or UNKNOWN] += count
        agents[agent] += count
    return Extent(tuple(projects.most_common()), tuple(agents.most_common()))
