"""Files that are written: readable by their owner alone, and whole or not there."""

from __future__ import annotations

import os
import stat
import tempfile
from zlib import crc32

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
    handle, draft = new_draft(os.path.join(folder, f".retold-{crc32(os.fsencode(path)):08x}"))
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


def new_draft(path: str) -> tuple[int, str]:
    """Return a new file, readable by its owner alone, with its descriptor; at `path`, unless another process writes there.

    The draft that a killed process left at `path` is replaced.
    """
    for _ in range(2):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            if not _is_abandoned(path):
                break
            os.unlink(path)
        else:
            _lock(descriptor)
            return descriptor, path
    return tempfile.mkstemp(dir=os.path.dirname(path), prefix=f"{os.path.basename(path)}-")


def _is_abandoned(path: str) -> bool:
    """Return whether a file is ours, and no process writes it."""
    found = os.lstat(path)
    if os.name != "posix" or not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
        return False
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return _lock(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Lock a file until its descriptor is closed, and return whether that is possible."""
    try:
        import fcntl  # noqa: PLC0415 - Windows has none

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True
