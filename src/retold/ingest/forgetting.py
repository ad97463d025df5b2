"""What a person wants gone: out of the record, the originals and the index, and never brought back by a sync."""

from collections.abc import Sequence

from retold.archive.database import IndexDamaged
from retold.archive.erasing import erase, leave_no_trace
from retold.archive.record import Record
from retold.archive.sessions import family, kin
from retold.archive.shards import SHARDS, remove_index, shard_path
from retold.archive.texts import Shard
from retold.ingest.lock import Lock
from retold.ingest.revision import REVISION


def forget(folder: str, keys: Sequence[str]) -> int:
    """Forget sessions and their subagents; return how many. The agents' own files are not touched."""
    with Lock(folder, lambda: None), Record(folder, can_write=True) as record:
        sessions = {session for key in keys for session in family(record, key)}
        related = kin(record, sessions)
        names = erase(record, sessions, REVISION)
        try:
            _erase_words(folder, names, related)
        except IndexDamaged:
            remove_index(folder)  # whoever looks into it next makes it anew
        leave_no_trace(record)
    return len(sessions)


def _erase_words(folder: str, names: Sequence[int], related: Sequence[int]) -> None:
    for number in range(SHARDS):
        shard = Shard(shard_path(folder, number))
        shard.erase(names, related)
        shard.close()
