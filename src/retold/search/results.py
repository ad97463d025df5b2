"""Results of a search: sessions with their hits, and the snippets and highlights of a hit."""

from __future__ import annotations

import time
from itertools import accumulate, pairwise, takewhile

from retold.archive.index.tokenizer import (
    ACCENTS,
    LONGEST_NAME,
    PICTURES,
    find_part_spans,
    fold,
    is_dense,
    is_joined,
    is_letter,
    is_picture,
    level,
    normalize,
    split_runs,
)
from retold.archive.queries.listing import load_heading_row, load_message_row, load_tool_name

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from retold.archive.index.reader import IndexHit
    from retold.archive.store import Store
    from retold.search.query import Query, Term

    Range = tuple[int, int]
    """The start and the end of a part of a text."""
    Snippet = tuple[str, list[Range]]
    """One line of a text, and the highlights in it."""
    Clean = Callable[[str], str]
    """Removes secrets from a text."""
    TermMatch = tuple[int, int, Sequence[int]]
    """Start and end of a term in a text, and the starts of words that follow another without a gap."""


_RUN = r"[^\x00-\x7f]+"


class NormalText:
    """The normal form of a text, which maps its ranges to ranges of the text."""

    __slots__ = ("_pieces", "_text", "normal")

    def __init__(self, text: str) -> None:
        self._text, self.normal = text, normalize(text)
        self._pieces: list[tuple[int, int, int, int]] = []
        """Start and end of each piece, in the normal form and in the text; set when they are needed."""

    def _split(self) -> None:
        pieces = list(_pieces(self._text))
        forms = [normalize(piece) for piece in pieces]
        if "".join(forms) != self.normal:  # pieces were combined, so that only the whole text can be mapped
            pieces, forms = [self._text], [self.normal]
        ends = zip(accumulate(map(len, forms)), accumulate(map(len, pieces)), strict=True)
        self._pieces = [
            (end - len(form), end, text_end - len(piece), text_end)
            for form, piece, (end, text_end) in zip(forms, pieces, ends, strict=True)
        ]

    def original_range(self, start: int, end: int) -> Range:
        """Return the range of the text for a range of the normal form; a character that became several stays whole."""
        if self.normal == self._text:
            return start, end
        if not self._pieces:
            self._split()
        first, last = self._piece_at(start), self._piece_at(end - 1)
        return self._original(first, start, is_end=False), self._original(last, end, is_end=True)

    def _piece_at(self, index: int) -> tuple[int, int, int, int]:
        from bisect import bisect_right

        return self._pieces[bisect_right(self._pieces, index, key=lambda piece: piece[0]) - 1]

    @staticmethod
    def _original(piece: tuple[int, int, int, int], index: int, *, is_end: bool) -> int:
        start, end, text_start, text_end = piece
        if end - start == text_end - text_start:
            return text_start + index - start
        return text_end if is_end else text_start


def _pieces(text: str) -> Iterator[str]:
    """Yield the pieces of a text that are normalised independently: ASCII, and each other character with its marks."""
    import re

    done = 0
    for run in re.finditer(_RUN, text):
        start = run.start()
        if start > done and is_joined(text[start]):
            start -= 1
        if start > done:
            yield text[done:start]
        done = start
        for index in range(start + 1, run.end()):
            if not is_joined(text[index]):
                yield text[done:index]
                done = index
        yield text[done : run.end()]
        done = run.end()
    if done < len(text):
        yield text[done:]


HITS_PER_RESULT = 3
"""Hits of a session that are shown at most."""


class MessageHit:
    """A message or tool output that matches, with its snippet."""

    __slots__ = ("at", "fate", "matches", "message", "role", "seq", "snippet", "tool")

    def __init__(self, message: Sequence[Any], tool: str | None, snippet: Snippet, seq: int) -> None:
        self.message, self.role, self.fate, self.at = message
        self.tool = tool
        self.seq = seq
        """The index in the timeline of the full view."""
        self.snippet, self.matches = snippet


