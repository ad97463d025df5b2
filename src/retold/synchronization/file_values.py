"""Tells whether a file holds every value of its earlier version, record by record: sessions do not show all of them."""

import json
from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from typing import Any

from retold.reading.disk import LONGEST, OpenFile
from retold.reading.json_decode import salvage
from retold.reading.jsonl import CHUNK, split_lines

_VOLATILE = frozenset({"lastUpdated", "messageCount", "userMessageCount"})
"""Keys of a document, and of a record that changes it, whose values change while a conversation goes on."""
_CHANGE = "$set"
"""The key of what such a record changes."""
_ENDS = frozenset({"success", "error", "cancelled"})
"""What the status of a call is once nothing more happens to it."""
_LISTS = ("messages", "clientHistory", "history", "items")
"""Keys of the lists of records in documents."""
_BLANK = b" \t\r\n\0"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def hold_values(later: OpenFile, earlier: OpenFile) -> bool:
    """Tell whether a file holds the records of an earlier version in the same order, each with all its values.

    A text may have grown, an empty value may have been filled. A line that is not JSON must be there as it was.
    """
    try:
        return _holds_items(_records(later), _records(earlier))
    except RecursionError:  # too deep to compare
        return False


class _Record:
    """A line, or a document."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw.strip(_BLANK).removeprefix(_BYTE_ORDER_MARK)

    @cached_property
    def value(self) -> Any:
        """The JSON object that it is; None where it is none."""
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
        """The JSON value that it is, or what is whole of it; None where that is nothing."""
        try:
            return json.loads(self.raw)
        except (ValueError, RecursionError):
            return _whole_elements(self.raw)


def _records(file: OpenFile) -> Iterator[_Record]:
    """Yield the document that a file is, else its lines."""
    first = next(_lines(file), None)
    if first is not None and first.value is None and file.size <= LONGEST:  # nobody reads a longer document
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


def _whole_elements(data: bytes) -> Any:
    text = data.decode("utf-8-sig", "replace")
    for key in _LISTS:
        found = salvage(text, key, lambda value: isinstance(value, dict))
        if found is not None and found.elements:
            return {**found.fields, key: found.elements}
    return None


def _holds_items(later: Iterable[Any], earlier: Iterable[Any]) -> bool:
    """Tell whether each item has a counterpart in later ones, in the same order; one may hold several with its id."""
    rest, last = iter(later), None
    for item in earlier:
        if _is_empty(item):
            continue
        name = _id(item)
        if name is not None and name == _id(last) and _holds(last, item):
            continue
        last = next((one for one in rest if _holds(one, item)), None)
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


def _holds(later: Any, earlier: Any) -> bool:
    """Tell whether a value holds everything that an earlier one holds."""
    match earlier:
        case _Record():
            return isinstance(later, _Record) and _holds_record(later, earlier)
        case dict():
            return isinstance(later, dict) and _holds_fields(later, earlier)
        case list():
            return isinstance(later, list) and _holds_items(later, earlier)
        case str():
            return isinstance(later, str) and later.startswith(earlier)
    return type(later) is type(earlier) and bool(later == earlier)


def _holds_record(later: _Record, earlier: _Record) -> bool:
    if later.raw.startswith(earlier.raw):  # most are equal, and what was cut may be whole
        return True
    return earlier.value is not None and _holds(later.value, _lasting(earlier.value))


def _lasting(value: Any) -> Any:
    """Return what a record says without what changes while a conversation goes on."""
    if not isinstance(value, dict):
        return value
    return {
        key: _lasting(inner) if key == _CHANGE else inner
        for key, inner in value.items()
        if key not in _VOLATILE
    }


def _holds_fields(later: dict[str, Any], earlier: dict[str, Any]) -> bool:
    is_open_call = "args" in earlier and earlier.get("status") not in _ENDS
    return all(
        _is_empty(value) or (is_open_call and key == "status") or _holds(later.get(key), value)
        for key, value in earlier.items()
    )
