"""Which files a job needs, told from their paths alone: its own, and those that lie beside them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from retold.agents.registry import AGENTS
from retold.lake.held import ListedFile
from retold.lake.job import TableJob, bundled

_PREFIX = "session-"
"""What stands before an id in the name of a folder."""


class Shipment(msgspec.Struct, frozen=True):
    """Jobs that are read together, and the files that have to be there for it."""

    jobs: Sequence[TableJob]
    paths: Sequence[str]


def shipments(jobs: Iterable[TableJob], files: Mapping[str, ListedFile], most: int) -> list[Shipment]:
    """Return jobs in bundles of bytes, those of a home together, as files of one thread may name those of another."""
    held = list(jobs)
    beside = _beside(held, files)
    needed = {place: [*_own(job), *beside.get(place, ())] for place, job in enumerate(held)}
    sized = [
        (msgspec.structs.replace(job, size=sum(files[path].size for path in needed[place])), needed[place])
        for place, job in enumerate(held)
    ]
    sized.sort(key=lambda pair: _order(pair[0]))
    paths = {id(job): own for job, own in sized}
    bundles = bundled([job for job, _ in sized], most)
    return [Shipment(bundle, [path for job in bundle for path in paths[id(job)]]) for bundle in bundles]


def _own(job: TableJob) -> list[str]:
    return [str(source.path) for source in job.sources]


def _order(job: TableJob) -> tuple[str, str, str]:
    if not job.sources or job.sources[0].home is None:
        return job.agent, "", ""
    first = job.sources[0]
    return job.agent, str(job.sources[0].home), str(first.path)


def _beside(jobs: Sequence[TableJob], files: Mapping[str, ListedFile]) -> dict[int, list[str]]:
    """Return the files that are no job's own, by the place of the job whose id a folder above them is named by."""
    own = {path for job in jobs for path in _own(job)}
    clusters: dict[tuple[str, str], int] = {}
    for place, job in enumerate(jobs):
        for source in job.sources:
            clusters[job.agent, source.cluster or ""] = place
    agents = sorted({job.agent for job in jobs})
    found: dict[int, list[str]] = {}
    known: dict[str, int | None] = {}
    for path in files:
        folder = path.rpartition("/")[0]
        if path not in own:
            if folder not in known:
                known[folder] = _place(folder, agents, clusters)
            if (home := known[folder]) is not None:
                found.setdefault(home, []).append(path)
    return found


def _place(folder: str, agents: Sequence[str], clusters: Mapping[tuple[str, str], int]) -> int | None:
    for name in reversed(Path(folder).parts):
        for agent in agents:
            place = clusters.get((agent, AGENTS[agent].cluster_of(name.removeprefix(_PREFIX))))
            if place is not None:
                return place
    return None
