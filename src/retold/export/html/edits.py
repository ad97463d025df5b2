"""What a session changed in one file: the diffs of the calls that were at work on it."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from markupsafe import Markup

from retold.export.edits import changed_by, edits_of
from retold.export.html.clip import HEAD
from retold.export.html.diffs import diff_box
from retold.sessions.pages import TimelineSlice

MOST = 40
"""As many calls of a session are shown."""
_MOST_TEXT = 4 * HEAD
"""Characters of diffs after which no more is shown."""


class EditBlock(NamedTuple):
    """A call that was to change the file."""

    seq: int
    """Its place in the timeline."""
    tool: str
    status: str
    at: datetime | None
    diffs: tuple[Markup, ...]


def edits(parts: Iterable[TimelineSlice], path: str) -> tuple[list[EditBlock], int]:
    """Return the calls of a session that were to change a file, by its whole path; of very many the first, and how many are left."""
    shown: list[EditBlock] = []
    size = left = 0
    for edit in edits_of(parts, path):
        found = tuple(changed_by(edit.call))
        size += sum(len(change.diff) for change in found)
        if left or len(shown) == MOST or (shown and size > _MOST_TEXT):
            left += 1
            continue
        boxes = tuple(diff_box(change, edit.session.key) for change in found)
        at = edit.call.at or edit.message.at
        shown.append(EditBlock(edit.seq, edit.call.name, edit.call.status, at, boxes))
    return shown, left
