"""The contents of an archive and its index, in a form in which two archives of the same files are equal."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec

from retold.archive.store import SHARDS, decompress, shard_path, unpack_summary

Rows = list[tuple[Any, ...]]
_SKIPPED = ("bookmarks", "chunks", "pieces", "sqlite_stat1")
"""Tables that are caches, or that are compared as the contents that they make."""
_OWN_FACTS = "('generation', 'synced_at', 'id', 'forgotten key')"


def archive_contents(folder: Path) -> dict[str, Rows]:
    """Return the rows of each table of an archive, its originals, and the documents and timelines of its index."""
    contents: dict[str, Rows] = {}
    record = apsw.Connection(str(folder / "archive.db"))
    originals = dict(_originals(record))
    contents["contents of originals"] = sorted(originals.items())
    for (table,) in _all(record, "SELECT name FROM sqlite_master WHERE type = 'table'"):
        if table not in _SKIPPED:
            contents[table] = sorted(_rows(record, table), key=repr)
    contents["unused chunks"] = record.execute(
        "SELECT id FROM chunks WHERE id NOT IN (SELECT chunk FROM pieces)"
    ).fetchall()
    record.close()
    index: defaultdict[str, Rows] = defaultdict(list)
    for number in range(SHARDS):
        shard = apsw.Connection(shard_path(str(folder), number))
        for name, row in _index_rows(shard, originals):
            index[name].append(row)
        shard.close()
    return contents | {f"index: {name}": sorted(rows, key=repr) for name, rows in index.items()}


def _rows(record: apsw.Connection, table: str) -> Iterator[tuple[Any, ...]]:
    names = [name for _, name, *_ in record.execute(f"PRAGMA table_info({table})")]
    for row in record.execute(f"SELECT * FROM {table}"):  # noqa: S608 - ours
        values = dict(zip(names, row, strict=True))
        if table == "facts" and values["name"] in _OWN_FACTS:
            continue
        values.pop("read_ns", None)
        if table == "summaries":
            values["packed"] = msgspec.json.decode(unpack_summary(values["packed"]))
        yield tuple(values.items())


def _all(connection: apsw.Connection, sql: str) -> list[Any]:
    return list(connection.execute(sql))


def _originals(record: apsw.Connection) -> Iterator[tuple[int, bytes]]:
    for number, uid in _all(record, "SELECT id, uid FROM originals"):
        sql = (
            "SELECT packed FROM pieces JOIN chunks ON chunks.id = chunk WHERE original = ? ORDER BY position"
        )
        yield uid, b"".join(decompress(packed) for (packed,) in record.execute(sql, (number,)))


def _index_rows(shard: apsw.Connection, originals: dict[int, bytes]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for uid, stamp, names in _all(shard, "SELECT uid, stamp, originals FROM entries"):
        yield "entries", (uid, stamp, names)
        files = [originals[int(name, 16)] for name in names.split()]
        sql = "SELECT packed FROM pages JOIN entries ON entries.id = session WHERE uid = ? ORDER BY position"
        pages = [decompress(packed) for (packed,) in shard.execute(sql, (uid,))]
        sql = "SELECT seq, position, checksum, regions FROM docs JOIN entries ON entries.id = session WHERE uid = ?"
        for seq, position, checksum, regions in shard.execute(sql, (uid,)):
            yield "docs", (uid, seq, position, checksum, list(_texts(regions, files, pages)))
        sql = "SELECT total, outline FROM timelines JOIN entries ON entries.id = session WHERE uid = ?"
        for total, outline in shard.execute(sql, (uid,)):
            yield "timelines", (uid, total, decompress(outline))
        sql = "SELECT seq, checksum, needs_texts FROM timeline_chunks JOIN entries ON entries.id = session WHERE uid = ?"
        yield from (("timeline_chunks", (uid, *row)) for row in shard.execute(sql, (uid,)))
    for table in ("said", "output"):
        shard.execute(f"CREATE VIRTUAL TABLE temp.words_{table} USING fts5vocab(main, {table}, 'instance')")
        sql = (
            f"SELECT term, uid, seq, position, col, offset FROM temp.words_{table} words JOIN docs ON docs.id = words.doc"  # noqa: S608
            " JOIN entries ON entries.id = docs.session"
        )
        yield from ((table, row) for row in shard.execute(sql))
    for (lines,) in _all(shard, "SELECT lines FROM identifier_lists"):
        yield from (("identifiers", (line,)) for line in lines.split("\n"))


def _texts(regions: str, files: list[bytes], pages: list[bytes]) -> Iterator[bytes]:
    """Yield the texts of regions, as they are between the quotes of JSON."""
    for region in regions.split():
        number, start, size, *nested = (int(part, 16) for part in region.split("."))
        data = pages[-number] if region.startswith("-") else files[number]
        raw = data[start : start + size]
        yield raw.replace(b'\\"', b'"').replace(b"\\\\", b"\\") if nested else raw


def differences(one: dict[str, Rows], other: dict[str, Rows]) -> Iterable[str]:
    """Yield a line for each table that differs, with the first rows that only one of them has."""
    for name in sorted(one.keys() | other.keys()):
        first, second = map(repr, one.get(name, [])), map(repr, other.get(name, []))
        left, right = set(first), set(second)
        if left != right:
            yield f"{name}: {sorted(left - right)[:2]} != {sorted(right - left)[:2]}"
