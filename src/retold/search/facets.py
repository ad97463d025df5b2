"""Facets: the values by which conversations can be filtered, with counts under the other filters."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec

from retold.archive.queries.facets import (
    count_by_joined_column,
    count_by_models,
    count_by_own_columns,
    count_by_span,
    count_by_tool,
)
from retold.archive.queries.listing import (
    Condition,
    count_selected,
    ids_condition,
    load_session_ids,
    register_functions,
)
from retold.archive.queries.reports import project_condition
from retold.archive.store import Store
from retold.projects.matching import UNKNOWN, matches_project
from retold.search.filters import FILTERS, Filters, parse_moment

MOST_VALUES = 40
"""Values of one facet that are shown. Others can be typed."""
DATES = ("since", "until")
_OWN = ("agent", "status", "project")
_ORDER = ("agent", "project", "model", "tool", "status", "tag", "home")
_FIRST, _LAST = "0000", "9999"
"""Texts that sort before and after every time."""


class FacetValue(msgspec.Struct, frozen=True):
    """A value of a filter, with the number of its conversations."""

    value: str
    count: int
    root: str | None = None
    """The root of a project."""


class Facet(msgspec.Struct, frozen=True):
    """The values of one filter, those with most conversations first."""

    name: str
    values: tuple[FacetValue, ...]


class Facets:
    """The facets of conversations, under filters with one value each."""

    def __init__(self, store: Store, base: Sequence[Condition], filters: Mapping[str, str]) -> None:
        """Take the conditions of all conversations, and the filters; raise ValueError for a wrong date."""
        self._store, self._base = store, list(base)
        self._filters = {
            name: filter_conditions({name: value}) for name, value in filters.items() if name in FILTERS
        }
        self._known: dict[tuple[str, ...], list[Condition]] = {}
        register_functions(store.connection, matches_project)

    @cached_property
    def count(self) -> int:
        """The number of conversations under all filters."""
        return count_selected(self._store, self.all)

    @property
    def all(self) -> list[Condition]:
        """The conditions of all filters."""
        return self._without(())

    def _without(self, names: Sequence[str]) -> list[Condition]:
        """Return the conditions of the other filters; the sessions are selected once for many counts."""
        others = tuple(name for name in self._filters if name not in names)
        if not others:
            return self._base
        if others not in self._known:
            chosen = [one for name in others for one in self._filters[name]]
            self._known[others] = [ids_condition(load_session_ids(self._store, [*self._base, *chosen]))]
        return self._known[others]

    def load_facets(self) -> list[Facet]:
        """Return all facets that have values."""
        plain = self._own(())
        values = {name: self._own((name,))[name] if name in self._filters else plain[name] for name in _OWN}
        values["model"] = _models(count_by_models(self._store, self._without(("model",))))
        tools: Counter[str] = Counter()
        for tool, count in count_by_tool(self._store, self._without(("tool",))):
            tools[tool] += count
        values["tool"] = [FacetValue(tool, count) for tool, count in tools.items()]
        for name in ("tag", "home"):
            rows = count_by_joined_column(self._store, name, self._without((name,)))
            values[name] = [FacetValue(value, count) for value, count in rows]
        return [Facet(name, _select_most(values[name])) for name in _ORDER if values[name]]

    def count_spans(self, spans: Sequence[Mapping[str, str]]) -> list[int]:
        """Return the number of conversations in each time, given by its filters."""
        return count_by_span(self._store, self._without(DATES), [_moments(span) for span in spans])

    def _own(self, without: Sequence[str]) -> dict[str, list[FacetValue]]:
        counts: dict[str, Counter[tuple[str, str | None]]] = {name: Counter() for name in _OWN}
        for agent, status, root, native_key, project_hash, count in count_by_own_columns(
            self._store, self._without(without)
        ):
            counts["agent"][agent, None] += count
            counts["status"][status, None] += count
            counts["project"][root or project_hash or native_key or UNKNOWN, root] += count
        return {
            name: [FacetValue(value, count, root) for (value, root), count in of_name.items()]
            for name, of_name in counts.items()
        }


def filter_conditions(filters: Mapping[str, str]) -> list[Condition]:
    """Return the conditions of filters on sessions; raise ValueError for a wrong date.

    The project `unknown` is that of sessions without any evidence of their folder.
    """
    parsed = Filters()
    for name, value in filters.items():
        if (name, value) == ("project", UNKNOWN):
            parsed.sessions.append(project_condition(None))
            continue
        try:
            parsed.add(name, value, in_messages=False)
        except OverflowError as error:
            raise ValueError(value) from error
    return parsed.sessions


def _models(rows: Iterable[tuple[str, int]]) -> list[FacetValue]:
    """Return the models. A filter matches a part of a name, so that a session may count for several."""
    pairs = [(json.loads(models), count) for models, count in rows]
    return [
        FacetValue(
            name,
            sum(count for models, count in pairs if any(name.lower() in model.lower() for model in models)),
        )
        for name in {model for models, _ in pairs for model in models}
    ]


def _select_most(values: Iterable[FacetValue]) -> tuple[FacetValue, ...]:
    return tuple(sorted(values, key=lambda one: (-one.count, one.value))[:MOST_VALUES])


def _moments(span: Mapping[str, str]) -> tuple[str, str]:
    since, until = span.get("since"), span.get("until")
    return (
        parse_moment("after", since) if since else _FIRST,
        parse_moment("before", until) if until else _LAST,
    )


class SessionCounts(msgspec.Struct, frozen=True):
    """The numbers of sessions by project and by agent, the highest first."""

    projects: tuple[tuple[str, int], ...]
    agents: tuple[tuple[str, int], ...]


def count_projects_and_agents(store: Store, conditions: Iterable[Condition]) -> SessionCounts:
    """Return the numbers of sessions that meet conditions."""
    projects: Counter[str] = Counter()
    agents: Counter[str] = Counter()
    for agent, _, root, native_key, project_hash, count in count_by_own_columns(store, conditions):
        projects[root or native_key or project_hash or UNKNOWN] += count
        agents[agent] += count
    return SessionCounts(tuple(projects.most_common()), tuple(agents.most_common()))
