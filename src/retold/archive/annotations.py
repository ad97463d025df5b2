"""What the user's own hand has written: titles, tags, and what is forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from retold.archive.keyed_hashes import KeyedSet, key_of, keyed_hash
from retold.archive.store import digest

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from retold.archive.store import Store


def keep_title(record: Store, name: int, title: str) -> None:
    """Keep a title for a session; an empty one is none."""
    if title:
        record.connection.execute("INSERT OR REPLACE INTO names VALUES (?, ?)", (name, title))
    else:
        record.connection.execute("DELETE FROM names WHERE name = ?", (name,))


def add_tag(record: Store, name: int, tag: str) -> None:
    """Tag a session."""
    record.connection.execute("INSERT OR IGNORE INTO tags VALUES (?, ?)", (name, tag))


def remove_tag(record: Store, name: int, tag: str) -> None:
    """Take a tag off a session."""
    record.connection.execute("DELETE FROM tags WHERE name = ? AND tag = ?", (name, tag))


def move_hand(record: Store, former: int, name: int) -> None:
    """Give a session the title and the tags of another row of it; a title of its own stays."""
    for table in ("names", "tags"):
        record.connection.execute(f"UPDATE OR IGNORE {table} SET name = ? WHERE name = ?", (name, former))  # noqa: S608 - ours
        record.connection.execute(f"DELETE FROM {table} WHERE name = ?", (former,))  # noqa: S608 - ours


def tags(record: Store, name: int) -> list[str]:
    """Return the tags of a session."""
    return [tag for (tag,) in record.rows("SELECT tag FROM tags WHERE name = ? ORDER BY tag", (name,))]


def forgotten_names(record: Store) -> KeyedSet:
    """Return the names of the conversations that are forgotten."""
    return KeyedSet(key_of(record), (name for (name,) in record.rows("SELECT name FROM forgotten")))


def forgotten_ids(record: Store) -> KeyedSet:
    """Return the agents' own ids of forgotten conversations, as digests."""
    asked = "SELECT native FROM forgotten WHERE native IS NOT NULL"
    return KeyedSet(key_of(record), (native for (native,) in record.rows(asked)))


def mark_forgotten(record: Store, name: int, native: bytes | None, at: str) -> None:
    """Put a tombstone in place of all that was written by hand about a session: keyed hashes of its name and its id."""
    ask, key = record.connection.execute, key_of(record)
    hashes = keyed_hash(key, name), None if native is None else keyed_hash(key, native)
    ask("INSERT OR REPLACE INTO forgotten VALUES (?, ?, ?)", (*hashes, at))
    for table in ("tags", "names", "scraps"):
        ask(f"DELETE FROM {table} WHERE name = ?", (name,))  # noqa: S608 - ours


def remove_forgotten(data: bytes, forgotten: KeyedSet) -> bytes:
    """Return a list of records, as one JSON or line by line, without those that name a forgotten conversation."""
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError):
        lines = data.split(b"\n")
        return b"\n".join(line for line in lines if not _is_struck_line(line, forgotten))
    if not isinstance(whole, list):
        return b"" if _is_struck(whole, forgotten) else data
    left = [record for record in whole if not _is_struck(record, forgotten)]
    return (
        data
        if len(left) == len(whole)
        else json.dumps(left, indent=2, ensure_ascii=False).encode("utf-8", "replace")
    )


def _is_struck_line(line: bytes, forgotten: KeyedSet) -> bool:
    try:
        return _is_struck(json.loads(line), forgotten)
    except (ValueError, RecursionError):
        return False


def _is_struck(record: Any, forgotten: KeyedSet) -> bool:
    return any(digest(value.encode("utf-8", "replace")) in forgotten for value in _values(record))


def _values(record: Any) -> Iterator[str]:
    """Yield the texts at the top of a record: there an id stands."""
    if isinstance(record, dict):
        yield from (value for value in record.values() if isinstance(value, str))
