"""Quick find: fuzzy matches in titles and projects while somebody types, merged with matches in texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import islice

import msgspec

from retold.archive.index.reader import open_shared_index
from retold.archive.queries.listing import CONVERSATIONS, title_condition
from retold.archive.store import Store
from retold.model.session import Counts, Kind, Project, SessionStatus, SourceFile, Totals
from retold.projects.matching import fold_name, folder_name, matches_project
from retold.search.engine import Search
from retold.search.filters import Filters
from retold.search.listing import ProjectSummary, list_json, list_projects, match_projects
from retold.search.pages import (
    ResultRow,
    SessionSummary,
    load_result_rows,
    parse_limited,
    select_summaries,
)
from retold.search.query import QuerySyntaxError, is_symbol_query, parse_query
from retold.search.results import MessageHit, SearchResult
from retold.search.scan_job import ResultItem, to_result_item

_BEGINS, _PART, _TYPO, _LETTERS = 5, 4, 2, 1
"""Scores of a word: at the beginning of a word, within one, with a typo, and as letters or initials."""
_LONGEST, _LONGEST_FUZZY = 400, 160
"""Characters of a text that are searched, exactly and for fuzzy matches."""
_MOST_WORDS = 8
_SHORTEST_FUZZY = 4
"""Letters of a word: shorter ones are similar to too many others."""
_NAMES = 2
"""The number of fields that are names: longer texts contain the letters of every word."""
_LONGEST_TYPO = 24
"""Letters of a word in which a typo is searched."""
_STARTS = 8
"""Positions of a text at which letters are searched."""


def split_words(typed: str) -> list[str]:
    """Return the words of a typed text."""
    return fold_text(typed).split()[:_MOST_WORDS]


def fold_text(text: str) -> str:
    """Return the form of a text that is compared."""
    return " ".join(fold_name(text[:_LONGEST]).split())


def score_fields(
    words: Sequence[str], fields: Sequence[str], *, strict: bool = False
) -> tuple[int, int] | None:
    """Return the score of folded fields for words; None if a word is in none of them.

    The first number is the score of the worst word, the second the sum of all, in which the first fields count more.
    With `strict`, only exact matches count.
    """
    worst, together = _BEGINS, 0
    for word in words:
        best, weight = 0, 0
        for place, field in enumerate(fields):
            found = _match_exactly(word, field) or (
                0 if strict else _match_fuzzily(word, field, is_name=place < _NAMES)
            )
            if found > best:
                best, weight = found, found * 4 - place
        if best == 0:
            return None
        worst, together = min(worst, best), together + weight
    return worst, together


def _match_exactly(word: str, text: str) -> int:
    at = text.find(word)
    if at < 0:
        return 0
    return _BEGINS if at == 0 or not text[at - 1].isalnum() or f" {word}" in text else _PART


def _match_fuzzily(word: str, text: str, *, is_name: bool) -> int:
    text = text[:_LONGEST_FUZZY]
    if len(word) >= _SHORTEST_FUZZY and _has_typo(word, text):
        return _TYPO
    if not is_name:
        return 0
    return _LETTERS if (_has_letters if len(word) >= _SHORTEST_FUZZY else _has_initials)(word, text) else 0


def _has_typo(word: str, text: str) -> bool:
    """Return whether a text has a word with one wrong letter or two that are swapped."""
    return _typo_pattern(word[:_LONGEST_TYPO]).search(text) is not None


@lru_cache(maxsize=64)
def _typo_pattern(word: str) -> re.Pattern[str]:
    """Return the pattern of a word with one typo at the beginning of a word.

    The first letter must be right: few people mistype it, and too much would match. Nothing repeats, so the time is bounded.
    """
    first, rest = word[0], word[1:]
    ways = []
    for place in range(len(rest)):
        before, letter, after = rest[:place], rest[place], rest[place + 1 :]
        escaped = [re.escape(part) for part in (before, letter, after, after[:1], after[1:])]
        ways.append(f"{escaped[0]}.{escaped[1]}{escaped[2]}")  # a letter is missing
        ways.append(f"{escaped[0]}{escaped[2]}")  # a letter is too many
        ways.append(f"{escaped[0]}.{escaped[2]}")  # a letter is wrong
        ways.append(f"{escaped[0]}{escaped[3]}{escaped[1]}{escaped[4]}")  # two letters are swapped
    begins = re.escape(first)
    # The letter comes before its lookbehind, because `re` searches for it fast.
    return re.compile(rf"{begins}(?<![^\W_]{begins})(?:{'|'.join(ways)})")


def _has_letters(word: str, text: str) -> bool:
    """Return whether a text has the letters of a word close together and in order: `mgrtn` for migration."""
    at = text.find(word[0])
    for _ in range(_STARTS):
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
    """Return whether consecutive words begin with the letters of a word."""
    return len(word) > 1 and word in "".join(part[0] for part in text.split())


ENOUGH = 50
"""Exact matches from which on no fuzzy matches are searched."""


class SessionCard(msgspec.Struct, frozen=True):
    """A conversation without its timeline."""

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
        """Whether all files of the agent are gone, so that only the archive has it."""
        return bool(self.sources) and all(source.state != "present" for source in self.sources)


class TitleEntry(msgspec.Struct, frozen=True):
    """A conversation and the folded texts in which it is found."""

    card: SessionCard
    fields: tuple[str, ...]


class TitleMatch(msgspec.Struct, frozen=True):
    """A conversation that matches by its title, by its text, or both."""

    card: SessionCard
    has_title_match: bool = True
    hits: tuple[MessageHit, ...] = ()


_CARD = msgspec.json.Decoder(SessionCard)


def load_cards(store: Store, filters: Filters, limit: int | None = None) -> list[TitleEntry]:
    """Return the selected conversations, the newest first."""
    return [_to_entry(_CARD.decode(data)) for data in list_json(store, filters, limit)]


def _to_entry(card: SessionCard) -> TitleEntry:
    project = folder_name(card.project.root) if card.project.root else card.project.native_key
    texts = (card.title, project, card.first_prompt, " ".join((card.agent, *card.tags, *card.models)))
    return TitleEntry(card, tuple(fold_text(text or "") for text in texts))


def match_titles(entries: list[TitleEntry], typed: str) -> tuple[list[TitleMatch], list[TitleMatch]]:
    """Return the conversations with exact matches of all words, and those with fuzzy matches; the best first."""
    words = split_words(typed)
    if not words:
        return [TitleMatch(entry.card) for entry in entries], []
    exact = _match_entries(entries, words, strict=True)
    if len(exact) >= ENOUGH:
        return exact, []
    keys = {match.card.key for match in exact}
    return exact, _match_entries((one for one in entries if one.card.key not in keys), words, strict=False)


def _match_entries(entries: Iterable[TitleEntry], words: Sequence[str], *, strict: bool) -> list[TitleMatch]:
    scores = [(score_fields(words, entry.fields, strict=strict), entry.card) for entry in entries]
    matches = [(score, card) for score, card in scores if score is not None]
    matches.sort(key=lambda pair: pair[0], reverse=True)  # stable: of equals the newest first
    return [TitleMatch(card) for _, card in matches]


def merge_matches(
    by_title: tuple[list[TitleMatch], list[TitleMatch]],
    by_text: list[SearchResult],
    cards: dict[str, SessionCard],
) -> list[TitleMatch]:
    """Return all matches, each conversation once: exact matches of titles, matches of texts, and fuzzy ones of titles."""
    hits = {result.key: tuple(result.hits) for result in by_text}
    exact, fuzzy = (
        [TitleMatch(match.card, hits=hits.get(match.card.key, ())) for match in part] for part in by_title
    )
    keys = {match.card.key for match in exact}
    texts = [
        TitleMatch(cards[key], has_title_match=False, hits=of_key)
        for key, of_key in hits.items()
        if key in cards and key not in keys
    ]
    return [*exact, *texts, *(match for match in fuzzy if match.card.key not in hits)]


BY_TEXT, BY_TITLE, PROJECTS, NEWEST = 6, 4, 3, 8
"""Suggestions of each kind."""
SHORTEST = 2
"""Letters from which on there are suggestions."""
SYMBOL_TIMEOUT = 1.0
"""Seconds for a search for symbols."""


class QuickFind(msgspec.Struct, frozen=True):
    """Suggestions for a text that somebody is typing."""

    by_text: Sequence[ResultRow] = ()
    """Conversations that contain it, each with one hit."""
    by_title: Sequence[SessionSummary] = ()
    """Other conversations with this title."""
    projects: Sequence[ProjectSummary] = ()
    newest: Sequence[SessionSummary] = ()
    """The newest conversations, if nothing was typed yet."""


def quick_find(store: Store, text: str) -> QuickFind:
    """Return suggestions; for an unfinished query with an error, only those by title."""
    if not text:
        return QuickFind(newest=select_summaries(store, CONVERSATIONS, NEWEST))
    if len(text) < SHORTEST:
        return QuickFind()
    try:
        rows = load_result_rows(store, _find_items(store, text))
    except QuerySyntaxError:
        rows = []
    known = {row.summary.session for row in rows}
    titles = select_summaries(store, [*CONVERSATIONS, title_condition(text)], BY_TEXT + BY_TITLE)
    return QuickFind(
        rows,
        [summary for summary in titles if summary.session not in known][:BY_TITLE],
        match_projects(list_projects(store), text)[:PROJECTS],
    )


def _find_items(store: Store, text: str) -> list[ResultItem]:
    """Return the best conversations with all words in one message or, if there are none, with the last word as a prefix."""
    index = open_shared_index(store, matches_project)
    query = parse_limited(text)
    search = Search(store, query, Filters(query.fields), index)
    if not query.terms:
        return []
    search.symbol_timeout = SYMBOL_TIMEOUT
    matches = list(islice(search.find_in_messages(BY_TEXT), BY_TEXT))
    has_words = not query.fields and not is_symbol_query(query)
    has_words = has_words and not any(clause.is_negated for clause in query.clauses)
    if not matches and has_words and text.endswith(query.terms[-1].text):
        query = parse_query(f"{text}*")
        search = Search(store, query, Filters(), index)
        matches = list(islice(search.find_recent(), BY_TEXT))
    items = map(to_result_item, search.load_results(matches))
    return [msgspec.structs.replace(item, hits=item.hits[:1]) for item in items]