class SearchResult:
    """A session with its hits."""

    __slots__ = ("ended_at", "hits", "key", "project", "score", "session", "title")

    def __init__(self, session: int, row: Sequence[Any], score: float, hits: list[MessageHit]) -> None:
        self.session, self.score, self.hits = session, score, hits
        self.key, self.title, root, native_key, project_hash, evidence, self.ended_at = row
        self.project = {"root": root, "native_key": native_key, "hash": project_hash, "evidence": evidence}


def load_result(store: Store, session: int, score: float, hits: list[MessageHit]) -> SearchResult | None:
    """Return a session with its hits; None if it is gone from the archive."""
    row = load_heading_row(store, session)
    return None if row is None else SearchResult(session, row, score, hits)


def load_hit(store: Store, hit: IndexHit, snippet: Snippet) -> MessageHit:
    """Return a hit with the role, fate and time of its message, or the name of its tool."""
    row = load_message_row(store, hit.session, hit.seq)
    message = (None, None, "live", None) if row is None else (*row[:3], format_micros(row[3]))
    tool = None if hit.position is None else load_tool_name(store, hit.session, hit.seq, hit.position)
    return MessageHit(message, tool, snippet, hit.seq)


def format_micros(micros: int | None) -> str | None:
    """Return a time as ISO 8601 in UTC, from microseconds since 1970."""
    if micros is None:
        return None
    seconds, rest = divmod(micros, 1_000_000)
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{at}.{rest // 1000:03}Z" if rest % 1000 == 0 else f"{at}.{rest:06}Z"


WIDTH = 160
"""Characters of a snippet."""
_MOST_HIGHLIGHTS = 1_000
"""Highlights of each term in a text."""
_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NAME = _CAPITALS + _CAPITALS.lower() + "0123456789"
_GAP = rf"(?:_|[^\w{PICTURES}])"
"""A character between two words of a phrase."""
_FAR = 8
"""How many times the width is searched backwards for words, in a text of mostly spaces."""


class _SearchText:
    """A text in its normal form, and without case and accents, in which terms are searched."""

    __slots__ = ("form", "has_accents", "level", "text")

    def __init__(self, text: str) -> None:
        self.form = NormalText(text)
        text = self.text = self.form.normal
        self.level = level(text)
        self.has_accents = not text.isascii() and any([accent in text for accent in ACCENTS])


def find_highlights(text: str, query: Query) -> list[Range]:
    """Return the ranges of a text that the terms of a query match, in order."""
    searched = _SearchText(text)
    ranges = [
        searched.form.original_range(*found)
        for term in _searched_terms(query)
        for found in _occurrences(term, searched)
    ]
    return _merge_overlaps(sorted(ranges))


def matches_query(text: str, query: Query) -> bool:
    """Return whether a text matches all clauses of a query, phrases as phrases, and nothing that they exclude."""
    searched = _SearchText(text)
    searched_terms = set(_searched_terms(query))
    for clause in query.clauses:
        terms = [
            term
            for term in clause.alternatives
            if term in searched_terms or (clause.is_negated and split_runs(term.text))
        ]
        occurs = any(next(_occurrences(term, searched), None) is not None for term in terms)
        if terms and occurs == clause.is_negated:
            return False
    return True


def make_snippet(text: str, highlights: Sequence[Range], width: int = WIDTH) -> Snippet:
    """Return one line of a text around as many different highlights as fit."""
    highlights = _trim_spaces(text, highlights)
    first, last = densest_range(text, highlights, width)
    if _length(text[first:last]) > width:
        last = _reach(text, first, width)
    room = width - _length(text[first:last])
    nearby = _reach(text, last, room // 2)
    start = first - _reach_back(text, first, room - _length(text[last:nearby]))
    end = _reach(text, last, room - _length(text[start:first]))
    return _join_line(text, start, end, highlights)


def _searched_terms(query: Query) -> Sequence[Term]:
    """Return the terms with words; only if there are none, those of symbols, as in the index."""
    return [term for term in query.terms if split_runs(term.text)] or query.terms


def _occurrences(term: Term, searched: _SearchText) -> Iterator[Range]:
    """Yield the ranges of a term in the normal form of a text."""
    words = split_runs(term.text)
    find = _phrase_finder(words, searched) if words else _text_finder(level(normalize(term.text)), searched)
    index = count = 0
    while count < _MOST_HIGHLIGHTS and (match := find(index)):
        start, end, _ = match
        if words and not _is_whole(match, words, term, searched.text):
            index = start + 1
            continue
        if term.kind == "prefix":
            end = _word_end(searched.text, end)
        yield start, end
        index, count = end, count + 1


def _text_finder(text: str, searched: _SearchText) -> Callable[[int], TermMatch | None]:
    """Return the function that finds a text from an index on."""

    def find(index: int) -> TermMatch | None:
        start = searched.level.find(text, index)
        return None if start < 0 else (start, start + len(text), ())

    return find


def _phrase_finder(words: Sequence[str], searched: _SearchText) -> Callable[[int], TermMatch | None]:
    """Return the function that finds words in sequence from an index on; a single word needs no pattern."""
    if len(words) == 1 and not searched.has_accents:
        return _text_finder(words[0] if is_dense(words[0][0]) else fold(words[0]), searched)
    import re

    pattern = re.compile(_pattern(words, searched))

    def find(index: int) -> TermMatch | None:
        match = pattern.search(searched.level, index)
        if match is None:
            return None
        return *match.span(), [match.start(group) for group in range(1, len(words)) if not match[group]]

    return find


def _pattern(words: Sequence[str], searched: _SearchText) -> str:
    """Return a pattern of words in sequence, with a group for the gap between two."""
    import re

    accents = f"[{ACCENTS}]*+" if searched.has_accents else ""  # a gap may begin with one, too
    escaped = [re.escape(word) if is_dense(word[0]) else accents.join([*fold(word), ""]) for word in words]
    # Two runs of dense script without a gap would be one run.
    gaps = [
        f"({_GAP}+)" if is_dense(left[0]) and is_dense(right[0]) else f"({_GAP}*)"
        for left, right in pairwise(words)
    ]
    return "".join([piece for pair in zip(escaped, [*gaps, ""], strict=True) for piece in pair])


def _is_whole(match: TermMatch, words: Sequence[str], term: Term, text: str) -> bool:
    """Return whether a match consists of whole words, and not of pieces of others."""
    start, end, joints = match
    if not _begins(text, start):
        return False
    is_open = term.kind == "prefix" or is_dense(words[-1][0])
    return (is_open or _ends(text, end)) and all([_begins(text, joint) for joint in joints])


def _begins(text: str, index: int) -> bool:
    """Return whether a word, or a part of a name, begins at an index."""
    if index == 0 or not is_letter(text[index - 1]) or is_dense(text[index]) or is_picture(text[index]):
        return True
    if text[index] in _CAPITALS and index in [start for start, _ in _parts_around(text, index)]:
        return True
    if text[index - 1] not in ACCENTS:
        return False
    before = text[max(0, index - LONGEST_NAME) : index].rstrip(ACCENTS)
    return not before or not is_letter(before[-1])


def _ends(text: str, index: int) -> bool:
    """Return whether a word, or a part of a name, ends at an index."""
    if index == len(text) or not is_letter(text[index]) or is_picture(text[index - 1]):
        return True
    return text[index] in _NAME and index in [end for _, end in _parts_around(text, index)]


def _parts_around(text: str, index: int) -> Iterator[Range]:
    """Yield the ranges of the parts of the name around an index."""
    before = text[max(0, index - LONGEST_NAME - 1) : index]
    after = text[index : index + LONGEST_NAME + 1]
    start = index - len(before) + len(before.rstrip(_NAME))
    end = index + len(after) - len(after.lstrip(_NAME))
    return ((start + first, start + last) for first, last in find_part_spans(text[start:end]))


def _word_end(text: str, index: int) -> int:
    while index < len(text) and is_letter(text[index]):
        index += 1
    return index


def _merge_overlaps(ranges: Iterable[Range]) -> list[Range]:
    merged: list[Range] = []
    for start, end in ranges:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _trim_spaces(text: str, highlights: Sequence[Range]) -> list[Range]:
    """Return highlights without the spaces at their ends."""
    trimmed = []
    for start, end in highlights:
        words = text[start:end]
        if stripped := words.strip():
            first = start + words.index(stripped[0])
            trimmed.append((first, first + len(stripped)))
    return trimmed


def densest_range(text: str, highlights: Sequence[Range], width: int = WIDTH) -> Range:
    """Return the range of at most `width` with most different highlights; without any, the begin of the text."""
    if not highlights:
        start = len(text) - len(text.lstrip())
        return start, start
    words = [level(text[start:end]) for start, end in highlights]
    left, right = max(
        _windows(highlights, width),
        key=lambda window: (len(set(words[window[0] : window[1] + 1])), window[1] - window[0]),
    )
    return highlights[left][0], highlights[right][1]


def _windows(highlights: Sequence[Range], width: int) -> Iterator[Range]:
    """Yield for each highlight, as the last one, the indexes of the first and the last that fit into the width."""
    left = 0
    for right, (_, end) in enumerate(highlights):
        while left < right and end - highlights[left][0] > width:
            left += 1
        yield left, right


def _reach(text: str, start: int, room: int) -> int:
    """Return the end of the last word that fits into the room after `start`; a word that begins before it may be cut."""
    end, most = start, max(room, 0) + 1
    for word in text[start:].split(None, most)[:most]:
        begin = text.index(word, end)
        length = (begin > end) + len(word)
        if length > room:
            return end + room if begin == start else end
        end, room = begin + len(word), room - length
    return end


def _reach_back(text: str, end: int, room: int) -> int:
    """Return the number of characters before `end` that fit into the room."""
    return _reach(text[max(0, end - _FAR * room) : end][::-1], 0, room)


def _length(text: str) -> int:
    return len(_join_spaces(text))


def _join_spaces(text: str) -> str:
    """Return a text with one space in place of several, and of line ends."""
    words = " ".join(text.split())
    if not words:
        return " " if text else ""
    return f"{' ' if text[0].isspace() else ''}{words}{' ' if text[-1].isspace() else ''}"


def _join_line(text: str, start: int, end: int, highlights: Sequence[Range]) -> Snippet:
    """Return a range of a text in one line, with its highlights."""
    line = "…" if text[:start].strip() else ""
    ranges = []
    done = start
    for first, last in highlights:
        if first < end and last > start:
            line += _join_spaces(text[done : max(first, start)])
            done = min(last, end)
            words = _join_spaces(text[max(first, start) : done])
            ranges.append((len(line), len(line) + len(words)))
            line += words
    line += _join_spaces(text[done:end])
    return line + ("…" if text[end:].strip() else ""), ranges


CONTEXT = 4_096
"""Characters on either side that are cleaned with the highlights, so that a key that begins before them is whole."""
_EDGE = 2_048
"""Of those, as many are not shown where the text was cut: they may be the rest of a secret."""


def select_text(hit: IndexHit, query: Query) -> Snippet:
    """Return the text of a document that matches most terms of a query, with its highlights."""
    best: Snippet = ("", [])
    most = -1
    for text in hit.texts():
        highlights = find_highlights(text, query)
        count = len({text[start:end].casefold() for start, end in highlights})
        if count > most:
            best, most = (text, highlights), count
        if count >= len(query.terms):
            break
    return best


def make_safe_snippet(text: str, highlights: Sequence[Range], query: Query, clean: Clean | None) -> Snippet:
    """Return a snippet of a text that is cleaned first, if it must be."""
    if clean is None:
        return make_snippet(text, highlights)
    safe = clean_context(text, highlights, clean)
    return make_snippet(safe, find_highlights(safe, query))


def clean_context(text: str, highlights: Sequence[Range], clean: Clean) -> str:
    """Return the cleaned text around the densest highlights."""
    first, last = densest_range(text, highlights)
    start, end = max(0, first - CONTEXT), min(len(text), last + CONTEXT)
    around = text[start:end]
    cleaned = clean(around)
    before = _hidden_length(around, cleaned) if start else 0
    after = _hidden_length(around[::-1], cleaned[::-1]) if end < len(text) else 0
    return cleaned[before : max(before, len(cleaned) - after)]


def _hidden_length(around: str, cleaned: str) -> int:
    """Return the length of the begin that is not shown: the edge, or less if something was removed within it."""
    pairs = zip(around[:_EDGE], cleaned, strict=False)
    return sum([1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)])
