"""Scans of all text, the newest session first: for substrings, regular expressions and symbols, which have no words."""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import suppress
from typing import NamedTuple

from retold.archive.database import DamagedError
from retold.archive.index.reader import Conditions, Index, IndexFile
from retold.archive.store import Store
from retold.processes import PRIVATE, can_fork, fork
from retold.projects.matching import matches_project
from retold.search.query import QuerySyntaxError
from retold.search.results import (
    HITS_PER_RESULT,
    clean_context,
    load_hit,
    load_result,
    make_snippet,
    matches_query,
)

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from retold.archive.index.reader import IndexHit
    from retold.search.filters import Filters
    from retold.search.query import Query
    from retold.search.results import Clean, MessageHit, Range, SearchResult, Snippet

    FindRanges = Callable[[str], list[Range]]
    """Returns the ranges of a text that match."""


MANY = 64
"""Sessions from which on a second process helps."""
_YES, _NO = b"1", b"0"
_MOST_RANGES = 100
"""Matches in one text."""
_DOCUMENTS_PER_SESSION = 3
"""Documents of a session with symbols that are loaded."""


class Prefilter:
    """Searches the bytes of originals for a text as JSON has it; a needle in small letters matches capitals, too."""

    def __init__(self, store: Store, needle: bytes) -> None:
        self._store, self._needle = store, needle
        self._nested = json.dumps(needle.decode())[1:-1].encode()
        """The needle in JSON that is a string of JSON."""
        self._ignores_case = needle == needle.lower()

    def filter_sessions(self, sessions: Sequence[Sequence[int]], many: int = MANY) -> Iterator[bool]:
        """Yield for each session, given by the uids of its originals, whether it may contain the needle.

        From `many` sessions on, a second process searches half of them.
        """
        if len(sessions) < many or not can_fork():
            yield from map(self.may_contain, sessions)
            return
        ours, theirs = os.pipe()
        PRIVATE.add(ours)
        child = fork(lambda: _filter_in_child(self._store.folder, self._needle, sessions[1::2], theirs))
        os.close(theirs)
        try:
            for number, session in enumerate(sessions):
                answer = os.read(ours, 1) if number % 2 else b""
                yield answer == _YES if answer else self.may_contain(session)
        finally:
            PRIVATE.discard(ours)
            os.close(ours)  # the next write of the child fails, and it ends
            os.waitpid(child, 0)

    def may_contain(self, originals: Sequence[int]) -> bool:
        """Return whether one of some originals contains the needle, or is damaged: then the texts themselves decide."""
        try:
            return any(self._contains(original) for original in originals)
        except DamagedError:
            return True

    def _contains(self, original: int) -> bool:
        before = b""
        for data in self._store.originals.read_chunks(original):
            searched = before + data if before else data
            if self._ignores_case:
                searched = searched.lower()
            if self._needle in searched or (self._nested != self._needle and self._nested in searched):
                return True
            before = searched[-len(self._nested) :]
        return False


def _filter_in_child(folder: str, needle: bytes, sessions: Sequence[Sequence[int]], pipe: int) -> None:
    """Write the answers for sessions to a pipe, with a new connection, until nobody reads them."""
    with suppress(BrokenPipeError), Store(folder) as store:
        prefilter = Prefilter(store, needle)
        for originals in sessions:
            os.write(pipe, _YES if prefilter.may_contain(originals) else _NO)


class _ScannedSession(NamedTuple):
    """A session in a file of the index."""

    file: IndexFile
    entry_id: int
    session: int
    originals: list[int]
    """The uids of its originals if they hold all of its text, else nothing."""


def _load_newest(index: Index, conditions: Conditions) -> list[_ScannedSession]:
    """Return the sessions that meet conditions, the newest first."""
    rows = [
        (
            ended_at or "",
            session,
            file,
            entry_id,
            [] if has_pages else [int(uid, 16) for uid in (originals or "").split()],
        )
        for file in index.files
        for session, entry_id, ended_at, originals, has_pages in file.load_sessions(conditions)
    ]
    rows.sort(key=lambda row: row[:2], reverse=True)
    return [_ScannedSession(file, entry_id, session, uids) for _, session, file, entry_id, uids in rows]


def scan_texts(  # noqa: PLR0913 - a search and its options
    store: Store, text: str, filters: Filters, limit: int, *, is_regex: bool, clean: Clean | None = None
) -> Iterator[SearchResult]:
    """Yield the sessions that contain a text or a pattern, the newest first; small letters match capitals, too."""
    find_ranges = _pattern(text) if is_regex else _letters(text)
    needle = None if is_regex else json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "replace")
    return _Scan(store, filters, find_ranges, needle, clean).find(limit)


