"""Clusters that are read as a whole, for what only everything that was said can tell of what it took."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from retold.agents.protocol import Agent, Reading, Source
from retold.agents.registry import AGENTS
from retold.archive.rows import held_requests
from retold.ingest.counted import Answer, Cluster, Counted
from retold.ingest.derive import Scraps, conversations, scraps
from retold.model.problem import Problem
from retold.model.project import Project
from retold.model.session import Session
from retold.projects.atlas import Atlas
from retold.projects.matching import is_meant


class Wholes:
    """Reads clusters, with what files of many conversations say of theirs."""

    def __init__(
        self,
        clusters: Sequence[Cluster],
        loose: Mapping[str, Sequence[Source]],
        atlas: Atlas,
        excluded: Sequence[str],
    ) -> None:
        self._clusters, self._atlas, self._excluded = clusters, atlas, excluded
        self._shared = {name: _scraps(AGENTS[name], sources) for name, sources in loose.items()}

    def answers(self, places: Iterable[int]) -> Iterator[Answer]:
        """Yield what clusters took."""
        for place in places:
            cluster = self._clusters[place]
            agent = AGENTS[cluster.agent]
            readings = _readings(agent, cluster.sources)
            told = conversations(agent, readings, self._shared[cluster.agent], fail=_leave_out)
            found = [(group, session, self._atlas.project(session)) for group, _, session in told]
            counted = [_counted(*one) for one in found if self._is_wanted(one[2])]
            yield Answer(place, counted, dict(self._atlas.proven))

    def _is_wanted(self, project: Project) -> bool:
        return not any(
            is_meant(project.root, project.native_key, project.hash, name) for name in self._excluded
        )


def _leave_out(readings: Sequence[Reading], error: Exception) -> None:
    """Leave out what an agent fails on: `retold sync` names it."""


def _scraps(agent: Agent, sources: Sequence[Source]) -> Scraps:
    return scraps(agent, _readings(agent, sources), _leave_out)


def _readings(agent: Agent, sources: Iterable[Source]) -> Iterator[Reading]:
    for source in sources:
        try:
            found = agent.read(source)
        except Exception:  # noqa: BLE001, S112 - one bad file costs no other; `retold sync` names it
            continue
        if not isinstance(found, Problem):
            yield from found


def _counted(group: str, session: Session, project: Project) -> Counted:
    return Counted(
        session.agent,
        group,
        session.key,
        session.kind,
        session.parent,
        project,
        session.started_at,
        session.ended_at,
        session.sources[0].path,
        [request for _, request in held_requests(session)],
    )
