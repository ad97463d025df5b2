"""Conversations out of the archive, with the subagents that their calls started."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import islice

import msgspec
from msgspec.structs import replace

from retold.archive.queries.listing import answer_places
from retold.archive.store import Store
from retold.export.files import file_name
from retold.export.formats.registry import FORMATS, ExportOptions, ExportSession
from retold.export.text.escape import uncut
from retold.export.transcript import plural
from retold.model.session import Entry, Message, Session, Text, View
from retold.redaction import Redactor
from retold.reports.dashboards import names_changed
from retold.search.pages import SessionSummary
from retold.sessions.load import load_session
from retold.sessions.pages import TimelineSlice, load_slice, slices

DEEPEST = 16
"""Subagents of subagents: no agent calls more, and a circle must end somewhere."""


Fail = Callable[[str, Exception], None]
"""Hears of the key of a session that cannot be read, and why."""


def gathered(
    record: Store, key: str, view: View, depth: int = 0, fail: Fail | None = None
) -> ExportSession | None:
    """Return a conversation with all that belongs to it; None if there is none.

    A session that cannot be read is given to `fail` and left out.
    """
    try:
        session = load_session(record, key, view)
    except Exception as error:
        if fail is None:
            raise
        fail(key, error)
        return None
    if session is None:
        return None
    below = session.children if depth < DEEPEST else ()
    found = {child: gathered(record, child, view, depth + 1, fail) for child in below}
    return ExportSession(session, {child: telling for child, telling in found.items() if telling is not None})


def sessions_of(telling: ExportSession) -> Iterator[Session]:
    """Yield a conversation and all that belongs to it."""
    yield telling.session
    for subagent in telling.subagents.values():
        yield from sessions_of(subagent)


def changed(telling: ExportSession, change: Callable[[Session], Session]) -> ExportSession:
    """Return a conversation with each of its sessions changed; they keep their keys."""
    subagents = {key: changed(subagent, change) for key, subagent in telling.subagents.items()}
    return ExportSession(change(telling.session), subagents)


def cut_session(telling: ExportSession, first: int, last: int | None) -> ExportSession:
    """Return a conversation with only some of its own entries, counted from 1."""
    session = telling.session
    part = msgspec.structs.replace(session, timeline=session.timeline[first - 1 : last])
    return msgspec.structs.replace(telling, session=part)


class HtmlDocument(msgspec.Struct, frozen=True):
    """A document, and what to call it; its pieces are made as they are asked for, once."""

    name: str
    pieces: Iterator[bytes]


def document(
    record: Store, key: str, form: str, choice: ExportOptions, view: View = "full"
) -> HtmlDocument | None:
    """Return a conversation in one of `FORMATS`, its secrets as `choice` says; None if there is no such conversation."""
    telling = gathered(record, key, view)
    if telling is None:
        return None
    told = without_secrets(telling, Redactor(home=os.path.expanduser("~"))) if choice.is_redacted else telling
    chosen = FORMATS[form]
    return HtmlDocument(file_name(told.session, chosen.suffix), chosen.pieces()((told,), choice))


def without_secrets(telling: ExportSession, redactor: Redactor) -> ExportSession:
    """Return a conversation without its secrets: what one of its sessions gives away stands in none of them."""
    for session in sessions_of(telling):
        redactor.learn(session)
    return changed(telling, partial(redactor.redacted, is_learned=True))


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


LINE = 200
"""Characters of a prompt."""
_ENDING, _LINES = 400, 4
"""Characters and lines of the last answer."""
_FILES = 8
_LOOKED_AT = 20
"""Messages of the agent that are looked at for words of it: the last ones may have called tools and said nothing."""


def worked(record: Store, card: SessionSummary, quoting: Quoting) -> Iterator[str]:
    """Yield the lines."""
    yield _counts(card)
    first, last = map(one_line, quoting.prompts())
    if first:
        yield f"asked: {first}"
    if last and card.prompts > 1:
        yield f"asked last: {last}"
    if files := names_changed(record, card.key):
        left = len(files) - _FILES
        yield quoting.text(f"changed: {', '.join(files[:_FILES])}{f' and {left} more' if left > 0 else ''}")
    if ending := _ending(record, card, quoting):
        yield f"ended: {ending}"


def _counts(card: SessionSummary) -> str:
    told = [plural(card.prompts, "prompt"), card.status]
    if card.tool_errors:
        told.append(f"{plural(card.tool_errors, 'tool call')} failed")
    if card.subagents:
        told.append(plural(card.subagents, "subagent"))
    return " · ".join((card.agent, *told))


def _ending(record: Store, card: SessionSummary, quoting: Quoting) -> str | None:
    """Return how the last answer begins."""
    for seq in islice(answer_places(record, card.session), _LOOKED_AT):
        for _, entry in quoting.entries(seq, seq + 1):
            if words := _words(entry):
                return words
    return None


def _words(entry: Entry) -> str:
    parts = entry.parts if isinstance(entry, Message) else ()
    said = "\n".join(part.text for part in parts if isinstance(part, Text))[: 4 * _ENDING]
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return cut_text(" / ".join(lines[:_LINES]), _ENDING)


def one_line(text: str | None) -> str:
    """Return a prompt on one line."""
    return cut_text(" ".join((text or "")[: 4 * LINE].split()), LINE)


def cut_text(text: str, length: int) -> str:
    """Return a text that is no longer than it may be."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
