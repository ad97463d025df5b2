"""Signs without letters, as `->` or `()`: the index has no words for them, so the texts are read, the newest conversation first."""

from __future__ import annotations

import json
import time

from retold.archive.index.tokenizer import atoms
from retold.search.results import satisfies
from retold.search.text_scan import Prefilter

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterator

    from retold.archive.index.reader import Conditions, Index, IndexHit
    from retold.archive.store import Store
    from retold.search.query import Query


MOST = 3
"""Documents of one conversation that are looked for."""


def is_of_signs(query: Query) -> bool:
    """Tell whether a query asks for something, and nothing in it has a letter, a digit or a picture."""
    return bool(query.terms) and not any(atoms(term.text) for term in query.terms)


class Signs:
    """One question for signs."""

    def __init__(self, record: Store, index: Index, query: Query, wanted: Conditions) -> None:
        self._index, self._query, self._wanted = index, query, wanted
        needle = _needle(query)
        self._sieve = Prefilter(record, needle) if needle else None
        self.is_complete = True
        """Whether all texts were read, as far as they had to be."""

    def found(self, patience: float | None) -> Iterator[list[IndexHit]]:
        """Yield the documents with the signs, conversation by conversation; stop when the seconds of patience are over."""
        end = None if patience is None else time.monotonic() + patience
        for shard_number, told, originals in self._sessions():
            if end is not None and time.monotonic() > end:
                self.is_complete = False
                return
            if self._may_hold(originals) and (found := list(self._documents(shard_number, told))):
                yield found

    def _sessions(self) -> list[tuple[int, int, str | None]]:
        """Return all sessions that are meant, the newest first, with their originals where these hold all of their text."""
        found = [
            (ended_at or "", session, number, told, originals if has_pages is None else None)
            for number, file in enumerate(self._index.files)
            for session, told, ended_at, originals, has_pages in file.sessions(self._wanted)
        ]
        found.sort(key=lambda one: one[:2], reverse=True)
        return [(number, told, originals) for _, _, number, told, originals in found]

    def _may_hold(self, originals: str | None) -> bool:
        if self._sieve is None or not originals:
            return True
        return self._sieve.may_hold([int(name, 16) for name in originals.split()])

    def _documents(self, number: int, told: int) -> Iterator[IndexHit]:
        count = 0
        for found in self._index.files[number].documents(told, self._wanted):
            if satisfies("\n".join(found.texts()), self._query):
                yield found
                count += 1
                if count == MOST:
                    return


def _needle(query: Query) -> bytes | None:
    """Return bytes that every matching original contains, or None if there are no such bytes."""
    lone = [clause.alternatives[0].text for clause in query.clauses if len(clause.alternatives) == 1]
    plain = [text for text in lone if text.isascii() and text.isprintable()]
    return json.dumps(max(plain, key=len))[1:-1].encode() if plain else None
