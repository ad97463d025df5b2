"""Projects as people know them: one per root, with the sessions that took place in it."""

from __future__ import annotations

from collections import defaultdict

from retold.archive.queries.listing import project_rows
from retold.projects.matching import ORDER, closeness, is_meant, last_name
from retold.query.scope import is_within

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from retold.archive.store import Store


class ProjectPlace:
    """A project with what happened there."""

    __slots__ = ("evidence", "hash", "last_at", "native_keys", "root", "sessions")

    def __init__(  # noqa: PLR0913 - as many as the contract names
        self,
        root: str | None,
        native_keys: Sequence[str],
        project_hash: str | None,
        evidence: str,
        sessions: int,
        last_at: str | None,
    ) -> None:
        self.root, self.native_keys, self.hash, self.evidence = root, native_keys, project_hash, evidence
        self.sessions, self.last_at = sessions, last_at

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
        names = ("root", "native_keys", "hash", "evidence", "sessions", "last_at")
        return {name: getattr(self, name) for name in names}


def places(record: Store) -> list[ProjectPlace]:
    """Return every project that has a session of its own, the one used last first; counts are of conversations."""
    projects: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for row in project_rows(record):
        root, native_key, project_hash, *_ = row
        projects[project_hash or root or native_key or ""].append(row)
    found = [_place(rows) for rows in projects.values()]
    return sorted(found, key=lambda place: (place.last_at or "", place.name), reverse=True)


def _place(rows: Sequence[tuple[Any, ...]]) -> ProjectPlace:
    root, _, project_hash, evidence, *_ = min(rows, key=lambda row: ORDER.index(row[3]))
    keys = sorted({row[1] for row in rows if row[1]})
    return ProjectPlace(
        root,
        keys,
        project_hash,
        evidence,
        sum(row[5] for row in rows),
        max((row[4] for row in rows if row[4]), default=None),
    )


def with_roots(found: Iterable[ProjectPlace], roots: Mapping[str, str]) -> list[ProjectPlace]:
    """Return the places with the roots that a scan has proven."""
    return [_rooted(place, roots.get(place.hash or "")) for place in found]


def _rooted(place: ProjectPlace, root: str | None) -> ProjectPlace:
    if root is None:
        return place
    return ProjectPlace(root, place.native_keys, place.hash, "hash", place.sessions, place.last_at)


def called(found: Iterable[ProjectPlace], name: str) -> list[ProjectPlace]:
    """Return the places that a name may mean, the closest first."""
    fits = [(closeness(place.name, name), number, place) for number, place in enumerate(found)]
    return [
        place
        for fit, _, place in sorted((fit for fit in fits if fit[0] is not None), key=lambda fit: fit[:2])
    ]


def meant(found: Iterable[ProjectPlace], text: str) -> list[ProjectPlace]:
    """Return the places that a filter means; one that is called exactly so is meant alone."""
    fits = [place for place in found if _is_meant(place, text)]
    return [place for place in fits if text.rstrip("/\\") in (place.root, place.hash, place.name)] or fits


def _is_meant(place: ProjectPlace, text: str) -> bool:
    return any(is_meant(place.root, key, place.hash, text) for key in (*place.native_keys, None))


def around(found: Iterable[ProjectPlace], folder: str) -> ProjectPlace | None:
    """Return the place that a folder is, or lies in; of several, the closest. A place may be known by its hash alone."""
    from pathlib import PurePath

    from retold.model.session import root_hash

    by_hash = {root_hash(one): one for one in map(str, (folder, *PurePath(folder).parents))}
    roots = [(place.root or by_hash.get(place.hash or ""), place) for place in found]
    places = [(len(root), place) for root, place in roots if root and is_within(folder, root)]
    return max(places, key=lambda one: one[0], default=(0, None))[1]
