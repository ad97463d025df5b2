"""A Disk, and an environment, that remember what was asked of them while files were looked for."""

import time
from collections.abc import Iterator, Mapping, Sequence

from retold.archive.store import as_stored
from retold.ingest.answers import ENV, FILE, FOLDER, env_answer, file_answer, folder_answer
from retold.reading.disk import DISK, DiskEntry, OpenFile

Answer = tuple[str, str | bytes, object]
"""Of which kind, what about, and what was answered."""


class RecordingDisk:
    """The disk of this machine, watched."""

    def __init__(self) -> None:
        self._folders: dict[str, int | None] = {}
        self._files: dict[str, str | None] = {}

    def open(self, path: str) -> OpenFile:
        """Open a file."""
        self._files.setdefault(path, file_answer(path))
        return DISK.open(path)

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        """Return what a folder holds."""
        self._look(folder)
        return DISK.entries(folder)

    def is_folder(self, path: str) -> bool:
        """Tell whether a folder is there."""
        self._look(path)
        return DISK.is_folder(path)

    def is_file(self, path: str) -> bool:
        """Tell whether a file is there."""
        self._files.setdefault(path, file_answer(path))
        return DISK.is_file(path)

    def is_link(self, path: str) -> bool:
        """Tell whether a link is there."""
        return DISK.is_link(path)

    def _look(self, folder: str) -> None:
        # Before it is listed: what is put in meanwhile then shows as a change.
        self._folders.setdefault(folder, folder_answer(folder, time.time_ns()))

    def answers(self) -> Iterator[Answer]:
        """Yield what was asked, and what was answered."""
        yield from ((FOLDER, as_stored(path), answer) for path, answer in self._folders.items())
        yield from ((FILE, as_stored(path), answer) for path, answer in self._files.items())


class RecordingEnv(Mapping[str, str]):
    """The environment, watched."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._asked: dict[str, str | None] = {}

    def __getitem__(self, name: str) -> str:
        self._asked[name] = self._env.get(name)
        return self._env[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._env)

    def __len__(self) -> int:
        return len(self._env)

    def answers(self) -> Iterator[Answer]:
        """Yield what was asked, and what was answered."""
        return ((ENV, name, env_answer(self._asked, name)) for name in self._asked)
