"""What lies in a folder, or the Problem that stood in the way."""

import os
from collections.abc import Iterator
from pathlib import Path

from retold.model.problem import Problem, problem
from retold.reading.files import printable


def entries(folder: Path) -> Iterator[os.DirEntry[str] | Problem]:
    """Yield what a folder holds, in a steady order; nothing, if there is none."""
    try:
        with os.scandir(folder) as entries:
            yield from sorted(entries, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        yield problem("unreadable-file", error.strerror or str(error), printable(folder))
