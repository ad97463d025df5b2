"""Clusters that turn out to hold one conversation, as where a file was renamed: from then on they are one, and read as one."""

from collections import defaultdict
from collections.abc import Iterable

import apsw

Cluster = tuple[str, str]
"""An agent, and a cluster of its files."""


class ClusterMerger:
    """What one run finds out. It is kept with the files themselves: each bears the cluster that it belongs to by now."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._leaders: dict[Cluster, str] = {}
        self._waiting: set[Cluster] = set()

    def state(self) -> tuple[dict[Cluster, str], set[Cluster]]:
        """Return what was found out so far."""
        return dict(self._leaders), set(self._waiting)

    def go_back(self, state: tuple[dict[Cluster, str], set[Cluster]]) -> None:
        """Know no more than what `state` returned."""
        self._leaders, self._waiting = dict(state[0]), set(state[1])

    def leader(self, agent: str, cluster: str | None) -> str | None:
        """Return the cluster that the files of one belong to by now."""
        while cluster is not None and (agent, cluster) in self._leaders:
            cluster = self._leaders[agent, cluster]
        return cluster

    def is_waiting(self, agent: str, cluster: str | None) -> bool:
        """Tell whether a cluster is yet to be read with all of its files."""
        return cluster is not None and (agent, cluster) in self._waiting

    def is_due(self, agent: str, known: str | None, told: str | None) -> bool:
        """Tell whether a conversation that one cluster tells is known from the files of another."""
        if known is None or told is None or known == told:
            return False
        asked = "SELECT 1 FROM sources WHERE agent = ? AND cluster = ? AND NOT is_beside"
        return self._connection.execute(asked, (agent, known)).get is not None

    def unite(self, agent: str, leader: str, clusters: Iterable[str]) -> None:
        """Make clusters one, to be read again: whoever ends us, the next sync does it."""
        for other in {*clusters} - {leader}:
            for table in ("sources", "sessions"):
                asked = f"UPDATE {table} SET cluster = ? WHERE agent = ? AND cluster = ?"  # noqa: S608 - ours
                self._connection.execute(asked, (leader, agent, other))
            self._leaders[agent, other] = leader
            self._waiting.discard((agent, other))
        self._waiting.add((agent, leader))

    def leave_unread(self, agent: str, cluster: str | None) -> None:
        """Take note that a cluster was not read with all of its files."""
        asked = "UPDATE sources SET revision = 0 WHERE agent = ? AND cluster = ?"
        self._connection.execute(asked, (agent, cluster))

    def taken(self) -> dict[str, set[str]]:
        """Return the clusters that are to be read as one, by agent; whoever asks sees to it."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for agent, cluster in self._waiting:
            found[agent].add(cluster)
        self._waiting.clear()
        return dict(found)
