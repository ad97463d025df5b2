"""What lies in a folder, or the Problem that stood in the way."""

from collections.abc import Iterator
from pathlib import Path

from retold.model.problem import Problem, problem
from retold.reading.disk import DISK, Disk, DiskEntry
from retold.reading.files import printable


def list_folder(folder: Path, disk: Disk = DISK) -> Iterator[DiskEntry | Problem]:
    """Yield what a folder holds, in a steady order; nothing, if there is none."""
    try:
        yield from disk.entries(str(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        yield problem("unreadable-file", error.strerror or str(error), printable(folder))
