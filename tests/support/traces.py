"""Looks for words that are left below an archive's folder."""

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import zstandard

from support.person import Person


def traces(person: Person, word: str) -> Iterator[str]:
    """Yield where a word is left below the archive's folder: in the bytes of files, and in what they have compressed."""
    sought = word.encode()
    for path in person.files():
        data = path.read_bytes()
        if sought in data.lower():
            yield path.name
        for piece in unpacked(path):
            if sought in piece.lower():
                yield f"{path.name}, compressed"


def unpacked(path: Path) -> Iterator[bytes]:
    """Yield what stands compressed in a file, in pages that are free as well."""
    data, place = path.read_bytes(), 0
    while (place := data.find(b"\x28\xb5\x2f\xfd", place)) >= 0:
        with suppress(zstandard.ZstdError):
            yield zstandard.ZstdDecompressor().decompressobj().decompress(data[place : place + (1 << 20)])
        place += 4
    if path.suffix == ".db":
        yield from kept_blobs(path)


BLOBS = {
    "bookmarks": "packed",
    "chunks": "packed",
    "pages": "packed",
    "summaries": "packed",
    "timeline_chunks": "packed",
    "timelines": "outline",
}


def kept_blobs(path: Path) -> Iterator[bytes]:
    """Yield what long blobs hold, which lie scattered over the file."""
    connection = sqlite3.connect(path)
    names = [
        row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE TABLE%'")
    ]
    for table, column in BLOBS.items():
        if table not in names:
            continue
        for (packed,) in connection.execute(f"SELECT {column} FROM {table}"):  # noqa: S608 - ours
            yield _unpacked_blob(packed)
    connection.close()


def _unpacked_blob(packed: bytes) -> bytes:
    """Return what a blob holds; of a part of a timeline, which needs texts of originals, the blob itself."""
    if packed[:4] != b"\x28\xb5\x2f\xfd":
        return zlib.decompress(packed)
    try:
        return zstandard.ZstdDecompressor().decompress(packed)
    except zstandard.ZstdError:
        return packed