def _pattern(text: str) -> FindRanges:
    try:
        compiled = re.compile(text, re.MULTILINE)
    except re.error as error:
        offset = min(error.pos or 0, len(text))
        raise QuerySyntaxError(
            f"no regular expression: {error.msg}; try --substring for plain letters", offset
        ) from error
    except (OverflowError, RecursionError) as error:
        raise QuerySyntaxError("no regular expression: it is too large", 0) from error
    return lambda searched: [span for span in _spans(compiled, searched) if span[0] < span[1]]


def _letters(text: str) -> FindRanges:
    compiled = re.compile(re.escape(text), re.IGNORECASE if text == text.lower() else re.NOFLAG)
    return lambda searched: _spans(compiled, searched)


def _spans(pattern: re.Pattern[str], text: str) -> list[Range]:
    return [match.span() for match, _ in zip(pattern.finditer(text), range(_MOST_RANGES), strict=False)]


class _Scan:
    """A scan for a substring or a regular expression."""

    def __init__(
        self,
        store: Store,
        filters: Filters,
        find_ranges: FindRanges,
        needle: bytes | None,
        clean: Clean | None,
    ) -> None:
        self._store, self._find_ranges, self._needle, self._clean = store, find_ranges, needle, clean
        self._conditions = Conditions(filters.sessions, filters.messages)
        self._index = Index(store, matches_project)

    def find(self, limit: int) -> Iterator[SearchResult]:
        """Yield the newest results, up to a limit."""
        sessions, count = _load_newest(self._index, self._conditions), 0
        for one, may_contain in zip(sessions, self._prefilter(sessions), strict=True):
            hits = list(self._load_hits(one.file, one.entry_id)) if may_contain else []
            result = load_result(self._store, one.session, 1.0, hits) if hits else None
            if result is not None:
                yield result
                count += 1
                if count == limit:
                    return

    def _prefilter(self, sessions: Sequence[_ScannedSession]) -> Iterator[bool]:
        """Yield whether each session may match: always if originals lack some text or may escape it in other ways."""
        if self._needle is None or not self._needle.isascii():
            yield from (True for _ in sessions)
            return
        answers = Prefilter(self._store, self._needle).filter_sessions([one.originals for one in sessions])
        yield from (
            may_contain or not one.originals for one, may_contain in zip(sessions, answers, strict=True)
        )

    def _load_hits(self, file: IndexFile, entry_id: int) -> Iterator[MessageHit]:
        count = 0
        for hit in file.load_documents(entry_id, self._conditions):
            snippet = next(filter(None, map(self._make_snippet, hit.texts())), None)
            if snippet is not None:
                yield load_hit(self._store, hit, snippet)
                count += 1
            if count == HITS_PER_RESULT:
                return

    def _make_snippet(self, text: str) -> Snippet | None:
        """Return a snippet of a text; None if it does not match outside of secrets."""
        ranges = self._find_ranges(text)
        if ranges and self._clean is not None:
            text = clean_context(text, ranges, self._clean)
            ranges = self._find_ranges(text)
        return make_snippet(text, ranges) if ranges else None


class SymbolSearch:
    """A search for symbols, such as `->` or `()`, for which the index has no words."""

    def __init__(self, store: Store, index: Index, query: Query, conditions: Conditions) -> None:
        self._index, self._query, self._conditions = index, query, conditions
        needle = _needle(query)
        self._prefilter = Prefilter(store, needle) if needle else None
        self.is_complete = True
        """False if the search ended by its timeout."""

    def find(self, timeout: float | None) -> Iterator[list[IndexHit]]:
        """Yield the matching documents of each session, until the timeout in seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        for one in _load_newest(self._index, self._conditions):
            if end is not None and time.monotonic() > end:
                self.is_complete = False
                return
            may_match = not self._prefilter or not one.originals or self._prefilter.may_contain(one.originals)
            if may_match and (hits := self._load_hits(one)):
                yield hits

    def _load_hits(self, session: _ScannedSession) -> list[IndexHit]:
        hits: list[IndexHit] = []
        for hit in session.file.load_documents(session.entry_id, self._conditions):
            if matches_query("\n".join(hit.texts()), self._query):
                hits.append(hit)
                if len(hits) == _DOCUMENTS_PER_SESSION:
                    break
        return hits


def _needle(query: Query) -> bytes | None:
    """Return bytes that every matching original contains; None if there are none."""
    texts = [clause.alternatives[0].text for clause in query.clauses if len(clause.alternatives) == 1]
    plain = [text for text in texts if text.isascii() and text.isprintable()]
    return json.dumps(max(plain, key=len))[1:-1].encode() if plain else None
