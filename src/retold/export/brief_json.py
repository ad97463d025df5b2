"""A digest as JSON: all of it, for programs."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec

from retold.insights.digest import Cited, Digest
from retold.model.serialization import encoded, time_text


def brief_json(digest: Digest, name: str) -> bytes:
    """Return a digest on one line; whatever stands in a session says in which, in which turn, and at which entry."""
    told = {
        "project": name,
        "roots": list(digest.roots),
        "sessions": [_tree(one) for one in digest.sessions],
        "left_out": digest.left_out,
        "open_ends": list(map(_cited_tree, digest.open_ends)),
        "decisions": list(map(_cited_tree, digest.decisions)),
        "failures": [{**_cited_tree(one), "is_open": one.what.is_open} for one in digest.failures],
        "files": [{**_tree(one), "last": _cited_tree(one.last)} for one in digest.files],
    }
    return encoded(told)


def _cited_tree(one: Cited[Any]) -> dict[str, Any]:
    return {"session": one.key, **_tree(one.what)}


def _tree(value: Any) -> Any:
    """Return a value as dicts and lists; a place is told by its fields, among those of what stands there."""
    if isinstance(value, msgspec.Struct):
        fields = {name: _tree(getattr(value, name)) for name in value.__struct_fields__}
        place = fields.pop("place", None)
        return {**place, **fields} if isinstance(place, Mapping) else fields
    if isinstance(value, tuple):
        return [_tree(item) for item in value]
    if isinstance(value, datetime):
        return time_text(value)
    return str(value) if isinstance(value, Decimal) else value
