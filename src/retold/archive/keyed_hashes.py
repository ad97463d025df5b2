"""Keyed hashes in place of what an archive must know again and must not hold in clear: what is forgotten, and where it lay.

The key lies in the archive. So only someone who already knows an id or a path can find out whether it was forgotten.
"""

from __future__ import annotations

import os

from retold.archive.database import DamagedError
from retold.archive.sync_state import HIDDEN

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from retold.archive.store import Store


KEY = "forgotten key"
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
    """A set that knows its members by their keyed hashes alone; a few more may be members in clear."""

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


NOBODY = KeyedSet()


def key_of(record: Store) -> bytes:
    """Return the key of an archive."""
    found = record.fact(KEY)
    if not isinstance(found, bytes):
        raise DamagedError(
            f"{record.path} is damaged: the key of what is forgotten is missing; nothing was changed"
        )
    return found


class HiddenPaths:
    """The paths that only forgotten sessions lead to: files, their folders, and roots of projects."""

    def __init__(self, record: Store) -> None:
        self._record, self.key = record, key_of(record)
        self._hashes = {bytes(found) for (found,) in record.rows("SELECT hash FROM hidden")}
        self._known: dict[str, bool] = {}

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def __contains__(self, path: str) -> bool:
        if path not in self._known:
            self._known[path] = keyed_hash(self.key, path) in self._hashes
        return self._known[path]

    def stored(self, path: str) -> str:
        """Return what stands for a hidden path, or for a cluster."""
        return f"{HIDDEN}{keyed_hash(self.key, path).hex()}"

    def hide(self, paths: Iterable[str]) -> None:
        """Hide paths from now on."""
        new = {keyed_hash(self.key, path) for path in paths} - self._hashes
        self._record.connection.executemany(
            "INSERT OR IGNORE INTO hidden VALUES (?)", [(one,) for one in new]
        )
        self._hashes |= new
        self._known.clear()

    def hide_file(self, path: str, home: str) -> None:
        """Hide a file and the folders between it and the agent's home."""
        self.hide([path, *folders_below(path, home)])

    def is_root_hidden(self, root: str) -> bool:
        """Tell whether a project's root is hidden, and no session that is there took place in it."""
        if not self._hashes or root not in self:
            return False
        return self._record.row("SELECT 1 FROM sessions WHERE root = ?", (root,)) is None

    def hide_source(self, source: int, path: str, home: str, cluster: str | None) -> None:
        """Let a file's row stand for a hidden path."""
        self.hide_file(path, home)
        ask = self._record.connection.execute
        agent = ask("SELECT agent FROM sources WHERE id = ?", (source,)).get
        ask(
            "DELETE FROM sources WHERE agent = ? AND path = ? AND id <> ?", (agent, self.stored(path), source)
        )
        hidden = None if cluster is None else self.stored(cluster)
        ask(
            "UPDATE sources SET path = ?, cluster = ?, refusal = NULL WHERE id = ?",
            (self.stored(path), hidden, source),
        )


def folders_below(path: str, home: str) -> Iterator[str]:
    """Yield the folders in which a path lies, below a home, the innermost first."""
    folder = os.path.dirname(path)
    while len(folder) > len(home) and folder.startswith(home):
        yield folder
        folder = os.path.dirname(folder)


def is_stored_hidden(stored: str | bytes) -> bool:
    """Tell whether a stored path stands for a hidden one."""
    return isinstance(stored, str) and stored.startswith(HIDDEN)


def shown_paths(record: Store, agent: str) -> Iterator[str]:
    """Yield the paths of an agent's files that are not hidden."""
    for (path,) in record.rows("SELECT path FROM sources WHERE agent = ?", (agent,)):
        if not is_stored_hidden(path):
            yield os.fsdecode(path) if isinstance(path, bytes) else path
