"""Letters or a pattern anywhere in all text: the originals are gone through, the newest conversation first."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress

from retold.archive.index.reader import Conditions, Index
from retold.archive.store import Store
from retold.processes import PRIVATE, can_fork, fork
from retold.projects.matching import is_meant
from retold.search.query import QuerySyntaxError
from retold.search.results import HITS, conversation_of, hit_of, snippet, surroundings

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from retold.archive.index.reader import IndexFile
    from retold.search.filters import Filters
    from retold.search.results import Clean, MessageHit, SearchResult, Shown

    Sitting = tuple[IndexFile, int, int, str | None]
    """A session in a file of the index: its ids there and in the archive, and its originals, if they hold all of it."""
    Places = Callable[[str], list[tuple[int, int]]]
    """Where in a text it stands."""


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


_MOST = 100


def scanned(  # noqa: PLR0913 - what is looked for, where, and how it is told
    record: Store, text: str, wanted: Filters, limit: int, *, is_regex: bool, clean: Clean | None = None
) -> Iterator[SearchResult]:
    """Yield the conversations in which it stands, the newest first; small letters mean capitals as well."""
    places = _pattern(text) if is_regex else _letters(text)
    needle = None if is_regex else _raw(text)
    return _Scan(record, wanted, places, needle, clean).conversations(limit)


def _pattern(text: str) -> Places:
    try:
        compiled = re.compile(text, re.MULTILINE)
    except re.error as error:
        place = min(error.pos or 0, len(text))
        raise QuerySyntaxError(
            f"no regular expression: {error.msg}; try --substring for plain letters", place
        ) from error
    except (OverflowError, RecursionError) as error:
        raise QuerySyntaxError("no regular expression: it is too large", 0) from error

    def places(where: str) -> list[tuple[int, int]]:
        found = (match.span() for match, _ in zip(compiled.finditer(where), range(_MOST), strict=False))
        return [span for span in found if span[0] < span[1]]

    return places


def _letters(text: str) -> Places:
    flags = re.IGNORECASE if text == text.lower() else re.NOFLAG
    compiled = re.compile(re.escape(text), flags)
    return lambda where: [
        match.span() for match, _ in zip(compiled.finditer(where), range(_MOST), strict=False)
    ]


def _raw(text: str) -> bytes:
    """Return how letters stand in an original."""
    return json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "replace")


class _Scan:
    """One walk through everything."""

    def __init__(
        self, record: Store, wanted: Filters, places: Places, needle: bytes | None, clean: Clean | None
    ) -> None:
        self._record, self._places, self._needle, self._clean = record, places, needle, clean
        self._conditions = Conditions(wanted.sessions, wanted.messages)
        self._index = Index(record, is_meant)

    def conversations(self, limit: int) -> Iterator[SearchResult]:
        """Yield the newest that hold it."""
        sessions, found = self._sessions(), 0
        for (file, session, told, _), may_hold in zip(sessions, self._sifted(sessions), strict=True):
            hits = list(self._hits(file, told)) if may_hold else []
            conversation = conversation_of(self._record, session, 1.0, hits) if hits else None
            if conversation is not None:
                yield conversation
                found += 1
                if found == limit:
                    return

    def _sessions(self) -> list[Sitting]:
        found = [
            (ended_at or "", session, file, told, originals if has_pages is None else None)
            for file in self._index.files
            for session, told, ended_at, originals, has_pages in file.sessions(self._conditions)
        ]
        found.sort(key=lambda one: one[:2], reverse=True)
        return [(file, session, told, originals) for _, session, file, told, originals in found]

    def _sifted(self, sessions: Sequence[Sitting]) -> Iterator[bool]:
        """Yield whether each session may hold the letters; what stands on pages, or in other escapes, is looked at anyway."""
        if self._needle is None or not self._needle.isascii():
            yield from (True for _ in sessions)
            return
        named = [
            [int(name, 16) for name in originals.split()] if originals else [] for *_, originals in sessions
        ]
        sieved = Prefilter(self._record, self._needle).sifted(named)
        yield from (may_hold or not originals for originals, may_hold in zip(named, sieved, strict=True))

    def _hits(self, file: IndexFile, told: int) -> Iterator[MessageHit]:
        count = 0
        for found in file.documents(told, self._conditions):
            for text in found.texts():
                shown = self._shown(text)
                if shown is not None:
                    yield hit_of(self._record, found, shown)
                    count += 1
                    break
            if count == HITS:
                return

    def _shown(self, text: str) -> Shown | None:
        """Return a line of a text around what it holds; None for what stands only in what nobody should see."""
        marked = self._places(text)
        if marked and self._clean is not None:
            text = surroundings(text, marked, self._clean)
            marked = self._places(text)
        return snippet(text, marked) if marked else None
