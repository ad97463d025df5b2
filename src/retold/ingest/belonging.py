"""What of a session belongs to another, and the keys of its subagents: the archive alone knows, its files do not."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from retold.archive.queries.lookups import copied_messages, others_requests, renamed_keys
from retold.archive.rows import stable_uid
from retold.archive.store import Store
from retold.model.session import Entry, Message, Part, ToolCall


class Ownership:
    """What the archive knows of one session's entries."""

    def __init__(self, record: Store, session: int) -> None:
        self._record = record
        self._copied, self._others = copied_messages(record, session), others_requests(record, session)

    def is_others(self, message: str | None, request: str | None) -> bool:
        """Tell whether a message belongs to another session, by its own id and its request's."""
        if self._others and request is not None and stable_uid("request", request) in self._others:
            return True
        return bool(self._copied) and stable_uid("entry", message) in self._copied

    def marked(self, timeline: Iterable[Entry]) -> Iterator[Entry]:
        """Yield entries; those that belong to another session are marked, and subagents have their keys."""
        entries = list(timeline)
        # There may be many, and to find them all sessions are gone through.
        renamed = renamed_keys(self._record) if _have_child(entries) else {}
        if not (renamed or self._copied or self._others):
            yield from entries
            return
        for entry in entries:
            told = entry
            if isinstance(entry, Message):
                if self.is_others(entry.id, entry.usage.request if entry.usage else None):
                    told = replace(entry, own=False)
                if renamed and any(_child(part) in renamed for part in entry.parts):
                    told = replace(told, parts=tuple(_renamed(entry.parts, renamed)))
            yield told


def _have_child(entries: Iterable[Entry]) -> bool:
    for entry in entries:
        if isinstance(entry, Message):
            for part in entry.parts:
                if isinstance(part, ToolCall) and part.child is not None:
                    return True
    return False


def _child(part: Part) -> str | None:
    return part.child if isinstance(part, ToolCall) else None


def _renamed(parts: Sequence[Part], renamed: Mapping[str, str]) -> Iterator[Part]:
    for part in parts:
        child = renamed.get(part.child or "") if isinstance(part, ToolCall) else None
        yield part if child is None else replace(part, child=child)
