"""What a session changed in one file: the diffs of the calls that were at work on it."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from markupsafe import Markup

from retold.archive.rows import CHANGING, calls_of
from retold.export.html.clip import HEAD
from retold.export.html.diffs import Change, changes, compared, diff_box
from retold.ingest.slices import Slice
from retold.model.files import touched
from retold.model.parts import ToolCall
from retold.projects.matching import whole_path

MOST = 40
"""As many calls of a session are shown."""
_MOST_TEXT = 4 * HEAD
"""Characters of diffs after which no more is shown."""


class Edit(NamedTuple):
    """A call that was to change the file."""

    seq: int
    """Its place in the timeline."""
    tool: str
    status: str
    at: datetime | None
    diffs: tuple[Markup, ...]


def edits(parts: Iterable[Slice], path: str) -> tuple[list[Edit], int]:
    """Return the calls of a session that were to change a file, by its whole path; of very many the first, and how many are left."""
    shown: list[Edit] = []
    size = left = 0
    for part in parts:
        for seq, call in _calls(part, path):
            found = tuple(_changes(call))
            size += sum(len(change.diff) for change in found)
            if left or len(shown) == MOST or (shown and size > _MOST_TEXT):
                left += 1
                continue
            at = call.at or part.session.timeline[seq].at
            boxes = tuple(diff_box(change, part.session.key) for change in found)
            shown.append(Edit(part.first + seq, call.name, call.status, at, boxes))
    return shown, left


def _calls(part: Slice, path: str) -> Iterator[tuple[int, ToolCall]]:
    root = part.session.project.root
    return ((seq, call) for seq, _, call in calls_of(part.session) if _is_at(call, path, root))


def _is_at(call: ToolCall, path: str, root: str | None) -> bool:
    is_changing = call.canonical in CHANGING
    return is_changing and any(whole_path(name, root) == path for name in touched(call))


def _changes(call: ToolCall) -> Iterator[Change]:
    """Yield what a call changed; what it wrote where nothing tells what was there before."""
    found = list(changes(call))
    yield from found
    written = call.arguments.get("content")
    if not found and type(written) is str:
        yield Change(None, compared("", written))
