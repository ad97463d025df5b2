"""Facets: how many sessions share an agent, a tool, a tag or another property."""

from __future__ import annotations

from retold.archive.queries.listing import Condition, ids_condition, join_conditions, load_session_ids

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from retold.archive.store import Store

    Row = tuple[Any, ...]


_OWN_COLUMNS = "sessions.agent, sessions.status, sessions.root, sessions.native_key, sessions.hash"
_JOINED_COLUMNS = {
    "called": ("tool_calls.canonical", "CROSS JOIN tool_calls ON tool_calls.session = sessions.id"),
    "counted": ("tool_sums.canonical", "JOIN tool_sums ON tool_sums.session = sessions.id"),
    "tag": ("tags.tag", "JOIN tags ON tags.uid = sessions.uid"),
    "home": (
        "sources.label",
        (
            "JOIN session_sources ON session_sources.session = sessions.id"
            " JOIN sources ON sources.id = source AND label IS NOT NULL"
        ),
    ),
}
_HAS_COPIES = Condition(
    "sessions.tool_calls > (SELECT total(calls) FROM activity_sums WHERE activity_sums.session = sessions.id)"
)
"""A session has calls that were copied from another, where alone the sums count them."""


NAME_QUERIES = {
    "tool": "SELECT tool, canonical, server FROM tool_calls JOIN sessions ON sessions.id = tool_calls.session"
    " WHERE {which} GROUP BY 1, 2, 3 ORDER BY count(*) DESC, 1",
    "model": "SELECT model FROM models JOIN sessions ON sessions.id = models.session"
    " WHERE {which} GROUP BY 1 ORDER BY count(*) DESC, 1",
    "tag": "SELECT tag FROM tags JOIN sessions ON sessions.uid = tags.uid"
    " WHERE {which} GROUP BY 1 ORDER BY count(*) DESC, 1",
    "home": "SELECT label, home FROM sources JOIN session_sources ON source = sources.id"
    " JOIN sessions ON sessions.id = session_sources.session"
    " WHERE label IS NOT NULL AND {which} GROUP BY 1, 2 ORDER BY count(*) DESC, 1",
    "project": "SELECT root, native_key, hash FROM sessions WHERE {which} GROUP BY 1, 2, 3 ORDER BY count(*) DESC, 1",
}
"""By kind of name: the query for the names that sessions have, the most frequent first."""


def count_by_own_columns(store: Store, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield agent, status and project, in three columns, and how many sessions have them."""
    which, values = join_conditions(conditions)
    sql = f"SELECT {_OWN_COLUMNS}, count(*) FROM sessions WHERE {which} GROUP BY {_OWN_COLUMNS}"  # noqa: S608 - values are bound
    return store.rows(sql, values)


def count_by_joined_column(store: Store, name: str, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield tags, homes or tools, and how many sessions have each."""
    (column, join), (which, values) = _JOINED_COLUMNS[name], join_conditions(conditions)
    sql = f"SELECT {column}, count(DISTINCT sessions.id) FROM sessions {join} WHERE {which} GROUP BY 1"  # noqa: S608 - values are bound
    return store.rows(sql, values)


def count_by_tool(store: Store, conditions: Sequence[Condition]) -> Iterator[Row]:
    """Yield tools, and how many sessions called each; a tool may come twice.

    Reading the sums takes a third of the time of reading all calls.
    """
    copying = load_session_ids(store, [*conditions, _HAS_COPIES])
    if copying:
        yield from count_by_joined_column(store, "called", [ids_condition(copying)])
    others = [*conditions, ids_condition(copying).negated()] if copying else conditions
    yield from count_by_joined_column(store, "counted", others)


def load_name_rows(store: Store, kind: str, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield all names of one kind that sessions have; a row has the names of one thing."""
    which, values = join_conditions(conditions)
    return store.rows(NAME_QUERIES[kind].format(which=which), values)


def count_by_models(store: Store, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield the models of a session as a JSON list, and how many sessions have the same list."""
    which, values = join_conditions(conditions)
    models = "(SELECT json_group_array(model) FROM models WHERE models.session = sessions.id)"
    return store.rows(f"SELECT {models}, count(*) FROM sessions WHERE {which} GROUP BY 1", values)  # noqa: S608 - values are bound


def count_by_span(
    store: Store, conditions: Iterable[Condition], spans: Sequence[tuple[str, str]]
) -> list[int]:
    """Return how many sessions were active in each time span."""
    which, values = join_conditions(conditions)
    sums = ", ".join(["total(ended_at >= ? AND started_at < ?)"] * len(spans))
    row = store.row(
        f"SELECT {sums} FROM sessions WHERE {which}",  # noqa: S608 - values are bound
        [*(moment for span in spans for moment in span), *values],
    )
    return [int(number) for number in row or ()]
