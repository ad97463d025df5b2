"""The files in which retold keeps what was said."""

from __future__ import annotations

import os

from retold.archive.record import NAME
from retold.archive.shards import SHARDS, shard_path

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator


def own_files(folder: str) -> Iterator[str]:
    """Yield the files in which retold keeps what was said, as far as they are there."""
    for path in (os.path.join(folder, NAME), *(shard_path(folder, number) for number in range(SHARDS))):
        yield from (found for end in ("", "-wal") if os.path.exists(found := path + end))
