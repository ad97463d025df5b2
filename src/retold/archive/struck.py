"""Files that tell of many conversations, without those that a person wants forgotten."""

import json
from collections.abc import Iterator
from typing import Any

from retold.archive.hiding import KeyedSet
from retold.archive.originals import digest


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
