"""Changes of files as diffs: from what the agent showed, else from what the call was given."""

from collections.abc import Iterable, Iterator
from difflib import unified_diff
from typing import Any, NamedTuple

from retold.archive.rows import CHANGING, calls_of
from retold.model.session import DiffDisplay, Message, Session, ToolCall, touched
from retold.projects.matching import whole_path
from retold.sessions.pages import TimelineSlice

MOST_LINES = 3_000
"""As many lines as are compared: the time that takes grows with their square."""
_PATCH = "*** Begin Patch"
_PAIRS = (("old_string", "new_string"), ("old_str", "new_str"), ("old_source", "new_source"))
"""The arguments in which agents give a text to be replaced and the one in its place."""


class DiffChange(NamedTuple):
    """A diff, and the names of the arguments that it tells as well."""

    path: str | None
    diff: str
    told: frozenset[str] = frozenset()


def changes(call: ToolCall) -> Iterator[DiffChange]:
    """Yield what a call changed, or was to change."""
    shown = call.display
    if isinstance(shown, DiffDisplay) and (diff := _shown_diff(shown)):
        names = (*(name for pair in _PAIRS for name in pair), "edits", "content")
        given = {name for name in names if _is_told(call.arguments.get(name), diff)}
        yield DiffChange(shown.path, diff, frozenset(given))
    else:
        yield from _given(call.arguments)


def _shown_diff(shown: DiffDisplay) -> str | None:
    if shown.diff:
        return shown.diff
    return None if shown.after is None else compared(shown.before or "", shown.after)


def _is_told(value: Any, diff: str) -> bool:
    """Tell whether every line of an argument stands in a diff: what does not is shown beside it."""
    match value:
        case str(text):
            lines = {line[1:].strip() for line in diff.splitlines()}
            return lines.issuperset(line.strip() for line in text.splitlines() if line.strip())
        case list(edits):
            return all(
                type(edit) is dict and all(_is_told(edit.get(name, ""), diff) for name in _edited(edit))
                for edit in edits
            )
        case _:
            return False


def _edited(edit: dict[str, Any]) -> Iterable[str]:
    return (name for pair in _PAIRS for name in pair if name in edit)


def _given(arguments: dict[str, Any]) -> Iterator[DiffChange]:
    for name, value in arguments.items():
        if type(value) is str and value.lstrip().startswith(_PATCH):
            yield DiffChange(None, value, frozenset((name,)))
    edits = arguments.get("edits")
    if type(edits) is list and edits and all(map(_pair, edits)):
        diffs = [compared(*pair) for pair in map(_pair, edits) if pair]
        yield DiffChange(None, "\n".join(diffs), frozenset(("edits",)))
    pair = _pair(arguments)
    if pair:
        yield DiffChange(None, compared(*pair), frozenset(_edited(arguments)))


def _pair(value: Any) -> tuple[str, str] | None:
    """Return the texts before and after, where a value has both."""
    for old, new in _PAIRS if type(value) is dict else ():
        if type(value.get(old)) is str and type(value.get(new)) is str:
            return value[old], value[new]
    return None


def compared(before: str, after: str) -> str:
    """Return the difference of two texts; where they are too long to be compared, one after the other."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > MOST_LINES:
        return "\n".join([*(f"-{line}" for line in old), *(f"+{line}" for line in new)])
    return "\n".join(list(unified_diff(old, new, lineterm=""))[2:])


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
