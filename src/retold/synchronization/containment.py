"""Containment: whether a file and its conversations have everything that an earlier version of the file has.

An original is dropped only if they do. Entries are compared by their ids, in every field but the volatile ones. A text
may have grown and an empty field may have been filled. Any other difference counts as a loss, and the original is kept.
The records of the files are compared as well, because a session does not show every value that an agent records.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property, partial
from typing import Any

import msgspec

from retold.model.problem import Problem
from retold.model.session import Entry, Message, Session, Text, ToolCall, Usage
from retold.reading.disk import LONGEST, OpenFile
from retold.reading.json_decode import salvage
from retold.reading.jsonl import CHUNK, split_lines

_VOLATILE_FIELDS = frozenset({"fate", "own", "child"})
"""Fields that depend on other entries or other sessions."""
_UNTIL_DONE = frozenset({"status", "native_status", "at", "took_ms", "display", "title", "description"})
"""Fields of a tool call that change until the call is done."""
_GROWING = frozenset({"text", "prompt", "subject", "result", "error", "full_result"})
"""Fields to which an agent may append while it writes."""
_NEAREST = 32
"""Entries without ids with which one is compared. Where the order changed more, the earlier version is kept."""
_VOLATILE_KEYS = frozenset({"lastUpdated", "messageCount", "userMessageCount"})
"""Keys of a document, and of a change of it, whose values change while a conversation goes on."""
_CHANGE = "$set"
"""The key of the changed values in a record that changes the document."""
_FINAL_STATUSES = frozenset({"success", "error", "cancelled"})
"""The statuses of a tool call that is done."""
_LISTS = ("messages", "clientHistory", "history", "items")
"""Keys of the lists of records in documents."""
_BLANK = b" \t\r\n\0"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


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

    def contain(self, earlier: Session) -> bool:
        """Return whether everything in an earlier version is in these."""
        later = self._sessions.get(earlier.native_id, ())
        try:
            return (
                any(_contains_facts(session, earlier) for session in later)
                and any(_contains_entries_without_ids(session, earlier) for session in later)
                and all(
                    any(
                        _contains_entry(one, entry, earlier)
                        for one in self._entries.get((earlier.native_id, entry.id), ())
                    )
                    for entry in earlier.timeline
                    if entry.id is not None
                )
            )
        except RecursionError:  # too deep to compare
            return False


def contains_unread(later: bytes, earlier: bytes, problems: Iterable[Problem]) -> bool:
    """Return whether a file has the bytes of an earlier version that its reader could not read."""
    unread = [one for one in problems if one.severity == "loss" and one.code != "nul-bytes"]
    if not unread:
        return True
    lines = earlier.splitlines(keepends=True)
    return all(
        one.line is not None
        and 0 < one.line <= len(lines)
        # In a document that ends early, or is damaged in the middle, nothing behind this line was read.
        and b"".join(lines[one.line - 1 : None if one.code == "truncated-tail" else one.line]) in later
        for one in unread
    )


def _contains_facts(later: Session, earlier: Session) -> bool:
    """Return whether a version has the fields of an earlier one that are about the session as a whole."""
    contains_times = earlier.are_times_derived or (
        _is_not_later(later.started_at, earlier.started_at)
        and _is_not_later(earlier.ended_at, later.ended_at)
    )
    return (
        contains_times
        and _contains(later.project.root, earlier.project.root)
        and _contains(later.project.hash, earlier.project.hash)
        and all(
            _contains(getattr(later, name), getattr(earlier, name))
            for name in ("kind", "summary", "tags", "extra")
        )
    )


def _is_not_later(first: datetime | None, second: datetime | None) -> bool:
    return first == second or (first is not None and second is not None and first < second)


def _contains_entries_without_ids(later: Session, earlier: Session) -> bool:
    """Return whether a version has the entries without ids of an earlier one, each as often."""
    unmatched: defaultdict[tuple[type, str | None], list[Entry]] = defaultdict(list)
    for entry in later.timeline:
        if entry.id is None:
            unmatched[_first_text(entry)].append(entry)
    for entry in earlier.timeline:
        if entry.id is None:
            candidates = unmatched[_first_text(entry)]
            nearest = enumerate(candidates[:_NEAREST])
            match = next((index for index, one in nearest if _contains_entry(one, entry, earlier)), None)
            if match is None:
                return False
            del candidates[match]
    return True


def _first_text(entry: Entry) -> tuple[type, str | None]:
    """Return the type and the first text of an entry, which its later versions share."""
    if isinstance(entry, Message):
        return Message, next((part.text for part in entry.parts if isinstance(part, Text)), None)
    return type(entry), entry.text


def _contains_entry(later: Entry, earlier: Entry, session: Session) -> bool:
    if session.are_times_derived:  # from the file's time, which changed
        earlier = msgspec.structs.replace(earlier, at=None)
    return _contains(later, earlier)


def _contains(later: Any, earlier: Any, *, may_grow: bool = False) -> bool:
    """Return whether the value of a field has everything that an earlier value has."""
    if earlier is None or later == earlier:
        return True
    if type(later) is not type(earlier):
        return False
    match earlier:
        case msgspec.Struct():
            return _contains_fields(later, earlier)
        case dict():
            return all(_contains(later.get(name), value) for name, value in earlier.items())
        case list() | tuple():
            return _contains_items(later, earlier)
        case str():
            return may_grow and later.startswith(earlier)
    return False


def _contains_fields(later: msgspec.Struct, earlier: msgspec.Struct) -> bool:
    if isinstance(earlier, Usage) and earlier.estimated:  # from the texts
        return True
    is_open = isinstance(earlier, ToolCall) and earlier.status == "unknown"
    ignored = _VOLATILE_FIELDS | _UNTIL_DONE if is_open else _VOLATILE_FIELDS
    return all(
        _contains(getattr(later, name), getattr(earlier, name), may_grow=name in _GROWING)
        for name in earlier.__struct_fields__
        if name not in ignored
    )


def _contains_items(later: Sequence[Any], earlier: Sequence[Any]) -> bool:
    """Return whether each item of a list has a counterpart in a later list, in the same order."""
    rest = iter(later)
    return all(any(_contains(one, item) for one in rest) for item in earlier)


def contains_values(later: OpenFile, earlier: OpenFile) -> bool:
    """Return whether a file has the records of an earlier version in the same order, each with all its values.

    A text may have grown, an empty value may have been filled. A line that is not JSON must be the same.
    """
    try:
        return _list_contains(_records(later), _records(earlier))
    except RecursionError:  # too deep to compare
        return False


class _Record:
    """A line, or a document."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw.strip(_BLANK).removeprefix(_BYTE_ORDER_MARK)

    @cached_property
    def value(self) -> Any:
        """Its JSON object; None if it is none."""
        if not self.raw.startswith(b"{"):
            return None
        try:
            return json.loads(self.raw)
        except (ValueError, RecursionError):
            return None


