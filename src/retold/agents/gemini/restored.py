"""What retold leaves in a file that it wrote back, so that it is known again as the session that it was.

Such a session has an id of its own, `r_<id>`: Gemini CLI deletes by the first eight characters of an id, and only if they
are letters and digits, so that no ghost takes it along. Evidence: `docs/formats/gemini.md`, section 15.
"""

import re
from typing import Any

import msgspec

from retold.agents.gemini.raw import Record
from retold.model.session import View

KEY = "retold"
"""The field of the metadata in which the mark stands; the CLI keeps what it does not know."""
WRITTEN = ("directories", "memoryScratchpad", "sessionId", "projectHash", "summary")
"""What else we write about a session; what its own files say of it counts."""
_ID = re.compile(r"r\d*_(?=[0-9A-Za-z])")
_REWIND_UUID = re.compile(r"r\d*_([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})", re.IGNORECASE)
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST = 64


class Mark(msgspec.Struct, frozen=True, rename="camel"):
    """What a written file was made of."""

    session_id: str
    project_hash: str | None
    last_updated: str | None
    """What the session itself says of its end."""
    restored_at: str
    view: View
    messages: int
    """How many lines behind the first are ours: what stands there, the archive has as it was said."""
    digest: str


def mark_of(metadata: Record) -> Mark | None:
    """Return the mark in a file's metadata."""
    try:
        return msgspec.convert(metadata.get(KEY), Mark | None)
    except (msgspec.ValidationError, RecursionError):
        return None


def native_id(metadata: Record) -> str | None:
    """Return the id that a session had before it was written back, if it was; that of a ghost of it as well."""
    mark, told = mark_of(metadata), metadata.get("sessionId")
    if mark is not None:
        return mark.session_id
    return original_id(told) if type(told) is str and told else None


def original_id(session_id: str) -> str:
    """Return the id that a session had before it was written back."""
    match = _REWIND_UUID.fullmatch(session_id)
    return match[1] if match else session_id


def without_prefix(name: str) -> str:
    """Return an id, or the part of it in a file's name, as it was before it was written back."""
    return _ID.sub("", name, count=1) if _ID.match(name) else name


def new_id(session_id: str, number: int) -> str:
    """Return the id under which a session is written back for the first time, the second, ..."""
    return f"r{number if number > 1 else ''}_{_UNSAFE.sub('_', session_id)[:_LONGEST]}"


def as_metadata(mark: Mark) -> dict[str, Any]:
    """Return the mark as it is written."""
    return {KEY: msgspec.to_builtins(mark)}
