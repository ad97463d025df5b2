"""Parts of a session without secrets, and a summary of it, for the tools for agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice

from msgspec.structs import replace

from retold.archive.queries.listing import load_answer_seqs
from retold.archive.store import Store
from retold.export.text.formatting import plural
from retold.model.session import Entry, Message, Session, Text
from retold.redaction import Redactor
from retold.reports.dashboards import report_changed_names
from retold.search.pages import SessionSummary
from retold.sessions.slices import TimelineSlice, load_slice, load_slices

_ELLIPSIS = "…"


def drop_cut_word(title: str | None) -> str | None:
    """Return a title without the word in which it was cut: half a secret is not recognised as one."""
    if title is None or not title.endswith(_ELLIPSIS):
        return title
    return f"{title.rpartition(' ')[0]} {_ELLIPSIS}".lstrip()


LEARNING_LIMIT = 1 << 20
"""Bytes of files up to which the secrets of a whole session are learned first, so that a secret that is revealed in one
place is removed from all. In a longer session each entry is redacted by itself, so that a part does not cost the whole."""
_FEW = 16
"""Entries that are read at once."""
_LONG = 20_000
"""Characters of a prompt that are redacted if only its beginning is shown; a secret in the beginning ends long before."""


class RedactedSession:
    """A session of which texts and entries are read without secrets, with the same placeholders in all of them."""

    def __init__(self, store: Store, key: str, make_redactor: Callable[[], Redactor] | None) -> None:
        """Take the function that makes redactors; None keeps secrets."""
        self._store, self.key, self._make_redactor = store, key, make_redactor

    @cached_property
    def _part(self) -> TimelineSlice | None:
        return load_slice(self._store, self.key, 0, 0)

    @cached_property
    def session(self) -> Session | None:
        """The session without its timeline and long texts; None if it no longer exists."""
        if self._part is None:
            return None
        session = _without_texts(self._part.session, drop_cut_word(self._part.session.title))
        redactor = self._redactor()
        return session if redactor is None else redactor.redact(session, is_learned=self._learned is not None)

    def first_and_last_prompt(self) -> tuple[str, str]:
        """Return the beginnings of the first and the last prompt; they are empty if there is none."""
        session = self._part and self._part.session
        prompts = (session.first_prompt, session.last_prompt) if session else ("", "")
        first, last = (self.redact_text((text or "")[:_LONG]) for text in prompts)
        return first, last

    @cached_property
    def _learned(self) -> Redactor | None:
        """A redactor that knows all secrets of the session; None if the session is too long."""
        if self._make_redactor is None or self._part is None or self._part.size > LEARNING_LIMIT:
            return None
        redactor = self._make_redactor()
        for part in load_slices(self._store, self.key):
            redactor.learn(part.session)
        return redactor

    def _redactor(self) -> Redactor | None:
        return self._learned or (self._make_redactor and self._make_redactor())

    def entries(self, first: int = 0, end: int | None = None) -> Iterator[tuple[int, Entry]]:
        """Yield the entries from `first` to before `end`, each with its place in the timeline."""
        for part in load_slices(self._store, self.key, _FEW, first):
            for seq, entry in enumerate(part.session.timeline, part.first):
                if end is not None and seq >= end:
                    return
                yield seq, self.redact_entry(entry)

    def redact_text(self, text: str) -> str:
        """Return a text of the session without secrets."""
        redactor = self._redactor()
        return text if redactor is None else redactor.redact_text(text)

    def redact_entry(self, entry: Entry) -> Entry:
        """Return an entry without secrets."""
        redactor = self._redactor()
        if redactor is None or self._part is None:
            return entry
        session = replace(_without_texts(self._part.session), timeline=(entry,))
        return redactor.redact(session, is_learned=self._learned is not None).timeline[0]


def _without_texts(session: Session, title: str | None = None) -> Session:
    bare = replace(session, timeline=(), sources=(), extra={}, title=title)
    return replace(bare, summary=None, first_prompt=None, last_prompt=None)


LINE = 200
"""Characters of a prompt in a summary."""
_ENDING, _LINES = 400, 4
"""Characters and lines of the last answer in a summary."""
_FILES = 8
_ANSWERS = 20
"""Messages that are searched for the last answer with words: the last ones may have only tool calls."""


def work_summary(store: Store, card: SessionSummary, redacted: RedactedSession) -> Iterator[str]:
    """Yield the facts of a session, its first and last prompt, the files that it changed, and its last answer."""
    yield _counts(card)
    first, last = map(prompt_line, redacted.first_and_last_prompt())
    if first:
        yield f"asked: {first}"
    if last and card.prompts > 1:
        yield f"asked last: {last}"
    if files := report_changed_names(store, card.key):
        left = len(files) - _FILES
        yield redacted.redact_text(
            f"changed: {', '.join(files[:_FILES])}{f' and {left} more' if left > 0 else ''}"
        )
    if ending := _ending(store, card, redacted):
        yield f"ended: {ending}"


def _counts(card: SessionSummary) -> str:
    facts = [card.agent, plural(card.prompts, "prompt"), card.status]
    if card.tool_errors:
        facts.append(f"{plural(card.tool_errors, 'tool call')} failed")
    if card.subagents:
        facts.append(plural(card.subagents, "subagent"))
    return " · ".join(facts)


def _ending(store: Store, card: SessionSummary, redacted: RedactedSession) -> str | None:
    """Return the beginning of the last answer that has words."""
    for seq in islice(load_answer_seqs(store, card.session), _ANSWERS):
        for _, entry in redacted.entries(seq, seq + 1):
            if words := _first_words(entry):
                return words
    return None


def _first_words(entry: Entry) -> str:
    parts = entry.parts if isinstance(entry, Message) else ()
    text = "\n".join(part.text for part in parts if isinstance(part, Text))[: 4 * _ENDING]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return clip_text(" / ".join(lines[:_LINES]), _ENDING)


def prompt_line(text: str | None) -> str:
    """Return a prompt on one line, cut if it is long."""
    return clip_text(" ".join((text or "")[: 4 * LINE].split()), LINE)


def clip_text(text: str, length: int) -> str:
    """Return a text of at most `length` characters."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
