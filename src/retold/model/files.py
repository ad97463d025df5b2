"""Which files a tool was at work on."""

import re
from collections.abc import Iterator
from typing import Any

from retold.model.parts import ToolCall

NAMES = frozenset(
    (
        "absolute_path", "dir_path", "directory", "file", "file_name", "file_path", "filename", "files", "include",
        "notebook_path", "path", "paths", "target_file",
    )
)  # fmt: skip
"""The arguments in which agents name files and folders."""
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)
PATCH = "*** Begin Patch"
_WORD = re.compile(
    r"(?<![\w:/.])[~\w.@+-]{0,1000}[/\\][\w.@+~/\\-]{0,1000}\w|(?<![\w/.])[\w-]{1,1000}\.[A-Za-z]\w{0,7}\b"
)
"""A word of a command that may be a path: with a separator in it, or an ending. No command that is read is longer."""
_NO_PATH = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")
"""What is in no name that a person gives a file: lines of a text, and halves of characters. Any other space is in some."""
_LONGEST = 1_000
_MOST = 50


def touched(call: ToolCall) -> Iterator[str]:
    """Yield the paths that a call names, as it names them."""
    return (path for path in _named(call) if _NO_PATH.search(path) is None)


def _named(call: ToolCall) -> Iterator[str]:
    for name, value in call.arguments.items():
        if name in NAMES:
            yield from _paths(value)
        elif type(value) is str and "*** " in value and call.canonical in ("file_edit", "shell_exec"):
            yield from patched(value)
        elif type(value) is str and call.canonical == "shell_exec" and len(value) <= _LONGEST:
            yield from _WORD.findall(value)[:_MOST]


def _paths(value: Any) -> Iterator[str]:
    found = value if type(value) is list else [value]
    yield from (path for path in found if type(path) is str and 0 < len(path) <= _LONGEST)


def patched(text: str) -> list[str]:
    """Return the files that a patch in the form of Codex CLI is about."""
    return [added or moved for added, moved in _PATCHED.findall(text)]
