"""What a session changed in one file: the calls that were at work on it, and what they changed."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from retold.archive.rows import CHANGING, calls_of
from retold.export.diffs import DiffChange, changes, compared
from retold.model.session import Message, Session, ToolCall, touched
from retold.projects.matching import whole_path
from retold.sessions.pages import TimelineSlice


class FileEdit(NamedTuple):
    """A call that was to change the file."""

    session: Session
    """With no more of its timeline than was at hand."""
    seq: int
    """The place of its message in the whole timeline."""
    message: Message
    place: int
    """Among the parts of the message."""
    call: ToolCall


def edits_of(parts: Iterable[TimelineSlice], path: str) -> Iterator[FileEdit]:
    """Yield the calls of a session that were to change a file, by its whole path."""
    for part in parts:
        session = part.session
        for seq, place, call in calls_of(session):
            message = session.timeline[seq]
            if isinstance(message, Message) and _is_at(call, path, session.project.root):
                yield FileEdit(session, part.first + seq, message, place, call)


def _is_at(call: ToolCall, path: str, root: str | None) -> bool:
    is_changing = call.canonical in CHANGING
    return is_changing and any(whole_path(name, root) == path for name in touched(call))


def changed_by(call: ToolCall) -> Iterator[DiffChange]:
    """Yield what a call changed; what it wrote where nothing tells what was there before."""
    found = list(changes(call))
    yield from found
    written = call.arguments.get("content")
    if not found and type(written) is str:
        yield DiffChange(None, compared("", written))
