"""What a person wants gone: out of the record, the originals and the index, and never brought back by a sync."""

from collections.abc import Sequence

from retold.archive.database import IndexDamagedError
from retold.archive.forget import finish, forget_sessions, unfinished
from retold.archive.index.files import SHARDS, remove_index, shard_path
from retold.archive.index.writer import IndexWriter
from retold.archive.queries.lookups import family, kin
from retold.archive.store import Store
from retold.ingest.lock import Lock
from retold.ingest.revision import REVISION


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