class _Document(_Record):
    """A document that is decoded as a whole, even if it is cut or damaged."""

    @cached_property
    def value(self) -> Any:
        """Its JSON value, or the complete elements of a damaged one; None if there are none."""
        try:
            return json.loads(self.raw)
        except (ValueError, RecursionError):
            return _salvage_records(self.raw)


def _records(file: OpenFile) -> Iterator[_Record]:
    """Yield a file as one document, else its lines."""
    first = next(_lines(file), None)
    if (
        first is not None and first.value is None and file.size <= LONGEST
    ):  # no reader takes a longer document
        file.seek(0)
        document = _Document(file.read(file.size))
        if document.value is not None:
            yield document
            return
    yield from _lines(file)


def _lines(file: OpenFile) -> Iterator[_Record]:
    """Yield the lines of a file that are not blank."""
    file.seek(0)
    for raw, _ in split_lines(partial(file.read, CHUNK)):
        record = _Record(bytes(raw))
        if record.raw:
            yield record


def _salvage_records(data: bytes) -> Any:
    text = data.decode("utf-8-sig", "replace")
    for key in _LISTS:
        found = salvage(text, key, lambda value: isinstance(value, dict))
        if found is not None and found.elements:
            return {**found.fields, key: found.elements}
    return None


def _list_contains(later: Iterable[Any], earlier: Iterable[Any]) -> bool:
    """Return whether each item has a counterpart in later ones, in the same order; one may contain several with its id."""
    rest, last = iter(later), None
    for item in earlier:
        if _is_empty(item):
            continue
        item_id = _id(item)
        if item_id is not None and item_id == _id(last) and _value_contains(last, item):
            continue
        last = next((one for one in rest if _value_contains(one, item)), None)
        if last is None:
            return False
    return True


def _id(item: Any) -> str | None:
    value = item.value if isinstance(item, _Record) else item
    if not isinstance(value, dict):
        return None
    return next((one for one in (value.get("uuid"), value.get("id")) if isinstance(one, str)), None)


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | dict) and not value)


def _value_contains(later: Any, earlier: Any) -> bool:
    """Return whether a JSON value has everything that an earlier one has."""
    match earlier:
        case _Record():
            return isinstance(later, _Record) and _record_contains(later, earlier)
        case dict():
            return isinstance(later, dict) and _object_contains(later, earlier)
        case list():
            return isinstance(later, list) and _list_contains(later, earlier)
        case str():
            return isinstance(later, str) and later.startswith(earlier)
    return type(later) is type(earlier) and bool(later == earlier)


def _record_contains(later: _Record, earlier: _Record) -> bool:
    if later.raw.startswith(earlier.raw):  # most are equal, and a cut record may be complete now
        return True
    return earlier.value is not None and _value_contains(later.value, _without_volatile(earlier.value))


def _without_volatile(value: Any) -> Any:
    """Return a record without the values that change while a conversation goes on."""
    if not isinstance(value, dict):
        return value
    return {
        key: _without_volatile(inner) if key == _CHANGE else inner
        for key, inner in value.items()
        if key not in _VOLATILE_KEYS
    }


def _object_contains(later: dict[str, Any], earlier: dict[str, Any]) -> bool:
    is_open_call = "args" in earlier and earlier.get("status") not in _FINAL_STATUSES
    return all(
        _is_empty(value) or (is_open_call and key == "status") or _value_contains(later.get(key), value)
        for key, value in earlier.items()
    )
