"""Diffs of the files that a tool call changed: as the agent showed them, else computed from the call's arguments."""

from collections.abc import Iterable, Iterator
from difflib import unified_diff
from typing import Any, NamedTuple

from retold.archive.rows import EDITING_TOOLS, iterate_tool_calls
from retold.model.session import DiffDisplay, Message, Session, ToolCall, touched_paths
from retold.projects.matching import absolute_path
from retold.sessions.slices import TimelineSlice

MOST_LINES = 3_000
"""Lines that are compared, at most: the time grows with their square."""
_PATCH = "*** Begin Patch"
_PAIRS = (("old_string", "new_string"), ("old_str", "new_str"), ("old_source", "new_source"))
"""Names of the arguments that hold a text and its replacement."""


class DiffChange(NamedTuple):
    """A diff, and the names of the arguments whose lines all stand in it."""

    path: str | None
    diff: str
    arguments: frozenset[str] = frozenset()


def diffs_of_call(call: ToolCall) -> Iterator[DiffChange]:
    """Yield the changes that a call made, or would have made."""
    shown = call.display
    if isinstance(shown, DiffDisplay) and (diff := _displayed_diff(shown)):
        names = (*(name for pair in _PAIRS for name in pair), "edits", "content")
        arguments = {name for name in names if _is_in_diff(call.arguments.get(name), diff)}
        yield DiffChange(shown.path, diff, frozenset(arguments))
    else:
        yield from _diffs_of_arguments(call.arguments)


def _displayed_diff(shown: DiffDisplay) -> str | None:
    if shown.diff:
        return shown.diff
    return None if shown.after is None else diff_texts(shown.before or "", shown.after)


def _is_in_diff(value: Any, diff: str) -> bool:
    """Return whether every line of an argument stands in a diff; an argument that does not is shown separately."""
    match value:
        case str(text):
            lines = {line[1:].strip() for line in diff.splitlines()}
            return lines.issuperset(line.strip() for line in text.splitlines() if line.strip())
        case list(edits):
            return all(
                type(edit) is dict
                and all(_is_in_diff(edit.get(name, ""), diff) for name in _pair_names(edit))
                for edit in edits
            )
        case _:
            return False


def _pair_names(edit: dict[str, Any]) -> Iterable[str]:
    return (name for pair in _PAIRS for name in pair if name in edit)


def _diffs_of_arguments(arguments: dict[str, Any]) -> Iterator[DiffChange]:
    for name, value in arguments.items():
        if type(value) is str and value.lstrip().startswith(_PATCH):
            yield DiffChange(None, value, frozenset((name,)))
    edits = arguments.get("edits")
    if type(edits) is list and edits and all(map(_pair, edits)):
        diffs = [diff_texts(*pair) for pair in map(_pair, edits) if pair]
        yield DiffChange(None, "\n".join(diffs), frozenset(("edits",)))
    pair = _pair(arguments)
    if pair:
        yield DiffChange(None, diff_texts(*pair), frozenset(_pair_names(arguments)))


def _pair(value: Any) -> tuple[str, str] | None:
    """Return the texts before and after; None if a value does not have both."""
    for old, new in _PAIRS if type(value) is dict else ():
        if type(value.get(old)) is str and type(value.get(new)) is str:
            return value[old], value[new]
    return None


def diff_texts(before: str, after: str) -> str:
    """Return the difference of two texts; of texts too long to compare, all lines of the one and then of the other."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > MOST_LINES:
        return "\n".join([*(f"-{line}" for line in old), *(f"+{line}" for line in new)])
    return "\n".join(list(unified_diff(old, new, lineterm=""))[2:])


class FileEdit(NamedTuple):
    """A call that edits a file."""

    session: Session
    """Its timeline may be only a part of the whole."""
    seq: int
    """The place of the message in the whole timeline."""
    message: Message
    part: int
    """The place of the call among the parts of the message."""
    call: ToolCall


def file_edits(parts: Iterable[TimelineSlice], path: str) -> Iterator[FileEdit]:
    """Yield the calls of a session that edit a file, given by its absolute path."""
    for timeline_part in parts:
        session = timeline_part.session
        for seq, part, call in iterate_tool_calls(session):
            message = session.timeline[seq]
            if isinstance(message, Message) and _edits_path(call, path, session.project.root):
                yield FileEdit(session, timeline_part.first + seq, message, part, call)


def _edits_path(call: ToolCall, path: str, root: str | None) -> bool:
    is_editing = call.canonical in EDITING_TOOLS
    return is_editing and any(absolute_path(name, root) == path for name in touched_paths(call))


def diffs_with_content(call: ToolCall) -> Iterator[DiffChange]:
    """Yield the changes of a call; if it has no diff, the content that it wrote as added lines."""
    diffs = list(diffs_of_call(call))
    yield from diffs
    content = call.arguments.get("content")
    if not diffs and type(content) is str:
        yield DiffChange(None, diff_texts("", content))
