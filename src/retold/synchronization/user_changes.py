"""The user's own hand: titles and tags, and roots of projects that were looked for."""

from collections.abc import Mapping, Sequence

from retold.archive.annotations import add_tag, keep_title, remove_tag, tags
from retold.archive.database import IndexDamagedError
from retold.archive.forget import finish, forget_sessions, unfinished
from retold.archive.index.files import SHARDS, remove_index, shard_path
from retold.archive.index.writer import IndexWriter
from retold.archive.queries.lookups import family, ids_of_projects, kin, known_by
from retold.archive.relations import resolve_relations
from retold.archive.store import Store
from retold.archive.sync_state import keep_roots
from retold.synchronization.fingerprints import REVISION
from retold.synchronization.update import PATIENCE, Lock


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


def forget(folder: str, keys: Sequence[str]) -> tuple[int, bool]:
    """Forget sessions and their subagents; return how many, and whether no word is left in any file of the archive.

    The agents' own files are not touched.
    """
    with Lock(folder, lambda: None), Store(folder, can_write=True) as record:
        is_clean = finish_forgetting(record)
        sessions = {session for key in keys for session in family(record, key)}
        if sessions:
            forget_sessions(record, sessions, kin(record, sessions), REVISION)
            is_clean = finish_forgetting(record)
    return len(sessions), is_clean


def finish_forgetting(record: Store) -> bool:
    """Take the words of erased sessions out of the index and the archive's file; tell whether none is left.

    The archive notes them in the transaction that erases them: a process that ends before all is done leaves it to the
    next.
    """
    noted = unfinished(record)
    if noted is None:
        return True
    try:
        is_index_clean = _erase_words(record, *noted)
    except IndexDamagedError:
        remove_index(record.folder)  # the next sync or search makes it again
        is_index_clean = True
    return is_index_clean and finish(record)


def _erase_words(record: Store, names: Sequence[int], related: Sequence[int]) -> bool:
    is_clean = True
    for number in range(SHARDS):
        shard = IndexWriter(shard_path(record.folder, number), record.id)
        is_clean &= shard.erase(names, related)
        shard.close()
    return is_clean
