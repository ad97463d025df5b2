"""Conversations as a browser lists them: what can be told of each without reading it, and found by its name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

import msgspec

from retold.archive.store import Store
from retold.model.session import Counts, Kind, Project, SessionStatus, SourceFile
from retold.model.usage import Totals
from retold.projects.matching import last_name
from retold.query.fuzzy import closeness, folded, words_of
from retold.query.hits import MessageHit, SearchResult
from retold.query.listing import outlines
from retold.query.wanted import Filters

ENOUGH = 50
"""Where so many have the words as they were typed, nobody looks for those that only come close."""


class SessionCard(msgspec.Struct, frozen=True):
    """A conversation without what was said in it."""

    key: str
    agent: str
    native_id: str | None
    kind: Kind
    project: Project
    title: str | None
    first_prompt: str | None
    tags: tuple[str, ...]
    started_at: str | None
    ended_at: str | None
    status: SessionStatus
    models: tuple[str, ...]
    children: tuple[str, ...]
    counts: Counts
    usage: Totals
    cost_usd: Decimal | None
    sources: tuple[SourceFile, ...]

    @property
    def is_lost(self) -> bool:
        """Whether the agent has nothing of it any more: the archive alone does."""
        return bool(self.sources) and all(source.state != "present" for source in self.sources)


class Named(msgspec.Struct, frozen=True):
    """A conversation, and the words by which it is found."""

    card: SessionCard
    fields: tuple[str, ...]


class TitleMatch(msgspec.Struct, frozen=True):
    """A conversation that answers what was typed: by its name, by its text, or both."""

    card: SessionCard
    is_named: bool = True
    hits: tuple[MessageHit, ...] = ()


_CARD = msgspec.json.Decoder(SessionCard)


def cards(record: Store, wanted: Filters, limit: int | None = None) -> list[Named]:
    """Return the conversations that a list shows, the newest first."""
    return [_named(_CARD.decode(outline)) for outline in outlines(record, wanted, limit)]


def _named(card: SessionCard) -> Named:
    project = last_name(card.project.root) if card.project.root else card.project.native_key
    said = (card.title, project, card.first_prompt, " ".join((card.agent, *card.tags, *card.models)))
    return Named(card, tuple(folded(text or "") for text in said))


def by_name(known: list[Named], typed: str) -> tuple[list[TitleMatch], list[TitleMatch]]:
    """Return those whose names have all words as they were typed, and those that come close; the best first."""
    words = words_of(typed)
    if not words:
        return [TitleMatch(one.card) for one in known], []
    sure = _fitting(known, words, strict=True)
    if len(sure) >= ENOUGH:
        return sure, []
    there = {match.card.key for match in sure}
    close = _fitting((one for one in known if one.card.key not in there), words, strict=False)
    return sure, close


def _fitting(known: Iterable[Named], words: Sequence[str], *, strict: bool) -> list[TitleMatch]:
    fits = [(closeness(words, one.fields, strict=strict), one.card) for one in known]
    found = [(fit, card) for fit, card in fits if fit is not None]
    found.sort(key=lambda pair: pair[0], reverse=True)  # stable: of equals the newest first
    return [TitleMatch(card) for _, card in found]


def joined(
    named: tuple[list[TitleMatch], list[TitleMatch]], said: list[SearchResult], known: dict[str, SessionCard]
) -> list[TitleMatch]:
    """Return all that was found, each conversation once: by its name, then by its text, then what only comes close."""
    hits = {one.key: tuple(one.hits) for one in said}
    sure, close = ([TitleMatch(one.card, hits=hits.get(one.card.key, ())) for one in part] for part in named)
    there = {one.card.key for one in sure}
    texts = [
        TitleMatch(known[one.key], is_named=False, hits=tuple(one.hits))
        for one in said
        if one.key in known and one.key not in there
    ]
    return [*sure, *texts, *(one for one in close if one.card.key not in hits)]
