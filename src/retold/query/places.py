"""Projects as people know them: one per root, with the sessions that took place in it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from retold.model.project import Evidence, Project
from retold.model.session import Session
from retold.model.wire import as_builtins
from retold.projects.atlas import ORDER
from retold.projects.matching import closeness, last_name


class Place(msgspec.Struct, frozen=True):
    """A project with what happened there."""

    root: str | None
    native_keys: tuple[str, ...]
    hash: str | None
    evidence: Evidence
    sessions: int
    last_at: datetime | None

    @property
    def is_proven(self) -> bool:
        """Whether the root is more than a guess."""
        return self.evidence in ("recorded", "registry", "hash")

    @property
    def name(self) -> str:
        """The last name of the root, else the first 8 characters of the hash."""
        return last_name(self.root) if self.root else (self.hash or next(iter(self.native_keys), ""))[:8]

    def as_json(self) -> dict[str, Any]:
        """Return the place in its JSON form."""
        return as_builtins(self)


def places(sessions: Iterable[Session]) -> list[Place]:
    """Return every project that has a session of its own, the one used last first."""
    projects: dict[str, list[Project]] = defaultdict(list)
    ends: dict[str, list[datetime]] = defaultdict(list)
    for session in sessions:
        if session.kind != "subagent":
            project = session.project
            name = project.hash or project.root or project.native_key or ""
            projects[name].append(project)
            if session.ended_at is not None and not session.are_times_derived:
                ends[name].append(session.ended_at)
    found = [_place(projects[name], ends[name]) for name in projects]
    return sorted(found, key=lambda place: (str(place.last_at or ""), place.name), reverse=True)


def _place(projects: Sequence[Project], ends: Sequence[datetime]) -> Place:
    best = min(projects, key=lambda project: ORDER.index(project.evidence))
    keys = sorted({project.native_key for project in projects if project.native_key})
    return Place(best.root, tuple(keys), best.hash, best.evidence, len(projects), max(ends, default=None))


def with_roots(found: Iterable[Place], roots: Mapping[str, str]) -> list[Place]:
    """Return the places with the roots that a scan has proven."""
    return [_rooted(place, roots.get(place.hash or "")) for place in found]


def _rooted(place: Place, root: str | None) -> Place:
    return place if root is None else msgspec.structs.replace(place, root=root, evidence="hash")


def called(found: Iterable[Place], name: str) -> list[Place]:
    """Return the places that a name may mean, the closest first."""
    fits = [(closeness(place.name, name), number, place) for number, place in enumerate(found)]
    return [
        place
        for fit, _, place in sorted((fit for fit in fits if fit[0] is not None), key=lambda fit: fit[:2])
    ]
