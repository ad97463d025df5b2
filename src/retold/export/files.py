"""Files that are written: readable by their owner alone, and whole or not there."""

from __future__ import annotations

import os
import tempfile

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable


def to_file(path: str, pieces: Iterable[bytes]) -> int:
    """Write a file in place of one that may be there; return its size.

    A link stays one, and what is no file of a disk, a pipe or a terminal, is written to as it is.
    """
    path = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as there:
            return sum(map(there.write, pieces))
    folder = os.path.dirname(path) or "."
    os.makedirs(folder, mode=0o700, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=folder, prefix=".retold-")  # owner-only from the start
    size = 0
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                size += file.write(piece)
        os.replace(draft, path)
    except BaseException:  # Ctrl-C too: nothing half written is left
        os.unlink(draft)
        raise
    return size
