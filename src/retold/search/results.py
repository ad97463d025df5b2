"""What a search gives: conversations, and the places in them where it is said."""

from __future__ import annotations

import re
import time
from itertools import pairwise, takewhile

from retold.archive.index.tokenizer import (
    ACCENTS,
    LONGEST_NAME,
    PICTURES,
    atoms,
    fold,
    is_dense,
    is_letter,
    is_picture,
    leveled,
    normal,
    part_spans,
)
from retold.archive.queries.listing import heading_row, message_row, tool_of
from retold.search.candidates import DocumentMatch
from retold.search.normal_text import NormalText

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from retold.archive.index.reader import IndexHit
    from retold.archive.store import Store
    from retold.search.query import Query, Term

    Shown = tuple[str, list[tuple[int, int]]]
    """A snippet, and where in it the words stand."""

    Clean = Callable[[str], str]
    """Takes out of a text what nobody should see."""


HITS = 3
"""How many places of a conversation are shown."""


class MessageHit:
    """A place where it is said."""

    __slots__ = ("at", "fate", "matches", "message", "role", "seq", "snippet", "tool")

    def __init__(self, message: Sequence[Any], tool: str | None, shown: Shown, seq: int) -> None:
        self.message, self.role, self.fate, self.at = message
        self.tool = tool
        self.seq = seq
        """The place in the timeline of the full view."""
        self.snippet, self.matches = shown


class SearchResult:
    """A session with its hits."""

    __slots__ = ("ended_at", "hits", "key", "project", "score", "session", "title")

    def __init__(self, session: int, row: Sequence[Any], score: float, hits: list[MessageHit]) -> None:
        self.session, self.score, self.hits = session, score, hits
        self.key, self.title, root, native_key, project_hash, evidence, self.ended_at = row
        self.project = {"root": root, "native_key": native_key, "hash": project_hash, "evidence": evidence}


def conversation_of(record: Store, session: int, score: float, hits: list[MessageHit]) -> SearchResult | None:
    """Return a session with its hits; None if it has gone meanwhile."""
    row = heading_row(record, session)
    return None if row is None else SearchResult(session, row, score, hits)


def hit_of(record: Store, found: IndexHit, shown: Shown) -> MessageHit:
    """Return a place where it is said, with who said it and what became of it."""
    row = message_row(record, found.session, found.seq)
    message = (None, None, "live", None) if row is None else (*row[:3], as_time(row[3]))
    tool = None if found.place is None else tool_of(record, found.session, found.seq, found.place)
    return MessageHit(message, tool, shown, found.seq)


