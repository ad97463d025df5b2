"""Whether the archive is what was written into it."""

from __future__ import annotations

import os

from retold.archive.database import Damaged
from retold.archive.originals import digest
from retold.archive.record import NAME
from retold.archive.shards import SHARDS, shard_path

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator

    from retold.archive.record import Record

MOST = 64 << 20
"""Bytes of chunks, as they are packed, that are unpacked and compared: more would take seconds."""


def structure_faults(record: Record) -> list[str]:
    """Return what SQLite finds wrong with the file; raises Damaged if it cannot even look."""
    return [str(told) for (told,) in record.rows("PRAGMA quick_check(5)") if told != "ok"]


def broken_chunks(record: Record, most: int = MOST) -> tuple[int, int]:
    """Return how many chunks were compared with their digests, and how many differ; in a large archive, some of them."""
    (count, size) = record.row("SELECT count(*), coalesce(sum(length(packed)), 0) FROM chunks") or (0, 0)
    step = max(1, -(-size // most))
    compared = broken = 0
    for named, packed in record.rows("SELECT digest, packed FROM chunks WHERE id % ? = 0", (step,)):
        compared += 1
        try:
            broken += digest(record.originals.unpacked(bytes(packed))) != bytes(named)
        except Damaged:
            broken += 1
    return compared if count else 0, broken


def own_files(folder: str) -> Iterator[str]:
    """Yield the files in which retold keeps what was said, as far as they are there."""
    for path in (os.path.join(folder, NAME), *(shard_path(folder, number) for number in range(SHARDS))):
        yield from (found for end in ("", "-wal") if os.path.exists(found := path + end))
