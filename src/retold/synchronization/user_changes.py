"""Changes by the user: titles, tags, roots of projects, and sessions to forget."""

from collections.abc import Mapping, Sequence

from retold.archive.annotations import add_tag, load_session_tags, remove_tag, write_title
from retold.archive.database import IndexDamagedError
from retold.archive.forget import forget_sessions, load_unfinished, rewrite_archive
from retold.archive.index.writer import IndexWriter
from retold.archive.queries.lookups import (
    load_cluster_mates,
    load_family,
    load_project_session_ids,
    load_stored_session,
)
from retold.archive.relations import resolve_relations
from retold.archive.store import SHARDS, Store, remove_index, shard_path
from retold.archive.sync_state import write_roots
from retold.synchronization.fingerprints import REVISION
from retold.synchronization.update import PATIENCE, Lock


def set_title(store: Store, key: str, title: str) -> None:
    """Give a session a title; an empty one restores the agent's own."""
    session, uid = _find(store, key)
    with store.connection:
        write_title(store, uid, title)
        resolve_relations(store, [session])


def change_tags(store: Store, key: str, changes: Sequence[str]) -> None:
    """Add tags to a session, and remove those that begin with a minus."""
    session, uid = _find(store, key)
    with store.connection:
        for change in changes:
            if change.startswith("-"):
                remove_tag(store, uid, change[1:])
            else:
                add_tag(store, uid, change.removeprefix("+"))
        resolve_relations(store, [session])


def load_tags(store: Store, key: str) -> list[str]:
    """Return the tags of a session."""
    return load_session_tags(store, _find(store, key)[1])


def save_roots(folder: str, roots: Mapping[str, str], patience: float = PATIENCE) -> None:
    """Write roots that were found by their hashes, and resolve the projects of the sessions there.

    Waits some seconds for another process that writes to the archive, then raises RetoldError.
    """
    with Lock(folder, lambda: None, patience), Store(folder, can_write=True) as store, store.connection:
        write_roots(store, roots)
        resolve_relations(store, load_project_session_ids(store, roots.keys()))


def _find(store: Store, key: str) -> tuple[int, int]:
    """Return the id and the uid of a session."""
    row = load_stored_session(store, key)
    if row is None:
        raise LookupError(key)
    return row[0], row[1]


def forget(folder: str, keys: Sequence[str]) -> tuple[int, bool]:
    """Forget sessions and their subagents; return how many, and whether no file of the archive has their words any more.

    The agents' own files are not touched.
    """
    with Lock(folder, lambda: None), Store(folder, can_write=True) as store:
        is_clean = finish_forgetting(store)
        sessions = {session for key in keys for session in load_family(store, key)}
        if sessions:
            forget_sessions(store, sessions, load_cluster_mates(store, sessions), REVISION)
            is_clean = finish_forgetting(store)
    return len(sessions), is_clean


def finish_forgetting(store: Store) -> bool:
    """Remove the words of forgotten sessions from the index and the archive's file; return whether none is left.

    The archive lists the sessions in the transaction that deletes them: if a process ends before all is done, the next
    one finishes.
    """
    unfinished = load_unfinished(store)
    if unfinished is None:
        return True
    is_index_clean = True
    try:
        for number in range(SHARDS):
            shard = IndexWriter(shard_path(store.folder, number), store.id)
            is_index_clean &= shard.erase(*unfinished)
            shard.close()
    except IndexDamagedError:
        remove_index(store.folder)  # the next sync or search rebuilds it
        is_index_clean = True
    return is_index_clean and rewrite_archive(store)