def as_time(micros: int | None) -> str | None:
    """Return a time as ISO 8601 in UTC, from microseconds since 1970."""
    if micros is None:
        return None
    seconds, rest = divmod(micros, 1_000_000)
    told = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{told}.{rest // 1000:03}Z" if rest % 1000 == 0 else f"{told}.{rest:06}Z"


SECOND = 0.1
"""What further documents of a conversation add to the score of its best."""
COUNTED = 3
"""Documents of a session that count."""
LESS = 0.5
"""Factor for matches in outputs, in parts of names, or spread over messages."""


def session_score(scores: Sequence[float]) -> float:
    """Return what a session is worth whose documents have these scores, the best first."""
    return scores[0] + SECOND * sum(scores[1:COUNTED])


def chained(tiers: Iterable[Iterator[DocumentMatch]]) -> Iterator[DocumentMatch]:
    """Yield the matches of each tier behind those of the tiers before it, each session once; the best score is 1.

    What a tier finds weighs less than all that the tiers before it found.
    """
    known: set[int] = set()
    above = weakest = 1.0
    for tier in tiers:
        best = 0.0
        for match in tier:
            if match.session not in known:
                known.add(match.session)
                best = best or match.score
                weakest = above * match.score / best
                yield DocumentMatch(match.session, weakest, match.ended_at, match.docs)
        above = weakest * LESS if known else 1.0


WIDTH = 160
"""How many characters of a text are shown."""
_MOST_MARKS = 1_000
_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NAME = _CAPITALS + _CAPITALS.lower() + "0123456789"
_SPACES = re.compile(r"\s+")
_NEXT_WORD = re.compile(r"(\s*)(\S+)")
_GAP = rf"(?:_|[^\w{PICTURES}])"
"""What may stand between two words of a phrase."""
_FAR = 8
"""How many times the width is looked back for words, where a text has mostly spaces."""


class _Page:
    """A text in its normal form, and the same without case and accents in which it is searched."""

    __slots__ = ("has_accents", "level", "text", "whole")

    def __init__(self, text: str) -> None:
        self.whole = NormalText(text)
        text = self.text = self.whole.normal
        self.level = leveled(text)
        self.has_accents = not text.isascii() and any([accent in text for accent in ACCENTS])


def marks(text: str, query: Query) -> list[tuple[int, int]]:
    """Return where the terms of a query stand in a text, from first to last; of each term at most 1,000."""
    page = _Page(text)
    found = [page.whole.place(*place) for term in _meant(query) for place in _places(term, page)]
    return _merged(sorted(found))


def satisfies(text: str, query: Query) -> bool:
    """Tell whether a text has what the clauses of a query ask for, phrases as phrases, and nothing they exclude."""
    page = _Page(text)
    meant = set(_meant(query))
    for clause in query.clauses:
        terms = [
            term for term in clause.alternatives if term in meant or (clause.is_negated and atoms(term.text))
        ]
        occurs = any(next(_places(term, page), None) is not None for term in terms)
        if terms and occurs == clause.is_negated:
            return False
    return True


def snippet(
    text: str, found: Sequence[tuple[int, int]], width: int = WIDTH
) -> tuple[str, list[tuple[int, int]]]:
    """Return one line of a text around as many different marks as fit, and where they stand in it."""
    shown = _trimmed(text, found)
    first, last = densest(text, shown, width)
    if _length(text[first:last]) > width:
        last = _reach(text, first, width)
    room = width - _length(text[first:last])
    nearby = _reach(text, last, room // 2)
    start = first - _reach_back(text, first, room - _length(text[last:nearby]))
    end = _reach(text, last, room - _length(text[start:first]))
    return _line(text, start, end, shown)


def _meant(query: Query) -> Sequence[Term]:
    """Return the terms that have words; signs are looked for only where there is nothing else, as in the index."""
    return [term for term in query.terms if atoms(term.text)] or query.terms


def _places(term: Term, page: _Page) -> Iterator[tuple[int, int]]:
    """Yield where a term stands."""
    words = atoms(term.text)
    pattern = re.compile(_pattern(words, page) if words else re.escape(leveled(normal(term.text))))
    place = count = 0
    while count < _MOST_MARKS and (found := pattern.search(page.level, place)):
        start, end = found.span()
        if words and not _is_whole(found, words, term, page.text):
            place = start + 1
            continue
        if term.kind == "prefix":
            end = _word_end(page.text, end)
        yield start, end
        place, count = end, count + 1


def _pattern(words: Sequence[str], page: _Page) -> str:
    """Return the words one after the other, with a group for what is between two."""
    accents = f"[{ACCENTS}]*+" if page.has_accents else ""  # a gap may begin with one, too
    escaped = [re.escape(word) if is_dense(word[0]) else accents.join([*fold(word), ""]) for word in words]
    # Two runs of dense script without anything between them would be one.
    gaps = [
        f"({_GAP}+)" if is_dense(left[0]) and is_dense(right[0]) else f"({_GAP}*)"
        for left, right in pairwise(words)
    ]
    return "".join([piece for pair in zip(escaped, [*gaps, ""], strict=True) for piece in pair])


def _is_whole(found: re.Match[str], words: Sequence[str], term: Term, text: str) -> bool:
    """Tell whether words were found that are words there too, and not pieces of others."""
    if not _begins(text, found.start()):
        return False
    joints = [found.start(group) for group in range(1, len(words)) if not found[group]]
    is_open = term.kind == "prefix" or is_dense(words[-1][0])
    return (is_open or _ends(text, found.end())) and all([_begins(text, joint) for joint in joints])


def _begins(text: str, place: int) -> bool:
    """Tell whether a word, or a part of a name, begins at a place."""
    if place == 0 or not is_letter(text[place - 1]) or is_dense(text[place]) or is_picture(text[place]):
        return True
    if text[place] in _CAPITALS and place in [start for start, _ in _parts_around(text, place)]:
        return True
    if text[place - 1] not in ACCENTS:
        return False
    before = text[max(0, place - LONGEST_NAME) : place].rstrip(ACCENTS)
    return not before or not is_letter(before[-1])


def _ends(text: str, place: int) -> bool:
    """Tell whether a word, or a part of a name, ends at a place."""
    if place == len(text) or not is_letter(text[place]) or is_picture(text[place - 1]):
        return True
    return text[place] in _NAME and place in [end for _, end in _parts_around(text, place)]


def _parts_around(text: str, place: int) -> Iterator[tuple[int, int]]:
    """Yield where the parts of the name stand that surrounds a place."""
    before = text[max(0, place - LONGEST_NAME - 1) : place]
    after = text[place : place + LONGEST_NAME + 1]
    start = place - len(before) + len(before.rstrip(_NAME))
    end = place + len(after) - len(after.lstrip(_NAME))
    return ((start + first, start + last) for first, last in part_spans(text[start:end]))


def _word_end(text: str, place: int) -> int:
    while place < len(text) and is_letter(text[place]):
        place += 1
    return place


def _merged(places: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges in which those that overlap are one."""
    merged: list[tuple[int, int]] = []
    for start, end in places:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _trimmed(text: str, found: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the marks without the spaces at their ends."""
    trimmed = []
    for start, end in found:
        marked = text[start:end]
        if stripped := marked.strip():
            begin = start + marked.index(stripped[0])
            trimmed.append((begin, begin + len(stripped)))
    return trimmed


def densest(text: str, found: Sequence[tuple[int, int]], width: int = WIDTH) -> tuple[int, int]:
    """Return the range, no wider than asked for, in which most different marks are; without any, the text's begin."""
    if not found:
        begin = len(text) - len(text.lstrip())
        return begin, begin
    words = [leveled(text[start:end]) for start, end in found]
    left, right = max(
        _windows(found, width),
        key=lambda window: (len(set(words[window[0] : window[1] + 1])), window[1] - window[0]),
    )
    return found[left][0], found[right][1]


def _windows(found: Sequence[tuple[int, int]], width: int) -> Iterator[tuple[int, int]]:
    """Yield for each mark the first and the last of those that fit together with it as the last."""
    left = 0
    for right, (_, end) in enumerate(found):
        while left < right and end - found[left][0] > width:
            left += 1
        yield left, right


def _reach(text: str, place: int, room: int) -> int:
    """Return the end of the last word that has room behind a place; a word that begins before it may be cut."""
    end = place
    while word := _NEXT_WORD.match(text, end):
        length = bool(word[1]) + len(word[2])
        if length > room:
            return end + room if end == place and not word[1] else end
        end, room = word.end(), room - length
    return end


def _reach_back(text: str, place: int, room: int) -> int:
    """Return how many characters before a place have room."""
    return _reach(text[max(0, place - _FAR * room) : place][::-1], 0, room)


def _length(text: str) -> int:
    return len(_SPACES.sub(" ", text))


def _line(
    text: str, start: int, end: int, found: Sequence[tuple[int, int]]
) -> tuple[str, list[tuple[int, int]]]:
    """Return a piece of a text in one line, and where the marks are in it."""
    line = "…" if text[:start].strip() else ""
    ranges = []
    place = start
    for first, last in found:
        if first < end and last > start:
            line += _SPACES.sub(" ", text[place : max(first, start)])
            place = min(last, end)
            marked = _SPACES.sub(" ", text[max(first, start) : place])
            ranges.append((len(line), len(line) + len(marked)))
            line += marked
    line += _SPACES.sub(" ", text[place:end])
    return line + ("…" if text[end:].strip() else ""), ranges


AROUND = 4_096
"""Characters on either side that are cleaned with a place: a key that begins before it is known as a whole."""
_EDGE = 2_048
"""Of those, as many are not shown where the text was cut: they may be the rest of something that was to go."""


def telling_text(found: IndexHit, query: Query) -> tuple[str, list[tuple[int, int]]]:
    """Return the text of a document in which most of what was asked for stands, and where it stands."""
    best: tuple[str, list[tuple[int, int]]] = ("", [])
    most = -1
    for text in found.texts():
        places = marks(text, query)
        count = len({text[start:end].casefold() for start, end in places})
        if count > most:
            best, most = (text, places), count
        if count >= len(query.terms):
            break
    return best


def shown(text: str, places: Sequence[tuple[int, int]], query: Query, clean: Clean | None) -> Shown:
    """Return one line of a text around places in it, and where in the line the query stands."""
    if clean is None:
        return snippet(text, places)
    safe = surroundings(text, places, clean)
    return snippet(safe, marks(safe, query))


def surroundings(text: str, places: Sequence[tuple[int, int]], clean: Clean) -> str:
    """Return the text around places in it as it may be shown."""
    first, last = densest(text, places)
    start, end = max(0, first - AROUND), min(len(text), last + AROUND)
    around = text[start:end]
    cleaned = clean(around)
    begin = _raw(around, cleaned) if start else 0
    behind = _raw(around[::-1], cleaned[::-1]) if end < len(text) else 0
    return cleaned[begin : max(begin, len(cleaned) - behind)]


def _raw(around: str, cleaned: str) -> int:
    """Return how much of the begin of a cleaned text is not shown: all that is too near, or up to what was taken out."""
    pairs = zip(around[:_EDGE], cleaned, strict=False)
    return sum([1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)])
