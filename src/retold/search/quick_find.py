"""Words found in short texts though they are typed in haste: a beginning, a part, one slip, or only some of the letters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import islice

import msgspec

from retold.archive.index.reader import kept_index
from retold.archive.queries.listing import titled_like
from retold.archive.store import Store
from retold.model.session import Counts, Kind, Project, SessionStatus, SourceFile
from retold.model.usage import Totals
from retold.projects.matching import is_meant, last_name
from retold.search.engine import Search
from retold.search.filters import Filters
from retold.search.listing import ProjectPlace, called, outlines, places
from retold.search.pages import BASE, ResultRow, SessionSummary, glances, held_rows, short_query
from retold.search.query import QuerySyntaxError, parse
from retold.search.results import MessageHit, SearchResult
from retold.search.scan_job import ResultItem, holding_of
from retold.search.signs import is_of_signs

_BEGINS, _PART, _SLIP, _LETTERS = 5, 4, 2, 1
"""How close a word comes."""
_LONGEST, _SOON = 400, 160
"""How much of a text is looked at, for words and for what comes near them."""
_MOST_WORDS = 8
_SLIPPERY = 4
"""Shorter words are close to too many others."""
_NAMES = 2
"""Fields that are names: in longer texts, some letters of every word stand somewhere."""
_SPELT = 24
"""How many letters of a word are looked at for slips."""
_PLACES = 8
"""At how many places of a text letters are looked for."""


def words_of(typed: str) -> list[str]:
    """Return the words that are looked for."""
    return folded(typed).split()[:_MOST_WORDS]


def folded(text: str) -> str:
    """Return a text as it is compared."""
    return " ".join(text[:_LONGEST].casefold().split())


def closeness(words: Sequence[str], fields: Sequence[str], *, strict: bool = False) -> tuple[int, int] | None:
    """Return how close folded fields come to words, the first field counting most; None if a word is in none of them.

    The first figure is that of the word that fits worst. If it is strict, only words count that stand there as they
    were typed.
    """
    worst, together = _BEGINS, 0
    for word in words:
        best, weight = 0, 0
        for place, field in enumerate(fields):
            found = _standing(word, field) or (
                0 if strict else _near_enough(word, field, is_name=place < _NAMES)
            )
            if found > best:
                best, weight = found, found * 4 - place
        if best == 0:
            return None
        worst, together = min(worst, best), together + weight
    return worst, together


def _standing(word: str, text: str) -> int:
    at = text.find(word)
    if at < 0:
        return 0
    return _BEGINS if at == 0 or not text[at - 1].isalnum() or f" {word}" in text else _PART


def _near_enough(word: str, text: str, *, is_name: bool) -> int:
    text = text[:_SOON]
    if len(word) >= _SLIPPERY and _has_slip(word, text):
        return _SLIP
    if not is_name:
        return 0
    return _LETTERS if (_has_letters if len(word) >= _SLIPPERY else _has_initials)(word, text) else 0


def _has_slip(word: str, text: str) -> bool:
    """Tell whether the text has the word but for one letter, or two that changed places."""
    return _slips(word[:_SPELT]).search(text) is not None


@lru_cache(maxsize=64)
def _slips(word: str) -> re.Pattern[str]:
    """Return what finds a word with one slip at the beginning of another.

    Not in its first letter: hardly anybody mistypes that, and too much would fit. Nothing repeats, so that the work is bounded.
    """
    first, rest = word[0], word[1:]
    ways = []
    for place in range(len(rest)):
        before, letter, after = rest[:place], rest[place], rest[place + 1 :]
        escaped = [re.escape(part) for part in (before, letter, after, after[:1], after[1:])]
        ways.append(f"{escaped[0]}.{escaped[1]}{escaped[2]}")  # one was left out
        ways.append(f"{escaped[0]}{escaped[2]}")  # one is too many
        ways.append(f"{escaped[0]}.{escaped[2]}")  # one is another
        ways.append(f"{escaped[0]}{escaped[3]}{escaped[1]}{escaped[4]}")  # two changed places
    begins = re.escape(first)
    # The letter before the look behind it: so places are found fast.
    return re.compile(rf"{begins}(?<![^\W_]{begins})(?:{'|'.join(ways)})")


def _has_letters(word: str, text: str) -> bool:
    """Tell whether the letters of a word stand close together in their order, as in `mgrtn` for migration."""
    at = text.find(word[0])
    for _ in range(_PLACES):
        if at < 0:
            return False
        end = _end(word, text, at)
        if end < 0:
            return False
        if end - at < 2 * len(word) and (at == 0 or not text[at - 1].isalnum()):
            return True
        at = text.find(word[0], at + 1)
    return False


def _end(word: str, text: str, start: int) -> int:
    place = start
    for letter in word[1:]:
        place = text.find(letter, place + 1)
        if place < 0:
            return -1
    return place


def _has_initials(word: str, text: str) -> bool:
    """Tell whether words that follow each other begin with these letters."""
    return len(word) > 1 and word in "".join(part[0] for part in text.split())


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


SAID, TITLED, PROJECTS, NEWEST = 6, 4, 3, 8
SHORTEST = 2
"""Letters that say something."""
PATIENCE = 1.0
"""Seconds that a search for signs may take."""


class QuickFind(msgspec.Struct, frozen=True):
    """What is offered."""

    said: Sequence[ResultRow] = ()
    """Conversations in which it was said, each with one place."""
    titled: Sequence[SessionSummary] = ()
    """Others that are called so."""
    projects: Sequence[ProjectPlace] = ()
    newest: Sequence[SessionSummary] = ()
    """Where nothing was typed yet."""


def leap(record: Store, text: str) -> QuickFind:
    """Return what is offered for what was typed so far; a query that means nothing yet finds no words, only titles."""
    if not text:
        return QuickFind(newest=glances(record, BASE, NEWEST))
    if len(text) < SHORTEST:
        return QuickFind()
    try:
        said = held_rows(record, _said(record, text))
    except QuerySyntaxError:
        said = []
    known = {row.card.session for row in said}
    named = glances(record, [*BASE, titled_like(text)], SAID + TITLED)
    return QuickFind(
        said,
        [card for card in named if card.session not in known][:TITLED],
        called(places(record), text)[:PROJECTS],
    )


def _said(record: Store, text: str) -> list[ResultItem]:
    """Return the best conversations with all words in one message, or else those with words that begin so."""
    index = kept_index(record, is_meant)
    query = short_query(text)
    search = Search(record, query, Filters(query.fields), index)
    if not query.terms:
        return []
    search.patience = PATIENCE
    found = list(islice(search.near(SAID), SAID))
    is_word = not query.fields and not is_of_signs(query) and all(not one.is_negated for one in query.clauses)
    if not found and is_word and text.endswith(query.terms[-1].text):
        query = parse(f"{text}*")
        search = Search(record, query, Filters(), index)
        found = list(islice(search.latest(), SAID))
    return [
        msgspec.structs.replace(one, places=one.places[:1]) for one in map(holding_of, search.told(found))
    ]
