"""The files of the text index: where they lie, and whether they are what the last sync left."""

from __future__ import annotations

import os

import apsw

from retold.archive.database import connection_to

FOLDER = "index"
SHARDS = 2
"""One for each of two processes that write at the same time."""

WORDS = 2
"""Raised when texts are cut into other words: the next sync makes an index that has another number again."""


def shard_path(folder: str, number: int) -> str:
    """Return where a file of the index lies, in retold's own folder."""
    return os.path.join(folder, FOLDER, f"text-{number}.db")


def remove_index(folder: str) -> None:
    """Remove the index: it can be made again."""
    for number in range(SHARDS):
        for ending in ("", "-wal", "-shm", "-journal"):
            try:
                os.remove(shard_path(folder, number) + ending)
            except FileNotFoundError:
                continue


def is_in_step(folder: str, archive: str, generation: object) -> bool:
    """Tell whether every file of the index is what the sync of a generation of an archive left."""
    expected = {"archive": archive, "generation": generation, "words": WORDS}
    return all(_facts(shard_path(folder, number)) == expected for number in range(SHARDS))


def _facts(path: str) -> dict[str, object]:
    """Return what a file of the index knows about itself; nothing of one that is missing or damaged."""
    if not os.path.exists(path):
        return {}
    try:
        connection = connection_to(path)
        found = dict(connection.execute("SELECT name, value FROM facts"))
        connection.close()
    except apsw.Error:  # the next sync makes it again
        return {}
    return found


def missing_files(folder: str) -> list[str]:
    """Return the files of the index that are not there, or have nothing in them."""
    paths = [shard_path(folder, number) for number in range(SHARDS)]
    return [path for path in paths if not os.path.exists(path) or not os.path.getsize(path)]
