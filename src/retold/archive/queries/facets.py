"""By what sessions can be told apart, and how many are alike."""

from __future__ import annotations

from retold.archive.queries.conditions import Condition, clause
from retold.archive.queries.listing import among, session_ids

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from retold.archive.store import Store

    Row = tuple[Any, ...]


_OWN = "sessions.agent, sessions.status, sessions.root, sessions.native_key, sessions.hash"
_JOINED = {
    "called": ("tool_calls.canonical", "CROSS JOIN tool_calls ON tool_calls.session = sessions.id"),
    "used": ("used.canonical", "JOIN used ON used.session = sessions.id"),
    "tag": ("tags.tag", "JOIN tags ON tags.name = sessions.name"),
    "home": (
        "sources.label",
        (
            "JOIN session_sources ON session_sources.session = sessions.id"
            " JOIN sources ON sources.id = source AND label IS NOT NULL"
        ),
    ),
}
_HAS_COPIES = Condition(
    "sessions.tool_calls > (SELECT total(calls) FROM worked WHERE worked.session = sessions.id)"
)
"""That a session shows calls which were copied from another: in the sums they count there only."""


NAMED = {
    "tool": "SELECT tool, canonical, server FROM tool_calls JOIN sessions ON sessions.id = tool_calls.session"
    " WHERE {which} GROUP BY 1, 2, 3 ORDER BY count(*) DESC, 1",
    "model": "SELECT model FROM models JOIN sessions ON sessions.id = models.session"
    " WHERE {which} GROUP BY 1 ORDER BY count(*) DESC, 1",
    "tag": "SELECT tag FROM tags JOIN sessions ON sessions.name = tags.name"
    " WHERE {which} GROUP BY 1 ORDER BY count(*) DESC, 1",
    "home": "SELECT label, home FROM sources JOIN session_sources ON source = sources.id"
    " JOIN sessions ON sessions.id = session_sources.session"
    " WHERE label IS NOT NULL AND {which} GROUP BY 1, 2 ORDER BY count(*) DESC, 1",
    "project": "SELECT root, native_key, hash FROM sessions WHERE {which} GROUP BY 1, 2, 3 ORDER BY count(*) DESC, 1",
}
"""What people give names to, and the query for the names that sessions have: the most frequent first."""


def own_rows(record: Store, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield agent, status and project, in three parts, with how many sessions have all of these."""
    which, values = clause(conditions)
    return record.rows(f"SELECT {_OWN}, count(*) FROM sessions WHERE {which} GROUP BY {_OWN}", values)  # noqa: S608 - values are bound


def joined_rows(record: Store, name: str, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield the tags, homes or tools of sessions, with how many sessions have each."""
    (column, join), (which, values) = _JOINED[name], clause(conditions)
    asked = f"SELECT {column}, count(DISTINCT sessions.id) FROM sessions {join} WHERE {which} GROUP BY 1"  # noqa: S608 - values are bound
    return record.rows(asked, values)


def tool_rows(record: Store, conditions: Sequence[Condition]) -> Iterator[Row]:
    """Yield the tools that sessions called, with how many did; a tool may come twice.

    To go through the sums is three times as fast as through all calls.
    """
    copying = session_ids(record, [*conditions, _HAS_COPIES])
    if copying:
        yield from joined_rows(record, "called", [among(copying)])
    others = [*conditions, among(copying).negated()] if copying else conditions
    yield from joined_rows(record, "used", others)


def name_rows(record: Store, kind: str, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield all names of one kind that sessions have; a row holds the names of one thing."""
    which, values = clause(conditions)
    return record.rows(NAMED[kind].format(which=which), values)


def model_rows(record: Store, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield the models of sessions: which of them each session had, one behind the other, and how many had the same."""
    which, values = clause(conditions)
    told = "(SELECT json_group_array(model) FROM models WHERE models.session = sessions.id)"
    return record.rows(f"SELECT {told}, count(*) FROM sessions WHERE {which} GROUP BY 1", values)  # noqa: S608 - values are bound


def span_counts(
    record: Store, conditions: Iterable[Condition], spans: Sequence[tuple[str, str]]
) -> list[int]:
    """Return how many sessions were at work in each of some times."""
    which, values = clause(conditions)
    sums = ", ".join(["total(ended_at >= ? AND started_at < ?)"] * len(spans))
    row = record.row(
        f"SELECT {sums} FROM sessions WHERE {which}",  # noqa: S608 - values are bound
        [*(moment for span in spans for moment in span), *values],
    )
    return [int(number) for number in row or ()]
