"""Tells whether later versions of a conversation hold everything that an earlier version holds.

An original is dropped only if they do. Entries are compared by their ids, in every field but the volatile ones. A text
may have grown and an empty field may have been filled. Any other difference counts as a loss, and the original is kept.
The values in the files are compared, too, in `file_values`: a session does not show every field that an agent records.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from retold.model.problem import Problem
from retold.model.session import Entry, Message, Session, Text, ToolCall
from retold.model.usage import Usage

_VOLATILE = frozenset({"fate", "own", "child"})
"""Fields that depend on other entries or other sessions."""
_UNTIL_DONE = frozenset({"status", "native_status", "at", "took_ms", "display", "title", "description"})
"""Fields of a tool call that change until the call is done."""
_GROWING = frozenset({"text", "prompt", "subject", "result", "error", "full_result"})
"""Fields to which an agent may append while it writes."""

_NEAREST = 32
"""Entries without ids with which one is compared. Where the order changed more, the earlier version is kept."""


class LaterVersions:
    """Later versions of the conversations in some files, by the agent's own session id."""

    def __init__(self, sessions: Iterable[Session]) -> None:
        self._sessions: defaultdict[str | None, list[Session]] = defaultdict(list)
        self._entries: defaultdict[tuple[str | None, str], list[Entry]] = defaultdict(list)
        self.add(sessions)

    def add(self, sessions: Iterable[Session]) -> None:
        """Add versions that are kept."""
        for session in sessions:
            self._sessions[session.native_id].append(session)
            for entry in session.timeline:
                if entry.id is not None:
                    self._entries[session.native_id, entry.id].append(entry)

    def hold(self, earlier: Session) -> bool:
        """Tell whether everything in an earlier version is in these."""
        later = self._sessions.get(earlier.native_id, ())
        try:
            return (
                any(_holds_facts(session, earlier) for session in later)
                and any(_holds_nameless(session, earlier) for session in later)
                and all(
                    self._hold_entry(earlier, entry) for entry in earlier.timeline if entry.id is not None
                )
            )
        except RecursionError:  # too deep to compare
            return False

    def _hold_entry(self, earlier: Session, entry: Entry) -> bool:
        later = self._entries.get((earlier.native_id, str(entry.id)), ())
        return any(_holds_entry(one, entry, earlier) for one in later)


def _holds_facts(later: Session, earlier: Session) -> bool:
    """Tell whether a version says of the session as a whole what an earlier one says."""
    are_times_kept = earlier.are_times_derived or (
        _is_in_order(later.started_at, earlier.started_at) and _is_in_order(earlier.ended_at, later.ended_at)
    )
    places = ((one.project.root, one.project.hash) for one in (later, earlier))
    return (
        are_times_kept
        and all(map(_holds, *places))
        and all(
            _holds(getattr(later, name), getattr(earlier, name))
            for name in ("kind", "summary", "tags", "extra")
        )
    )


def hold_unread(later: bytes, earlier: bytes, problems: Iterable[Problem]) -> bool:
    """Tell whether a file holds the bytes of an earlier version that its reader could not read."""
    unread = [one for one in problems if one.severity == "loss" and one.code != "nul-bytes"]
    if not unread:
        return True
    lines = earlier.splitlines(keepends=True)
    return all(
        one.line is not None
        and 0 < one.line <= len(lines)
        # Of a document that ends early, or is damaged in the middle, nothing behind this line was read.
        and b"".join(lines[one.line - 1 : None if one.code == "truncated-tail" else one.line]) in later
        for one in unread
    )


def _is_in_order(first: datetime | None, second: datetime | None) -> bool:
    return first == second or (first is not None and second is not None and first < second)


def _holds_nameless(later: Session, earlier: Session) -> bool:
    """Tell whether a version holds the entries without ids of an earlier one, each as often."""
    unmatched: defaultdict[tuple[type, str | None], list[Entry]] = defaultdict(list)
    for entry in later.timeline:
        if entry.id is None:
            unmatched[_beginning(entry)].append(entry)
    for entry in earlier.timeline:
        if entry.id is None:
            candidates = unmatched[_beginning(entry)]
            nearest = enumerate(candidates[:_NEAREST])
            match = next((place for place, one in nearest if _holds_entry(one, entry, earlier)), None)
            if match is None:
                return False
            del candidates[match]
    return True


def _beginning(entry: Entry) -> tuple[type, str | None]:
    """Return the type and the first text of an entry, which its later versions share."""
    if isinstance(entry, Message):
        return Message, next((part.text for part in entry.parts if isinstance(part, Text)), None)
    return type(entry), entry.text


def _holds_entry(later: Entry, earlier: Entry, session: Session) -> bool:
    if session.are_times_derived:  # they follow from the file's time, which changed
        earlier = msgspec.structs.replace(earlier, at=None)
    return _holds(later, earlier)


def _holds(later: Any, earlier: Any, *, may_grow: bool = False) -> bool:
    """Tell whether a value holds everything that an earlier value of the same field holds."""
    if earlier is None or later == earlier:
        return True
    if type(later) is not type(earlier):
        return False
    match earlier:
        case msgspec.Struct():
            return _holds_fields(later, earlier)
        case dict():
            return all(_holds(later.get(name), value) for name, value in earlier.items())
        case list() | tuple():
            return _holds_items(later, earlier)
        case str():
            return may_grow and later.startswith(earlier)
    return False


def _holds_fields(later: msgspec.Struct, earlier: msgspec.Struct) -> bool:
    if isinstance(earlier, Usage) and earlier.estimated:  # an estimate follows from the texts
        return True
    is_open = isinstance(earlier, ToolCall) and earlier.status == "unknown"
    ignored = _VOLATILE | _UNTIL_DONE if is_open else _VOLATILE
    return all(
        _holds(getattr(later, name), getattr(earlier, name), may_grow=name in _GROWING)
        for name in earlier.__struct_fields__
        if name not in ignored
    )


def _holds_items(later: Sequence[Any], earlier: Sequence[Any]) -> bool:
    """Tell whether each item of a list has a counterpart in a later list, in the same order."""
    rest = iter(later)
    return all(any(_holds(one, item) for one in rest) for item in earlier)
