"""Lists of sessions and projects, scopes, and messages about unknown names."""

from __future__ import annotations

import os

from retold.archive.queries.facets import NAME_QUERIES, load_name_rows
from retold.archive.queries.listing import (
    CONVERSATIONS,
    NOT_BELOW_OTHERS,
    TOOL_KINDS,
    key_condition,
    load_heading_rows,
    load_named_sessions,
    load_project_rows,
    load_session_rows,
    load_summaries,
    load_titles,
    register_functions,
)
from retold.projects.matching import EVIDENCE_ORDER, folder_name, matches_project, name_rank

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from retold.archive.queries.listing import Condition, SessionRow
    from retold.archive.store import Store
    from retold.search.filters import Filters

    Row = Sequence[Any]


class Heading:
    """A session as one line of a list."""

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
        """Identifies the project; empty for sessions without one."""
        return self.hash or self.root or self.native_key or ""


def list_sessions(
    store: Store, filters: Filters, limit: int | None = None, *, every_kind: bool = False
) -> list[SessionRow]:
    """Return the selected conversations, the newest first; with `every_kind` all sessions, subagents too."""
    return load_session_rows(store, _conditions(store, filters, every_kind=every_kind), limit)


def list_keys(store: Store, filters: Filters) -> list[str]:
    """Return the keys of the selected conversations, the newest first."""
    return [key for key, _ in load_titles(store, _conditions(store, filters, every_kind=False))]


def list_titles(store: Store, filters: Filters) -> list[tuple[str, str | None]]:
    """Return key and title of the selected sessions of every kind; subagents only if their parent is missing."""
    return load_titles(store, [*_conditions(store, filters, every_kind=True), NOT_BELOW_OTHERS])


def list_headings(store: Store, filters: Filters) -> list[Heading]:
    """Return the selected sessions of every kind; subagents only if their parent is missing."""
    conditions = [*_conditions(store, filters, every_kind=True), NOT_BELOW_OTHERS]
    return [Heading(*row) for row in load_heading_rows(store, conditions)]


def load_headings(store: Store, keys: Iterable[str]) -> list[Heading]:
    """Return the sessions with the given keys."""
    return [Heading(*row) for key in keys for row in load_heading_rows(store, [key_condition(key)])]


def list_json(
    store: Store, filters: Filters, limit: int | None = None, *, every_kind: bool = False
) -> Iterator[str]:
    """Yield the sessions of `list_sessions` in their JSON form."""
    return load_summaries(store, _conditions(store, filters, every_kind=every_kind), limit)


def _conditions(store: Store, filters: Filters, *, every_kind: bool) -> list[Condition]:
    register_functions(store.connection, matches_project)
    return [*filters.sessions, *([] if every_kind else CONVERSATIONS)]


def resolve_ids(store: Store, text: str) -> list[tuple[str, str | None]]:
    """Return key and title of the sessions that a text may mean: a key, a native id, or the start of either."""
    return [(key, title) for _, key, title in load_named_sessions(store, text)]


class FolderScope:
    """The conversations in a folder and below it; all conversations without a folder."""

    __slots__ = ("folder", "name")

    def __init__(self, name: str, folder: str | None = None) -> None:
        self.name, self.folder = name, folder


def list_scopes(roots: Iterable[str | None], here: str) -> list[FolderScope]:
    """Return all scopes, the widest first: everything, the project that a folder is in, and the folder itself."""
    scopes = [FolderScope("all")]
    above = [root for root in roots if root and is_within(here, root)]
    if above:
        scopes.append(FolderScope("this project", max(above, key=len)))
    if not above or scopes[-1].folder != here:
        scopes.append(FolderScope("this folder", here))
    return scopes


def is_within(path: str, folder: str) -> bool:
    """Return whether a path is a folder or lies below it."""
    top = folder.rstrip("/\\")
    return path == folder or path.rstrip("/\\") == top or path.startswith((f"{top}/", f"{top}{os.sep}"))


