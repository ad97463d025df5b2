"""The ledger without an archive: what all conversations of some homes took, straight from the agents' files.

It is what a sync would put into a new archive. Nearly all files are only counted; where that does not tell, everything
that was said is read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from retold.agents import NAMES
from retold.agents.registry import AGENTS
from retold.ingest.clusters import Clusters
from retold.ingest.counted import Answer, Cluster, Counted, joined, settled, several
from retold.ingest.families import heads
from retold.ingest.homes import Given, homes_of
from retold.ingest.shares import shared_out
from retold.model.metered import Metered
from retold.model.problem import Problem
from retold.projects.atlas import Atlas
from retold.reading.disk import DISK


class Tally:
    """A count that has begun: whoever began it may do something else before asking what came of it."""

    def __init__(
        self,
        env: Mapping[str, str],
        given: Given = (),
        agents: Sequence[str] = (),
        excluded: Sequence[str] = (),
    ) -> None:
        """Take an environment, further homes, the agents that are meant, and the projects that are not."""
        self.whole = 0
        """How many clusters had to be read as a whole, when all is counted."""
        self._excluded, self._held = excluded, Clusters()
        found = [
            cluster
            for agent in map(AGENTS.__getitem__, agents or NAMES)
            for cluster in self._held.found(agent, homes_of(agent, env, given, DISK))
        ]
        # In the order of a sync: of several who claim a key the first has it.
        self.clusters = sorted(found, key=lambda one: (-one.size, one.agent, one.name))
        # Which projects are meant is known for certain only of what was read.
        self._answers = (
            [Answer(place, None) for place in range(len(self.clusters))]
            if excluded
            else shared_out(
                partial(_metered, self.clusters, self._atlas()), range(len(self.clusters)), self._size, Answer
            )
        )

    @property
    def problems(self) -> list[Problem]:
        """What stood in the way of looking for files."""
        return [problem for _, problem in self._held.problems]

    def conversations(self) -> list[Counted]:
        """Return every conversation that has requests of its own, with these."""
        answers = {answer.place: answer for answer in self._answers}
        self._reunite(answers)
        while unsure := sorted(place for place, answer in answers.items() if answer.counted is None):
            self.whole += len(unsure)
            answers |= {answer.place: answer for answer in self._read(unsure)}
            self._reunite(answers)
        found = [one for _, answer in sorted(answers.items()) for one in answer.counted or ()]
        proven = {name: root for answer in answers.values() for name, root in answer.proven.items()}
        return [one for one in settled(found, proven) if one.requests]

    def _read(self, places: Sequence[int]) -> Iterable[Answer]:
        """Return what clusters took that have to be read as a whole."""
        from retold.ingest.wholes import Wholes

        wholes = Wholes(self.clusters, self._held.loose, self._atlas(), self._excluded)
        return shared_out(wholes.answers, places, self._size, Answer)

    def _reunite(self, answers: dict[int, Answer]) -> None:
        """Put one cluster, yet to be read, in the place of those of which several tell of one conversation."""
        together = list(several(answers.values()))
        families: dict[int, list[int]] = {}
        for place, head in enumerate(heads(len(self.clusters), together) if together else ()):
            families.setdefault(head, []).append(place)
        for family in families.values():
            if len(family) > 1:
                for place in family:
                    del answers[place]
                answers[len(self.clusters)] = Answer(len(self.clusters), None)
                self.clusters.append(joined([self.clusters[place] for place in family]))

    def _atlas(self) -> Atlas:
        # The working directory is one more place where a project may lie, as for a sync.
        return Atlas(self._held.clues, {}, str(Path.cwd()))

    def _size(self, place: int) -> int:
        return self.clusters[place].size


def _metered(clusters: Sequence[Cluster], atlas: Atlas, places: Iterable[int]) -> Iterator[Answer]:
    """Yield what clusters took, as far as counting tells."""
    for place in places:
        agent = clusters[place].agent
        try:
            found = AGENTS[agent].meter(clusters[place].sources)
        except Exception:  # noqa: BLE001 - one bad file costs no other: it is read as a whole
            found = None
        yield Answer(place, None if found is None else [_counted(agent, one, atlas) for one in found])


def _counted(agent: str, one: Metered, atlas: Atlas) -> Counted:
    project = atlas.placed(one.project, one.paths) or one.project
    return Counted(
        agent,
        one.group,
        one.key,
        one.kind,
        one.parent,
        project,
        one.started_at,
        one.ended_at,
        one.paths[0],
        one.requests,
    )
