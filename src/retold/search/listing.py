"""Sessions in the order in which people look for them."""

from __future__ import annotations

import os
import re
from collections import defaultdict

from retold.archive.queries.conditions import (
    CONVERSATIONS,
    NOT_BELOW_OTHERS,
    TOOL_KINDS,
    of_key,
    register_functions,
)
from retold.archive.queries.facets import NAMED, name_rows
from retold.archive.queries.listing import (
    heading_rows,
    project_rows,
    rows_named,
    session_rows,
    summary_texts,
    titles,
)
from retold.projects.matching import ORDER, closeness, is_meant, last_name

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from retold.archive.queries.conditions import Condition
    from retold.archive.queries.listing import SessionRow
    from retold.archive.store import Store
    from retold.search.filters import Filters

    Row = Sequence[Any]


class Heading:
    """A session as one line shows it."""

    __slots__ = ("ended_at", "hash", "key", "native_key", "root", "title")

    def __init__(  # noqa: PLR0913 - one for each column
        self,
        key: str,
        title: str | None,
        root: str | None,
        native_key: str | None,
        project_hash: str | None,
        ended_at: str | None,
    ) -> None:
        self.key, self.title, self.root, self.native_key = key, title, root, native_key
        self.hash, self.ended_at = project_hash, ended_at

    @property
    def project(self) -> str:
        """What tells its project from all others; sessions without any project share an empty one."""
        return self.hash or self.root or self.native_key or ""


def listed(
    record: Store, wanted: Filters, limit: int | None = None, *, every_kind: bool = False
) -> list[SessionRow]:
    """Return the matching conversations, the newest first; with `every_kind` all sessions, subagents too."""
    return session_rows(record, _meant(record, wanted, every_kind=every_kind), limit)


def listed_keys(record: Store, wanted: Filters) -> list[str]:
    """Return the keys of the sessions that a list shows, the newest first."""
    return [key for key, _ in titles(record, _meant(record, wanted, every_kind=False))]


def outlines(record: Store, wanted: Filters, limit: int | None = None) -> Iterator[str]:
    """Yield the JSON form of the sessions that a list shows, the newest first."""
    return summary_texts(record, _meant(record, wanted, every_kind=False), limit)


def titled(record: Store, wanted: Filters) -> list[tuple[str, str | None]]:
    """Return key and title of all meant sessions of whatever kind; subagents only where their parent is not there."""
    return titles(record, [*_meant(record, wanted, every_kind=True), NOT_BELOW_OTHERS])


def headings(record: Store, wanted: Filters) -> list[Heading]:
    """Return the sessions of every kind that match; subagents only where their parent is not there."""
    conditions = [*_meant(record, wanted, every_kind=True), NOT_BELOW_OTHERS]
    return [Heading(*row) for row in heading_rows(record, conditions)]


def headings_of(record: Store, keys: Iterable[str]) -> list[Heading]:
    """Return the sessions with the given keys."""
    return [Heading(*row) for key in keys for row in heading_rows(record, [of_key(key)])]


def summaries(
    record: Store, wanted: Filters, limit: int | None = None, *, every_kind: bool = False
) -> Iterator[str]:
    """Yield the JSON form of what `listed` returns, in its order."""
    return summary_texts(record, _meant(record, wanted, every_kind=every_kind), limit)


def _meant(record: Store, wanted: Filters, *, every_kind: bool) -> list[Condition]:
    register_functions(record.connection, is_meant)
    return [*wanted.sessions, *([] if every_kind else CONVERSATIONS)]


def named(record: Store, text: str) -> list[tuple[str, str | None]]:
    """Return key and title of the sessions that a text may mean: a key, a native id, or the start of either."""
    return [(key, title) for _, key, title in rows_meant(record, text)]


def rows_meant(
    record: Store, text: str, conditions: Iterable[Condition] = ()
) -> list[tuple[int, str, str | None]]:
    """Return the same with the id in the archive, of those of which conditions hold; a native id means the main session."""
    found = rows_named(record, text, conditions)
    main = [row for row in found if row[3] != "subagent"]
    return [(number, key, title) for number, key, title, _ in main or found]


class Scope:
    """A part of all conversations: those in a folder or below it; all, where there is none."""

    __slots__ = ("folder", "name")

    def __init__(self, name: str, folder: str | None = None) -> None:
        self.name, self.folder = name, folder


def scopes(roots: Iterable[str | None], here: str) -> list[Scope]:
    """Return all scopes, the widest first: everything, the project that a folder is in, and the folder itself."""
    found = [Scope("all")]
    around = [root for root in roots if root and is_within(here, root)]
    if around:
        found.append(Scope("this project", max(around, key=len)))
    if not around or found[-1].folder != here:
        found.append(Scope("this folder", here))
    return found


def is_within(path: str, folder: str) -> bool:
    """Tell whether a path is a folder, or lies below it."""
    top = folder.rstrip("/\\")
    return path == folder or path.rstrip("/\\") == top or path.startswith((f"{top}/", f"{top}{os.sep}"))


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


MOST = 30
"""How many names a message lists."""
_PLAIN = re.compile(r"[\w.:@/+-]{1,64}")
"""Names in a transcript may be anything; a message lists only names of this form."""


def unknown_names(
    record: Store, asked: Iterable[tuple[str, str]], conditions: Sequence[Condition] = ()
) -> list[str]:
    """Return a message for each filter whose name no session has; it lists the names in sessions that meet the conditions."""
    register_functions(record.connection, is_meant)
    found = []
    for kind, name in dict.fromkeys(asked):
        if kind in NAMED and not (kind == "tool" and name.lower() in TOOL_KINDS):
            rows = list(name_rows(record, kind, conditions))
            if not any(_is_known(kind, name, row) for row in rows):
                found.append(_message(kind, name, list(dict.fromkeys(_names(kind, rows)))))
    return found


def _is_known(kind: str, name: str, row: Row) -> bool:
    """Tell whether a name means what has the names of a row."""
    if kind == "project":
        root, native_key, digest = row
        return is_meant(root, native_key, digest, name)
    known = [str(value).lower() for value in row if value is not None]
    return any(name.lower() in value if kind == "model" else name.lower() == value for value in known)


def _names(kind: str, rows: Iterable[Row]) -> Iterator[str]:
    """Yield by which name each thing is listed; a project without a root has none."""
    for first, *_ in rows:
        if first is not None:
            yield last_name(first) if kind == "project" else str(first)


def _message(kind: str, name: str, names: Sequence[str]) -> str:
    shown = [known for known in names if _PLAIN.fullmatch(known)][:MOST]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    there = f"there are {', '.join(shown)}{more}" if shown else "there are none"
    kinds = f"; the kinds of tools are {', '.join(TOOL_KINDS)}" if kind == "tool" else ""
    return f"no {kind} is called {name}: {there}{kinds}"
