"""Titles and tags that a person gave, and hashes of what a person had forgotten.

The archive must recognise a forgotten session, and must not hold its id or its paths in clear. It holds their keyed hashes,
and the key: only someone who already knows an id or a path can find out whether it was forgotten.
"""

from __future__ import annotations

import os

from retold.archive.database import DamagedError
from retold.archive.store import digest
from retold.archive.sync_state import HIDDEN_PREFIX

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from retold.archive.store import Store


HASH_KEY = "forgotten key"
"""The fact that holds the key."""
_SIZE = 16


def keyed_hash(key: bytes, value: int | str | bytes) -> bytes:
    """Return the keyed hash of a number, a text or bytes."""
    from hashlib import blake2b  # 3 ms, and few archives hide anything

    match value:
        case int():
            data = b"number %d" % value
        case str():
            data = b"text " + value.encode("utf-8", "surrogatepass")
        case _:
            data = b"bytes " + value
    return blake2b(data, key=key, digest_size=_SIZE).digest()


class KeyedSet:
    """A set that holds its members as keyed hashes; a few more may be members in clear."""

    __slots__ = ("_hashes", "_key", "_more")

    def __init__(
        self, key: bytes = b"", hashes: Iterable[bytes] = (), more: Iterable[int | str | bytes] = ()
    ) -> None:
        self._key, self._hashes, self._more = key, frozenset(hashes), frozenset(more)

    def __contains__(self, value: int | str | bytes) -> bool:
        return value in self._more or (bool(self._hashes) and keyed_hash(self._key, value) in self._hashes)

    def __bool__(self) -> bool:
        return bool(self._hashes or self._more)

    def __or__(self, more: Iterable[bytes]) -> KeyedSet:
        return KeyedSet(self._key, self._hashes, self._more.union(more))


EMPTY_SET = KeyedSet()


def load_hash_key(store: Store) -> bytes:
    """Return the key of an archive's hashes."""
    found = store.fact(HASH_KEY)
    if not isinstance(found, bytes):
        raise DamagedError(
            f"{store.path} is damaged: the key of what is forgotten is missing; nothing was changed"
        )
    return found


class HiddenPaths:
    """Paths that only forgotten sessions lead to: files, their folders, and roots of projects."""

    def __init__(self, store: Store) -> None:
        self._store, self.key = store, load_hash_key(store)
        self._hashes = {bytes(found) for (found,) in store.rows("SELECT hash FROM hidden_paths")}
        self._known: dict[str, bool] = {}

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def __contains__(self, path: str) -> bool:
        if path not in self._known:
            self._known[path] = keyed_hash(self.key, path) in self._hashes
        return self._known[path]

    def placeholder(self, path: str) -> str:
        """Return the text that is stored in place of a hidden path or cluster."""
        return f"{HIDDEN_PREFIX}{keyed_hash(self.key, path).hex()}"

    def hide(self, paths: Iterable[str]) -> None:
        """Hide paths from now on."""
        new = {keyed_hash(self.key, path) for path in paths} - self._hashes
        self._store.connection.executemany(
            "INSERT OR IGNORE INTO hidden_paths VALUES (?)", [(one,) for one in new]
        )
        self._hashes |= new
        self._known.clear()

    def hide_file(self, path: str, home: str) -> None:
        """Hide a file and the folders between it and the agent's home."""
        self.hide([path, *folders_below(path, home)])

    def is_root_hidden(self, root: str) -> bool:
        """Return whether a project's root is hidden and no session in the archive has it."""
        if not self._hashes or root not in self:
            return False
        return self._store.row("SELECT 1 FROM sessions WHERE root = ?", (root,)) is None

    def hide_source(self, source: int, path: str, home: str, cluster: str | None) -> None:
        """Replace the path of a file's row by its placeholder."""
        self.hide_file(path, home)
        execute = self._store.connection.execute
        agent = execute("SELECT agent FROM sources WHERE id = ?", (source,)).get
        execute(
            "DELETE FROM sources WHERE agent = ? AND path = ? AND id <> ?",
            (agent, self.placeholder(path), source),
        )
        hidden = None if cluster is None else self.placeholder(cluster)
        execute(
            "UPDATE sources SET path = ?, cluster = ?, refusal = NULL WHERE id = ?",
            (self.placeholder(path), hidden, source),
        )