class ProjectSummary:
    """A project with its sessions and the end of the last one."""

    __slots__ = ("evidence", "hash", "last_at", "native_keys", "root", "sessions")

    def __init__(  # noqa: PLR0913 - the fields of its JSON form
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
        """The name of the root folder, else the first 8 characters of the hash."""
        return folder_name(self.root) if self.root else (self.hash or next(iter(self.native_keys), ""))[:8]

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        names = ("root", "native_keys", "hash", "evidence", "sessions", "last_at")
        return {name: getattr(self, name) for name in names}


def list_projects(store: Store) -> list[ProjectSummary]:
    """Return every project that has sessions, the one used last first; only conversations are counted."""
    projects: dict[str, list[tuple[Any, ...]]] = {}
    for row in load_project_rows(store):
        root, native_key, project_hash, *_ = row
        projects.setdefault(project_hash or root or native_key or "", []).append(row)
    summaries = map(_summarize_project, projects.values())
    return sorted(summaries, key=lambda project: (project.last_at or "", project.name), reverse=True)


def _summarize_project(rows: Sequence[tuple[Any, ...]]) -> ProjectSummary:
    root, _, project_hash, evidence, *_ = min(rows, key=lambda row: EVIDENCE_ORDER.index(row[3]))
    keys = sorted({row[1] for row in rows if row[1]})
    return ProjectSummary(
        root,
        keys,
        project_hash,
        evidence,
        sum(row[5] for row in rows),
        max((row[4] for row in rows if row[4]), default=None),
    )


def add_roots(projects: Iterable[ProjectSummary], roots: Mapping[str, str]) -> list[ProjectSummary]:
    """Return projects with the roots that a scan has found for their hashes."""
    return [
        ProjectSummary(root, one.native_keys, one.hash, "hash", one.sessions, one.last_at)
        if (root := roots.get(one.hash or "")) is not None
        else one
        for one in projects
    ]


def match_projects(projects: Iterable[ProjectSummary], name: str) -> list[ProjectSummary]:
    """Return the projects that a name may mean, the closest match first."""
    ranks = [(name_rank(project.name, name), project) for project in projects]
    ranked = [(rank, project) for rank, project in ranks if rank is not None]
    return [project for _, project in sorted(ranked, key=lambda pair: pair[0])]


def select_projects(projects: Iterable[ProjectSummary], text: str) -> list[ProjectSummary]:
    """Return the projects that a filter selects; only those with exactly this name, root or hash if there are any."""
    selected = [
        one
        for one in projects
        if any(matches_project(one.root, key, one.hash, text) for key in (*one.native_keys, None))
    ]
    exact = text.rstrip("/\\")
    return [one for one in selected if exact in (one.root, one.hash, one.name)] or selected


def project_at(projects: Iterable[ProjectSummary], folder: str) -> ProjectSummary | None:
    """Return the project that a folder lies in; of several, the closest. Some projects are known by their hash only."""
    from pathlib import PurePath

    from retold.model.session import root_hash

    by_hash = {root_hash(one): one for one in map(str, (folder, *PurePath(folder).parents))}
    roots = [(one.root or by_hash.get(one.hash or ""), one) for one in projects]
    above = [(len(root), one) for root, one in roots if root and is_within(folder, root)]
    return max(above, key=lambda pair: pair[0], default=(0, None))[1]


_MOST_NAMES = 30
"""Names in a message."""
_PLAIN = r"[\w.:@/+-]{1,64}"
"""The form of names in a message. Names in a transcript may be anything."""


def unknown_name_messages(
    store: Store, filters: Iterable[tuple[str, str]], conditions: Sequence[Condition] = ()
) -> list[str]:
    """Return a message for each filter with a name that no session has, with the names of the selected sessions."""
    register_functions(store.connection, matches_project)
    messages = []
    for kind, name in dict.fromkeys(filters):
        if kind in NAME_QUERIES and not (kind == "tool" and name.lower() in TOOL_KINDS):
            rows = list(load_name_rows(store, kind, conditions))
            if not any(_is_known(kind, name, row) for row in rows):
                messages.append(_message(kind, name, list(dict.fromkeys(_names(kind, rows)))))
    return messages


def _is_known(kind: str, name: str, row: Row) -> bool:
    """Return whether a name means the row."""
    if kind == "project":
        root, native_key, digest = row
        return matches_project(root, native_key, digest, name)
    known = [str(value).lower() for value in row if value is not None]
    return any(name.lower() in value if kind == "model" else name.lower() == value for value in known)


def _names(kind: str, rows: Iterable[Row]) -> Iterator[str]:
    """Yield the names of rows; a project without a root has none."""
    for first, *_ in rows:
        if first is not None:
            yield folder_name(first) if kind == "project" else str(first)


def _message(kind: str, name: str, names: Sequence[str]) -> str:
    import re

    shown = [known for known in names if re.fullmatch(_PLAIN, known)][:_MOST_NAMES]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    there = f"there are {', '.join(shown)}{more}" if shown else "there are none"
    kinds = f"; the kinds of tools are {', '.join(TOOL_KINDS)}" if kind == "tool" else ""
    return f"no {kind} is called {name}: {there}{kinds}"
