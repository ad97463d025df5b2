"""The whole text index: its files, asked at the same time, and kept open where it is asked often."""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread

from retold.archive.conditions import register_functions
from retold.archive.index_file import IndexFile
from retold.archive.shards import SHARDS, shard_path

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from retold.archive.record import Store

    T = TypeVar("T")


class Index:
    """The whole index."""

    def __init__(self, record: Store, is_meant: Callable[..., bool], *, is_mapped: bool = True) -> None:
        """Open the index beside an archive; `is_meant` tells which project a name means.

        Whoever opens it often does better without files in its memory: they are put there anew each time.
        """
        self.files = [
            IndexFile(
                shard_path(record.folder, number), record.path, is_mapped=is_mapped, patience=record.patience
            )
            for number in range(SHARDS)
        ]
        for file in self.files:
            register_functions(file.connection, is_meant)

    def rest(self) -> None:
        """Stay open, and hold on to no moment."""
        for file in self.files:
            file.rest()

    def is_renewed(self) -> bool:
        """Go on at the present moment; tell whether these are still the files that lie there."""
        return all([file.is_renewed() for file in self.files])

    def at_once(self, ask: Callable[[IndexFile], Iterable[T]]) -> list[T]:
        """Return what a question to each file gives, asked of all of them at the same time."""
        first, *others = self.files
        asked = [_Asked(file, ask) for file in others]
        return [*ask(first), *(found for one in asked for found in one.answer())]


def kept_index(record: Store, is_meant: Callable[..., bool]) -> Index:
    """Return the index, which stays open with the archive: whoever asks often finds what was read before still there."""
    kept = record.index
    if kept is None or not kept.is_renewed():
        kept = record.index = Index(record, is_meant, is_mapped=False)
    return kept


class _Asked:
    """A question to a file of the index, in a thread of its own: SQLite lets others run while it looks."""

    def __init__(self, file: IndexFile, ask: Callable[[IndexFile], Iterable[Any]]) -> None:
        self._answer: list[Any] = []
        self._error: BaseException | None = None
        self._working = allocate_lock()  # threading takes a millisecond to import
        self._working.acquire()
        start_new_thread(self._run, (file, ask))

    def _run(self, file: IndexFile, ask: Callable[[IndexFile], Iterable[Any]]) -> None:
        try:
            self._answer = list(ask(file))
        except BaseException as error:  # noqa: BLE001 - raised where the answer is wanted
            self._error = error
        finally:
            self._working.release()

    def answer(self) -> list[Any]:
        """Wait for what was found."""
        with self._working:
            if self._error is not None:
                raise self._error
            return self._answer
