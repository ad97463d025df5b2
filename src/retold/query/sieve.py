"""Which sessions may hold some letters: their originals are unpacked and looked through, by two processes where it pays."""

from __future__ import annotations

import os
from contextlib import suppress

from retold.archive.store import Store
from retold.processes import PRIVATE, can_fork, fork

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MANY = 64
"""Sessions that are fewer are not worth a second process."""
_YES, _NO = b"1", b"0"


class Prefilter:
    """Looks for letters in the bytes of originals: as they stand in JSON, in any case if they are small."""

    def __init__(self, record: Store, needle: bytes) -> None:
        self._record, self._needle = record, needle
        self._is_any_case = needle == needle.lower()

    def sifted(self, sessions: Sequence[Sequence[int]], many: int = MANY) -> Iterator[bool]:
        """Yield for each session, given by the names of its originals, whether it may hold the letters.

        From `many` sessions on, a second process looks through half of them.
        """
        if len(sessions) < many or not can_fork():
            yield from map(self.may_hold, sessions)
            return
        ours, theirs = os.pipe()
        PRIVATE.add(ours)
        child = fork(lambda: _sift_other(self._record.folder, self._needle, sessions[1::2], theirs))
        os.close(theirs)
        try:
            for place, session in enumerate(sessions):
                told = os.read(ours, 1) if place % 2 else b""
                yield told == _YES if told else self.may_hold(session)
        finally:
            PRIVATE.discard(ours)
            os.close(ours)  # the child's next write fails, and it ends
            os.waitpid(child, 0)

    def may_hold(self, originals: Sequence[int]) -> bool:
        """Tell whether one of these originals holds the letters."""
        return any(self._holds(original) for original in originals)

    def _holds(self, original: int) -> bool:
        before = b""
        for data in self._record.originals.unpacked_pieces(original):
            seen = before + data if before else data
            if self._needle in (seen.lower() if self._is_any_case else seen):
                return True
            before = data[-len(self._needle) :]
        return False


def _sift_other(folder: str, needle: bytes, sessions: Sequence[Sequence[int]], pipe: int) -> None:
    """Look through sessions in a child process, with a connection of its own, until nobody reads the answers."""
    with suppress(BrokenPipeError), Store(folder) as record:
        sieve = Prefilter(record, needle)
        for originals in sessions:
            os.write(pipe, _YES if sieve.may_hold(originals) else _NO)
