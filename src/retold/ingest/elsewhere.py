"""Paths of other machines as this archive knows them: below a folder that stands for whose they are.

There is no such folder on any disk. So no file of another machine is taken for one of ours, nor looked for here, and the
same file of the same home has the same path in whatever archive it is.
"""

import os
import re

START = "import:"
DEFAULT = "imported"
"""Whose files are that nobody has named."""
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\")
_LONGEST, _LONGEST_LABEL = 4096, 64


def is_label(label: str) -> bool:
    """Tell whether a word can stand for a home."""
    return (
        0 < len(label) <= _LONGEST_LABEL
        and label.isprintable()
        and label.strip(" .") == label
        and not set(label) & set("/\\:=")
    )


def placed(path: str, label: str) -> str | None:
    """Return the path here of a file of another machine; None for one that no agent can have had."""
    is_windows = _WINDOWS.match(path) is not None
    if "\0" in path or len(path) > _LONGEST or not (is_windows or path.startswith("/")):
        return None
    parts = [part for part in re.split(r"[\\/]" if is_windows else "/", path) if part]
    if not parts or any(part in (".", "..") for part in parts):
        return None
    if label_in(path) is None:
        parts.insert(0, START + label)
    return os.sep + os.sep.join(parts)


def label_in(path: str) -> str | None:
    """Return whose a file is that the other has imported itself."""
    match = re.match(rf"[\\/]{START}([^\\/]+)[\\/]", path)
    return match[1] if match and is_label(match[1]) else None
