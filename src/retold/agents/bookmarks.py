"""Bookmarks: a file that has grown is read on from one. If later lines concern lines before it, the file is read whole."""

from array import array
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, SupportsIndex, TypeVar
from zlib import crc32

import msgspec

from retold.model.builder import Beginning
from retold.reading.jsonl import FileMark

VERSION = 1
"""Raised when a bookmark changes its form: those of another version are of no use."""


class Bookmark(msgspec.Struct, frozen=True, array_like=True):
    """A place between two lines of a file, and everything about the lines before it that a reading of the later ones needs."""

    mark: FileMark
    beginning: Beginning
    """The entries from the lines before it."""
    state: bytes
    """The agent's own; only the agent looks inside."""


class ReadWholeError(Exception):
    """The lines behind a bookmark concern the lines before it."""


class KnownIds:
    """The ids in the lines before a bookmark, as checksums: a new id may seem known, but a known id never seems new."""

    def __init__(self, packed: bytes = b"") -> None:
        """Take what `pack` returned."""
        self._checksums = array("I")
        self._checksums.frombytes(packed)
        self._known = set(self._checksums)

    def pack(self, more: Iterable[str] = ()) -> bytes:
        """Return the ids, and more of them, as bytes."""
        return array("I", sorted(self._known.union(map(_checksum, more)))).tobytes()

    def check(self, name: object) -> None:
        """Raise ReadWholeError if an id is known."""
        if type(name) is str and _checksum(name) in self._known:
            raise ReadWholeError(name)


def _checksum(name: str) -> int:
    return crc32(name.encode("utf-8", "surrogatepass"))


K = TypeVar("K")
V = TypeVar("V")


class GuardedDict(dict[K, V]):
    """A dict of what the lines behind a bookmark say of ids. It raises ReadWholeError when it is asked about a known id."""

    def __init__(self, known: KnownIds, own: Mapping[K, V] | None = None) -> None:
        """Take the known ids, and those that may be asked about."""
        super().__init__(own or {})
        self._ids = known

    def copy(self) -> "GuardedDict[K, V]":
        """Return a dict with the same ids."""
        return GuardedDict(self._ids, self)

    def _check(self, key: object) -> None:
        if not dict.__contains__(self, key):
            self._ids.check(key)

    def __contains__(self, key: object) -> bool:
        self._check(key)
        return super().__contains__(key)

    def __getitem__(self, key: K) -> V:
        self._check(key)
        return super().__getitem__(key)

    def __setitem__(self, key: K, value: V) -> None:
        self._check(key)
        super().__setitem__(key, value)

    def get(self, key: K, default: Any = None) -> Any:
        """Return the value of an id."""
        self._check(key)
        return super().get(key, default)

    def setdefault(self, key: K, default: Any = None) -> Any:
        """Return the value of an id; a default becomes its value if it has none."""
        self._check(key)
        return super().setdefault(key, default)

    def pop(self, key: K, *default: Any) -> Any:
        """Remove an id and return its value."""
        self._check(key)
        if not default and not dict.__contains__(self, key):
            raise ReadWholeError(str(key))
        return super().pop(key, *default)


class GuardedList(list[V]):
    """A list whose first items stand for those before a bookmark. It raises ReadWholeError when it is asked for one of them."""

    def __init__(self, blank: V, count: int) -> None:
        """Take the item that stands for the first ones, and their number."""
        super().__init__([blank] * count)
        self._blank, self._count = blank, count

    def copy(self) -> "GuardedList[V]":
        """Return a list with the same items."""
        copied = GuardedList(self._blank, self._count)
        copied.extend(islice(self, self._count, None))
        return copied

    def _check(self, index: SupportsIndex | slice) -> None:
        first = index.start if isinstance(index, slice) else index
        place = 0 if first is None else first.__index__()
        if (place if place >= 0 else place + len(self)) < self._count:
            raise ReadWholeError(str(index))

    def __getitem__(self, index: Any) -> Any:
        self._check(index)
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._check(index)
        super().__setitem__(index, value)


IsStart = Callable[[Any, Any], bool]
"""Returns whether a bookmark may stand before a line, by the values on the line before it and on the line itself."""
_FIRST_LOOK, _LAST_LOOK = 1 << 16, 1 << 20
MOST = 4
"""Places that are tried, the last ones of a file."""


def find_places(
    read_part: Callable[[int, int], bytes], first: int, size: int, is_start: IsStart
) -> list[int]:
    """Return the last places of a file at which a bookmark may stand, behind a first offset, in order."""
    look = _FIRST_LOOK
    while True:
        begin = max(size - look, first)
        found = _places_in(read_part(begin, size - begin), begin, is_start)
        if len(found) >= MOST or begin == first or look >= _LAST_LOOK:
            return found[-MOST:]
        look *= 4


def _places_in(data: bytes, begin: int, is_start: IsStart) -> list[int]:
    """Return the places in a part of a file; its first line may be cut off, and so only precedes others."""
    found: list[int] = []
    before: Any = None
    start = 0
    for line in data.split(b"\n")[:-1]:
        value = _decode(line)
        if start and is_start(before, value):
            found.append(begin + start)
        before = value
        start += len(line) + 1
    return found


def _decode(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
