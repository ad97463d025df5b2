"""One sync at a time: a lock that the system takes back when its holder ends, however it ends."""

from __future__ import annotations

import os
import time

from retold.archive.database import RetoldError
from retold.processes import PRIVATE

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

NAME = "sync.lock"
PATIENCE = 600.0
_STEP = 0.05


class Lock:
    """Held by whoever brings the archive up to date."""

    def __init__(self, folder: str, tell_wait: Callable[[], None], patience: float = PATIENCE) -> None:
        """Take the folder of the archive; `tell_wait` is called once, if another has the lock."""
        self._path, self._tell_wait, self._patience = os.path.join(folder, NAME), tell_wait, patience

    def __enter__(self) -> Self:
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        PRIVATE.add(self._descriptor)
        ends = time.monotonic() + self._patience
        is_told = False
        while not is_taken(self._descriptor):
            if not is_told:
                self._tell_wait()
                is_told = True
            if time.monotonic() > ends:
                self.__exit__(None, None, None)
                raise RetoldError(
                    "another retold has been writing to the archive for ten minutes: try again later"
                )
            time.sleep(_STEP)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        PRIVATE.discard(self._descriptor)
        os.close(self._descriptor)


def is_taken(descriptor: int) -> bool:
    """Try to take the lock, without waiting."""
    try:
        import fcntl
    except ImportError:
        return _taken_on_windows(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _taken_on_windows(descriptor: int) -> bool:
    import msvcrt

    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True
