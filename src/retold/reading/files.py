"""A file's bytes, taken once and whole, or the Problem that stood in the way."""

import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from retold.model.problem import Problem, problem

ATTEMPTS = 3


class FileBytes(msgspec.Struct, frozen=True):
    """What a file held at one moment."""

    path: Path
    data: bytes
    modified_at: datetime
    problems: tuple[Problem, ...] = ()


def read_bytes(path: Path) -> FileBytes | Problem:
    """Return the file's content; read again when it changed meanwhile, a few times at most."""
    try:
        return _read_regular(path)
    except FileNotFoundError:
        return problem("missing-file", "no such file", str(path))
    except OSError as error:
        return problem("unreadable-file", error.strerror or str(error), str(path))
    except ValueError as error:  # a NUL in the path
        return problem("missing-file", str(error), str(path))


def _read_regular(path: Path) -> FileBytes | Problem:
    # A FIFO must be told before it is opened: opening one waits for a writer that may never come.
    if not stat.S_ISREG(path.stat().st_mode):
        return problem("not-a-file", "a folder, a pipe or a device, not a file", str(path))
    for _ in range(ATTEMPTS):
        with path.open("rb") as file:
            before = os.fstat(file.fileno())
            data = file.read()
            after = os.fstat(file.fileno())
        settled = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
        if settled and len(data) == after.st_size:
            return FileBytes(path, data, _modified_at(after))
    changed = problem("changed-while-read", f"still changing after {ATTEMPTS} attempts", str(path))
    return FileBytes(path, data, _modified_at(after), (changed,))


def _modified_at(status: os.stat_result) -> datetime:
    try:
        return datetime.fromtimestamp(status.st_mtime, UTC)
    except (OverflowError, ValueError, OSError):  # a clock far outside the calendar
        return datetime.fromtimestamp(0, UTC)