def folders_below(path: str, home: str) -> Iterator[str]:
    """Yield the folders of a path below a home, the innermost first."""
    folder = os.path.dirname(path)
    while len(folder) > len(home) and folder.startswith(home):
        yield folder
        folder = os.path.dirname(folder)


def is_hidden_path(stored: str | bytes) -> bool:
    """Return whether a stored path is a placeholder."""
    return isinstance(stored, str) and stored.startswith(HIDDEN_PREFIX)


def load_visible_paths(store: Store, agent: str) -> Iterator[str]:
    """Yield the paths of an agent's files, without hidden ones."""
    for (path,) in store.rows("SELECT path FROM sources WHERE agent = ?", (agent,)):
        if not is_hidden_path(path):
            yield os.fsdecode(path) if isinstance(path, bytes) else path


def write_title(store: Store, uid: int, title: str) -> None:
    """Write a title for a session; an empty title removes it."""
    if title:
        store.connection.execute("INSERT OR REPLACE INTO titles VALUES (?, ?)", (uid, title))
    else:
        store.connection.execute("DELETE FROM titles WHERE uid = ?", (uid,))


def add_tag(store: Store, uid: int, tag: str) -> None:
    """Tag a session."""
    store.connection.execute("INSERT OR IGNORE INTO tags VALUES (?, ?)", (uid, tag))


def remove_tag(store: Store, uid: int, tag: str) -> None:
    """Remove a tag from a session."""
    store.connection.execute("DELETE FROM tags WHERE uid = ? AND tag = ?", (uid, tag))


def move_annotations(store: Store, former: int, uid: int) -> None:
    """Give a session the title and the tags of another row of it; a title of its own stays."""
    for table in ("titles", "tags"):
        store.connection.execute(f"UPDATE OR IGNORE {table} SET uid = ? WHERE uid = ?", (uid, former))  # noqa: S608 - ours
        store.connection.execute(f"DELETE FROM {table} WHERE uid = ?", (former,))  # noqa: S608 - ours


def load_session_tags(store: Store, uid: int) -> list[str]:
    """Return the tags of a session."""
    return [tag for (tag,) in store.rows("SELECT tag FROM tags WHERE uid = ? ORDER BY tag", (uid,))]


def load_forgotten_uids(store: Store) -> KeyedSet:
    """Return the uids of forgotten conversations."""
    return KeyedSet(load_hash_key(store), (uid for (uid,) in store.rows("SELECT uid_hash FROM tombstones")))


def load_forgotten_ids(store: Store) -> KeyedSet:
    """Return the digests of the agents' own ids of forgotten conversations."""
    sql = "SELECT native_id_hash FROM tombstones WHERE native_id_hash IS NOT NULL"
    return KeyedSet(load_hash_key(store), (native for (native,) in store.rows(sql)))


def mark_forgotten(store: Store, uid: int, native: bytes | None, at: str) -> None:
    """Write a tombstone for a session, which holds hashes of its uid and its id, and delete its title, tags and scrap."""
    execute, key = store.connection.execute, load_hash_key(store)
    hashes = keyed_hash(key, uid), None if native is None else keyed_hash(key, native)
    execute("INSERT OR REPLACE INTO tombstones VALUES (?, ?, ?)", (*hashes, at))
    for table in ("tags", "titles", "scraps"):
        execute(f"DELETE FROM {table} WHERE uid = ?", (uid,))  # noqa: S608 - ours


def remove_forgotten(data: bytes, forgotten: KeyedSet) -> bytes:
    """Return a list of records, one JSON array or JSON lines, without those that name a forgotten conversation."""
    import json  # few files name a forgotten conversation

    def names_forgotten(record: Any) -> bool:
        """Return whether a text at the top level of a record, where ids stand, is a forgotten id."""
        values = record.values() if isinstance(record, dict) else ()
        return any(
            isinstance(one, str) and digest(one.encode("utf-8", "replace")) in forgotten for one in values
        )

    def is_line_forgotten(line: bytes) -> bool:
        try:
            return names_forgotten(json.loads(line))
        except (ValueError, RecursionError):
            return False

    try:
        whole = json.loads(data)
    except (ValueError, RecursionError):
        return b"\n".join(line for line in data.split(b"\n") if not is_line_forgotten(line))
    if not isinstance(whole, list):
        return b"" if names_forgotten(whole) else data
    left = [record for record in whole if not names_forgotten(record)]
    if len(left) == len(whole):
        return data
    return json.dumps(left, indent=2, ensure_ascii=False).encode("utf-8", "replace")
