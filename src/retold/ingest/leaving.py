"""What is left out of files of many conversations: those that are of a project of which nothing is to be kept."""

from collections.abc import Collection, Sequence

import msgspec

from retold.agents.protocol import Agent, Reading
from retold.archive.keyed_hashes import KeyedSet
from retold.archive.queries.lookups import clusters, unkept_clusters
from retold.archive.store import Store, digest
from retold.ingest.derive import Scraps
from retold.ingest.owners import owned
from retold.model.session import Session
from retold.projects.resolver import Atlas


class KeepPolicy:
    """Which conversations are kept: all but those that were forgotten, or whose project is excluded."""

    def __init__(self, forgotten: KeyedSet, excluded: Sequence[str]) -> None:
        self._forgotten, self.excluded = forgotten, excluded

    def is_forgotten(self, name: int) -> bool:
        """Tell whether a conversation is forgotten."""
        return name in self._forgotten

    def accepts(self, name: int, session: Session) -> bool:
        """Tell whether a conversation is to be kept."""
        from retold.projects.matching import is_meant

        return name not in self._forgotten and not any(
            is_meant(session.project.root, session.project.native_key, session.project.hash, project)
            for project in self.excluded
        )


class Exclusions(msgspec.Struct, frozen=True):
    """Conversations of which nothing is kept."""

    names: frozenset[int] = frozenset()
    ids: frozenset[bytes] = frozenset()
    """The agent's own ids of them, as digests."""


class Leaver:
    """Tells which conversations of an agent are left out, by what is known once their own files were read."""

    def __init__(self, record: Store, agent: Agent, wanted: KeepPolicy, atlas: Atlas) -> None:
        self._record, self._agent, self._wanted, self._atlas = record, agent, wanted, atlas
        self._kept = clusters(record, agent.NAME)
        self._unkept = unkept_clusters(record, agent.NAME)

    def leaving(self, shared: Scraps, left: Collection[int]) -> Exclusions:
        """Return what is left out of all that files of many conversations say; `left` are names that are known to be.

        What the archive has of a conversation stays, and so does what is said of it.
        """
        names: set[int] = set()
        ids: set[bytes] = set()
        for name, said in owned(self._record, self._agent, shared, self._kept).said.items():
            if name in self._kept:
                continue
            if name in left or self._is_left(name, said):
                names.add(name)
                native_ids = {reading.native_id for reading in said if reading.native_id}
                ids |= {digest(native_id.encode("utf-8", "replace")) for native_id in native_ids}
        return Exclusions(frozenset(names), frozenset(ids))

    def _placed(self, said: Sequence[Reading]) -> Session:
        session = self._agent.join(said)
        return msgspec.structs.replace(session, project=self._atlas.project(session))

    def _is_left(self, name: int, said: Sequence[Reading]) -> bool:
        try:
            session = self._placed(said)
        except Exception:  # noqa: BLE001 - nobody knows its project, which may be excluded
            return True
        # A log may not say where a conversation took place; the file of which nothing was kept did.
        cluster = self._agent.cluster_of(session.native_id) if session.native_id else None
        return cluster in self._unkept or not self._wanted.accepts(name, session)
