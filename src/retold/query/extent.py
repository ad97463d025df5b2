"""How many conversations there are, by project and by agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from retold.archive.queries.conditions import Condition
from retold.archive.queries.facets import own_rows
from retold.archive.store import Store
from retold.query.question import UNKNOWN


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
