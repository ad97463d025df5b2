"""The files of the text index: where they lie, and whether they are what the last sync left."""

from __future__ import annotations

import os

import apsw

from retold.archive.database import connection_to

FOLDER = "index"
SHARDS = 2
"""One for each of two processes that write at the same time."""


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


def generations(folder: str) -> list[int | None]:
    """Return the number of the last completed sync in each file of the index; none for one that is not there."""
    found: list[int | None] = []
    for number in range(SHARDS):
        path = shard_path(folder, number)
        if not os.path.exists(path):
            found.append(None)
            continue
        try:
            connection = connection_to(path)
            found.append(connection.execute("SELECT value FROM facts WHERE name = 'generation'").get)
            connection.close()
        except apsw.Error:  # damaged, or half made: the sync that is to come sees to it
            found.append(None)
    return found


def missing_files(folder: str) -> list[str]:
    """Return the files of the index that are not there, or have nothing in them."""
    paths = [shard_path(folder, number) for number in range(SHARDS)]
    return [path for path in paths if not os.path.exists(path) or not os.path.getsize(path)]
