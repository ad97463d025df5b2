"""The files that a session changed, with the number of edits and of lines."""

from collections.abc import Iterator, Mapping

import msgspec

from retold.insights.text import PlacedEntry, TurnPlace
from retold.model.session import PATCH, DiffDisplay, Message, ToolCall, patched_paths, touched_paths

CHANGING_TOOLS = ("file_edit", "file_write")
_HEADS = ("+++", "---")


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a session to a file."""

    path: str
    """As in the calls."""
    edits: int
    """Successful calls that changed it."""
    added: int | None
    """Lines; None if no call has them."""
    removed: int | None
    first: TurnPlace
    last: TurnPlace


class ChangeCollector:
    """Collects the changed files of a session."""

    def __init__(self) -> None:
        self._files: dict[str, FileChange] = {}

    def add(self, one: PlacedEntry) -> None:
        """Add the next entry; a rewound one counts as no change, although the file may have changed on disk."""
        if one.is_rewound or not isinstance(one.entry, Message):
            return
        for part in one.entry.parts:
            if isinstance(part, ToolCall) and part.status == "success":
                for path, lines in files_changed_by(part).items():
                    self._add_edit(path, lines, one.place)

    def _add_edit(self, path: str, lines: tuple[int, int] | None, place: TurnPlace) -> None:
        before = self._files.get(path) or FileChange(
            path=path, edits=0, added=None, removed=None, first=place, last=place
        )
        added, removed = lines or (None, None)
        self._files[path] = msgspec.structs.replace(
            before,
            edits=before.edits + 1,
            added=_sum(before.added, added),
            removed=_sum(before.removed, removed),
            last=place,
        )

    def changes(self) -> tuple[FileChange, ...]:
        """Return the files, those with the most edits first."""
        return tuple(sorted(self._files.values(), key=lambda one: (-one.edits, one.first.seq, one.path)))


def files_changed_by(call: ToolCall) -> Mapping[str, tuple[int, int] | None]:
    """Return the files that a call changes, with the added and removed lines if they are known."""
    patch = next((text for text in _texts(call) if PATCH in text), None)
    if patch is not None:
        return dict(_files_of_patch(patch))
    if call.canonical not in CHANGING_TOOLS:
        return {}
    paths = list(dict.fromkeys(touched_paths(call)))
    return dict.fromkeys(paths, _count_lines(call) if len(paths) == 1 else None)


def _texts(call: ToolCall) -> Iterator[str]:
    if call.canonical not in (*CHANGING_TOOLS, "shell_exec"):
        return
    for value in call.arguments.values():
        words = value if type(value) is list else [value]
        yield from (word for word in words if type(word) is str)


def _files_of_patch(patch: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the files of a patch in the form of Codex CLI."""
    for piece in patch.split("\n*** "):
        if paths := patched_paths(f"*** {piece.removeprefix('*** ')}"):
            yield paths[0], _count_diff(piece)


def _count_lines(call: ToolCall) -> tuple[int, int] | None:
    shown = call.display
    if isinstance(shown, DiffDisplay) and shown.diff:
        return _count_diff(shown.diff)
    if isinstance(shown, DiffDisplay) and shown.is_new and shown.after is not None:
        return len(shown.after.splitlines()), 0
    old, new = call.arguments.get("old_string"), call.arguments.get("new_string")
    if type(old) is str and type(new) is str:
        return len(new.splitlines()), len(old.splitlines())
    return None


def _count_diff(diff: str) -> tuple[int, int]:
    lines = [line for line in diff.splitlines() if not line.startswith(_HEADS)]
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def _sum(before: int | None, more: int | None) -> int | None:
    return before if more is None else (before or 0) + more
