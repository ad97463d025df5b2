"""One conversation to quote from: without its secrets, and no more of it read than is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

from msgspec.structs import replace

from retold.archive.store import Store
from retold.export.titles import uncut
from retold.model.session import Entry, Session
from retold.redaction import Redactor
from retold.sessions.pages import TimelineSlice, load_slice, slices

WHOLE = 1 << 20
"""Bytes of files up to which all of a session is looked through for secrets, so that one that is given away in one place
stands in no other. Of a longer one every entry is looked at by itself: what is told must not cost what is not."""
_FEW = 16
"""Entries that are read at once."""
_LONG = 20_000
"""Characters of a prompt that are looked at where only its beginning is told: secrets in that end long before."""


class Quoting:
    """Whatever it is asked for, and in however many pieces, it tells each text in the same way."""

    def __init__(self, record: Store, key: str, redactors: Callable[[], Redactor] | None) -> None:
        """Take what makes redactors; None where secrets may stay."""
        self._record, self.key, self._redactors = record, key, redactors

    @cached_property
    def _part(self) -> TimelineSlice | None:
        return load_slice(self._record, self.key, 0, 0)

    @cached_property
    def session(self) -> Session | None:
        """What is told of it in a few words: not what was said, and no texts of any length; None if it has gone meanwhile."""
        if self._part is None:
            return None
        told = _bare(self._part.session, uncut(self._part.session.title))
        redactor = self._redactor()
        return told if redactor is None else redactor.redacted(told, is_learned=self._learned is not None)

    def prompts(self) -> tuple[str, str]:
        """Return the beginnings of the first and the last prompt; where there is none, nothing."""
        session = self._part and self._part.session
        said = (session.first_prompt, session.last_prompt) if session else ()
        first, last = (self.text((text or "")[:_LONG]) for text in said or ("", ""))
        return first, last

    @cached_property
    def _learned(self) -> Redactor | None:
        """What knows all secrets of a session that is short enough."""
        if self._redactors is None or self._part is None or self._part.size > WHOLE:
            return None
        redactor = self._redactors()
        for part in slices(self._record, self.key):
            redactor.learn(part.session)
        return redactor

    def _redactor(self) -> Redactor | None:
        return self._learned or (self._redactors and self._redactors())

    def entries(self, first: int = 0, end: int | None = None) -> Iterator[tuple[int, Entry]]:
        """Yield entries from a place of the timeline on, up to another, each with its place."""
        for part in slices(self._record, self.key, _FEW, first):
            for seq, entry in enumerate(part.session.timeline, part.first):
                if end is not None and seq >= end:
                    return
                yield seq, self.entry(entry)

    def text(self, text: str) -> str:
        """Return a text that has to do with it without secrets."""
        redactor = self._redactor()
        return text if redactor is None else redactor.redacted_text(text)

    def entry(self, entry: Entry) -> Entry:
        """Return an entry without secrets."""
        redactor = self._redactor()
        if redactor is None or self._part is None:
            return entry
        alone = replace(_bare(self._part.session), timeline=(entry,))
        return redactor.redacted(alone, is_learned=self._learned is not None).timeline[0]


def _bare(session: Session, title: str | None = None) -> Session:
    """Return a session without its texts."""
    bare = replace(session, timeline=(), sources=(), extra={}, title=title)
    return replace(bare, summary=None, first_prompt=None, last_prompt=None)
