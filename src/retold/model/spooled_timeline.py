"""Timelines of large files: their entries are in a temporary file, and each is loaded when it is used.

What says little but is asked often, such as the time of an entry, stays in memory as its head. Only a sync spools entries: other
commands read large files as a whole.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast, get_args, overload

import msgspec
from msgspec.structs import replace

from retold.model.serialization import ENTRY_PACKER
from retold.model.session import Entry, Event, Message, Status, ToolCall
from retold.model.spool import PrivateSpool

LARGE = 64 << 20
"""Entries of larger files are spooled, if there is a folder for them."""
_folder: str | None = None
_SHORT = 512
"""Packed entries up to this size stay in memory: their heads are not much smaller."""
_RECENT = 4 << 20
"""Bytes of the last entries, as packed, that stay in memory: most changes are to one of them."""


class EntrySpool:
    """The entries of a large file, in a temporary file."""

    def __init__(self, folder: str) -> None:
        self._spool = PrivateSpool(folder)
        self._recent: dict[int, tuple[Entry, int]] = {}
        self._recent_size = 0

    def put(self, entry: Entry) -> "Entry | SpooledEntry":
        """Store an entry, and return it as it is kept: a short one, or one that is too deep, as it is."""
        packed = ENTRY_PACKER.pack(entry)
        if len(packed) <= _SHORT:
            return entry
        offset = self._spool.append(packed)
        self._recent[offset] = (entry, len(packed))
        self._recent_size += len(packed)
        while self._recent_size > _RECENT:
            self._recent_size -= self._recent.pop(next(iter(self._recent)))[1]
        return SpooledEntry(_head(entry), self, offset, len(packed))

    def load(self, offset: int, size: int) -> Entry:
        """Return a stored entry."""
        recent = self._recent.get(offset)
        return ENTRY_PACKER.unpack(self._spool.read(offset, size)) if recent is None else recent[0]


def use_folder(folder: str) -> None:
    """Let this process spool the entries of large files, in a folder."""
    global _folder  # noqa: PLW0603 - readers know files, and no folder of ours
    _folder = folder


def spool_for(size: int) -> EntrySpool | None:
    """Return a spool for the entries of a file of some bytes; None if they are to stay in memory."""
    return None if _folder is None or size <= LARGE else EntrySpool(_folder)


def _head(entry: Entry) -> Entry:
    """Return an entry without its contents. An empty prompt stands for any."""
    if isinstance(entry, Event):
        return replace(entry, text="", opaque=None, extra=None)
    return replace(entry, parts=(), prompt=None if entry.prompt is None else "", extra=None)


class SpooledEntry(msgspec.Struct, frozen=True, gc=False):
    """An entry in a spool."""

    head: Entry
    """The entry without its contents."""
    spool: EntrySpool
    offset: int
    size: int
    changes: dict[str, Any] | None = None
    """Fields of the head that were changed since it was stored."""

    def load(self) -> Entry:
        """Return the entry."""
        entry = self.spool.load(self.offset, self.size)
        return entry if self.changes is None else replace(entry, **self.changes)

    def change(self, **fields: Any) -> "SpooledEntry":
        """Return the entry with other fields of its head."""
        return replace(self, head=replace(self.head, **fields), changes={**(self.changes or {}), **fields})


StoredEntry = Entry | SpooledEntry
"""An entry in memory or in a spool."""


def load_entry(stored: StoredEntry) -> Entry:
    """Return an entry."""
    return stored.load() if isinstance(stored, SpooledEntry) else stored


def head_of(stored: StoredEntry) -> Entry:
    """Return an entry, maybe without its contents."""
    return stored.head if isinstance(stored, SpooledEntry) else stored


def change_entry(stored: StoredEntry, **fields: Any) -> StoredEntry:
    """Return an entry with other fields, which must be fields of its head."""
    return stored.change(**fields) if isinstance(stored, SpooledEntry) else replace(stored, **fields)


def store_again(stored: StoredEntry, entry: Entry) -> StoredEntry:
    """Return an entry that replaces a stored one, stored in the same way."""
    if entry == load_entry(stored):
        return stored
    return stored.spool.put(entry) if isinstance(stored, SpooledEntry) else entry


class SpooledTimeline(Sequence[Entry]):
    """The timeline of a large file."""

    def __init__(self, stored: Iterable[StoredEntry]) -> None:
        self.stored = tuple(stored)

    def __len__(self) -> int:
        return len(self.stored)

    def __iter__(self) -> Iterator[Entry]:
        return map(load_entry, self.stored)

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> "SpooledTimeline": ...
    def __getitem__(self, index: int | slice) -> "Entry | SpooledTimeline":
        if isinstance(index, slice):
            return SpooledTimeline(self.stored[index])
        return load_entry(self.stored[index])


Timeline = tuple[Entry, ...] | SpooledTimeline


def as_timeline(stored: Iterable[StoredEntry]) -> Timeline:
    """Return entries as a timeline."""
    entries = tuple(stored)
    is_spooled = SpooledEntry in set(map(type, entries))
    return SpooledTimeline(entries) if is_spooled else cast("tuple[Entry, ...]", entries)


def stored_entries(timeline: Sequence[Entry]) -> Sequence[StoredEntry]:
    """Return the entries of a timeline as they are kept."""
    return timeline.stored if isinstance(timeline, SpooledTimeline) else timeline


def heads_of(timeline: Sequence[Entry]) -> Sequence[Entry]:
    """Return the entries of a timeline, those of a large file without their contents."""
    return list(map(head_of, timeline.stored)) if isinstance(timeline, SpooledTimeline) else timeline


def countable_messages(timeline: Sequence[Entry]) -> list[Message]:
    """Return the messages of a timeline; those of a large file with their prompts, and of their parts only the status of calls."""
    if isinstance(timeline, SpooledTimeline):
        return [_without_contents(entry) for entry in timeline if isinstance(entry, Message)]
    return [entry for entry in timeline if type(entry) is Message]


def _without_contents(message: Message) -> Message:
    calls = tuple([_CALLS[part.status] for part in message.parts if type(part) is ToolCall])
    return replace(message, parts=calls, extra=None)


_CALLS: dict[Status, ToolCall] = {
    status: ToolCall("", "", "other", "Other", {}, status, None, None, None, None, None)
    for status in get_args(Status)
}
"""A call without contents for each status."""
