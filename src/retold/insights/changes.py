"""Files that a session changed: how often, and by how many lines where that is known."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from retold.insights.text import PlacedEntry, TurnPlace, placed
from retold.model.session import PATCH, DiffDisplay, Entry, Message, ToolCall, patched, touched

CHANGING = ("file_edit", "file_write")
"""The tools that change files."""
_HEADS = ("+++", "---")


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """A file, and what a session did to it."""

    path: str
    """As the calls name it."""
    edits: int
    """Calls that changed it; one that failed is none."""
    added: int | None
    """Lines; None where no call tells."""
    removed: int | None
    first: TurnPlace
    last: TurnPlace


class Changes:
    """The files that were changed so far."""

    def __init__(self) -> None:
        self._found: dict[str, FileChange] = {}

    def take(self, one: PlacedEntry) -> None:
        """Take in the next entry; what was taken back may lie on the disk still, but is no change to speak of."""
        if one.is_taken_back or not isinstance(one.entry, Message):
            return
        for part in one.entry.parts:
            if isinstance(part, ToolCall) and part.status == "success":
                for path, lines in changed_files(part).items():
                    self._add(path, lines, one.place)

    def _add(self, path: str, lines: tuple[int, int] | None, place: TurnPlace) -> None:
        before = self._found.get(path) or FileChange(
            path=path, edits=0, added=None, removed=None, first=place, last=place
        )
        added, removed = lines or (None, None)
        self._found[path] = msgspec.structs.replace(
            before,
            edits=before.edits + 1,
            added=_sum(before.added, added),
            removed=_sum(before.removed, removed),
            last=place,
        )

    def found(self) -> tuple[FileChange, ...]:
        """Return them, those that were changed most first."""
        return tuple(sorted(self._found.values(), key=lambda one: (-one.edits, one.first.seq, one.path)))


def changes(entries: Iterable[Entry]) -> tuple[FileChange, ...]:
    """Return the files that a timeline changed."""
    found = Changes()
    for one in placed(entries):
        found.take(one)
    return found.found()


def changed_files(call: ToolCall) -> Mapping[str, tuple[int, int] | None]:
    """Return the files that a call was to change, with the lines that came and went, where that is known."""
    patch = next((text for text in _texts(call) if PATCH in text), None)
    if patch is not None:
        return dict(_patched(patch))
    if call.canonical not in CHANGING:
        return {}
    paths = list(dict.fromkeys(touched(call)))
    lines = _lines(call) if len(paths) == 1 else None
    return dict.fromkeys(paths, lines)


def _texts(call: ToolCall) -> Iterator[str]:
    if call.canonical not in (*CHANGING, "shell_exec"):
        return
    for value in call.arguments.values():
        words = value if type(value) is list else [value]
        yield from (word for word in words if type(word) is str)


def _patched(patch: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the files of a patch in the form of Codex CLI."""
    for piece in patch.split("\n*** "):
        if names := patched(f"*** {piece.removeprefix('*** ')}"):
            yield names[0], _counted(piece)


def _lines(call: ToolCall) -> tuple[int, int] | None:
    shown = call.display
    if isinstance(shown, DiffDisplay) and shown.diff:
        return _counted(shown.diff)
    if isinstance(shown, DiffDisplay) and shown.is_new and shown.after is not None:
        return len(shown.after.splitlines()), 0
    old, new = call.arguments.get("old_string"), call.arguments.get("new_string")
    if type(old) is str and type(new) is str:
        return len(new.splitlines()), len(old.splitlines())
    return None


def _counted(diff: str) -> tuple[int, int]:
    lines = [line for line in diff.splitlines() if not line.startswith(_HEADS)]
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def _sum(before: int | None, more: int | None) -> int | None:
    return before if more is None else (before or 0) + more
