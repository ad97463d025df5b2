"""The user's own hand: titles and tags, and roots of projects that were looked for."""

from collections.abc import Mapping, Sequence

from retold.archive.annotations import add_tag, keep_title, remove_tag, tags
from retold.archive.queries.lookups import ids_of_projects, known_by
from retold.archive.relations import resolve_relations
from retold.archive.store import Store
from retold.archive.sync_state import keep_roots
from retold.ingest.lock import PATIENCE, Lock


def name_session(record: Store, key: str, title: str) -> None:
    """Give a session a title; an empty one brings back the agent's own."""
    number, name = _known(record, key)
    with record.connection:
        keep_title(record, name, title)
        resolve_relations(record, [number])


def tag_session(record: Store, key: str, changes: Sequence[str]) -> None:
    """Add tags, and take those off that begin with a minus."""
    number, name = _known(record, key)
    with record.connection:
        for change in changes:
            if change.startswith("-"):
                remove_tag(record, name, change[1:])
            else:
                add_tag(record, name, change.removeprefix("+"))
        resolve_relations(record, [number])


def tags_of(record: Store, key: str) -> list[str]:
    """Return the tags of a session."""
    return tags(record, _known(record, key)[1])


def learn_roots(folder: str, roots: Mapping[str, str], patience: float = PATIENCE) -> None:
    """Keep roots that were found by their hashes, and tell the sessions that took place there.

    Another process that writes to the archive is waited for, for so many seconds; then it raises Stopped.
    """
    with Lock(folder, lambda: None, patience), Store(folder, can_write=True) as record, record.connection:
        keep_roots(record, roots)
        resolve_relations(record, ids_of_projects(record, roots.keys()))


def _known(record: Store, key: str) -> tuple[int, int]:
    row = known_by(record, key)
    if row is None:
        raise LookupError(key)
    return row[0], row[1]
