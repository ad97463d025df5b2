"""Letters or a pattern anywhere in all text: the originals are gone through, the newest conversation first."""

from __future__ import annotations

import json
import re

from retold.archive.index.reader import Conditions, Index
from retold.projects.matching import is_meant
from retold.query.hits import HITS, conversation_of, hit_of
from retold.query.language import QuerySyntaxError
from retold.query.marks import snippet
from retold.query.sieve import Prefilter
from retold.query.surroundings import surroundings

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from retold.archive.index.reader import IndexFile
    from retold.archive.store import Store
    from retold.query.hits import MessageHit, SearchResult, Shown
    from retold.query.surroundings import Clean
    from retold.query.wanted import Filters

    Sitting = tuple[IndexFile, int, int, str | None]
    """A session in a file of the index: its ids there and in the archive, and its originals, if they hold all of it."""
    Places = Callable[[str], list[tuple[int, int]]]
    """Where in a text it stands."""

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
