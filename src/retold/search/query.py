"""The query language, and the expressions of a query for FTS5.

time zone            both words
"time zone" zon*     a phrase, the beginning of a word
zone OR offset       one of them
-zone -"time zone"   not
tool:shell is:error  fields of the session or the message
"""

from __future__ import annotations

from retold.archive.index.tokenizer import find_part_spans, query_words, split_runs
from retold.search.filters import ALIASES, CHOICES

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    import re
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from retold.archive.index.reader import Index


FIELDS = (
    "agent", "project", "model", "tool", "file", "role", "status", "tag", "home", "after", "before", "is",
)  # fmt: skip
"""Names before a colon. Anything else before a colon is part of a word, as in `std::vector`."""
SYNTAX = (
    'words, a phrase ("time zone"), a beginning (migrat*), one of two (flaky OR timeout), not (sensor -oven),'
    " fields (tool:shell, file:build.py, is:error)"
)
"""The language in one line, with examples that find something in the home of `retold demo`."""
_QUOTES = '"“”„‟«»\uff02'
_ITEM = rf"""(?x)
    (?P<minus>-(?![->]))?  # `--force` and `->` are words
    (?:(?P<field>(?ai:{"|".join([*FIELDS, *ALIASES])})):)?
    (?:
        (?:"(?P<straight>[^"]*)"|[{_QUOTES[1:]}](?P<curly>[^{_QUOTES}]*)[{_QUOTES}])(?P<star>(?(field)|\*?))
        |(?P<unclosed>[{_QUOTES}])
        |(?P<bare>\S*)
    )
"""
_SYNTAX = frozenset(f"{_QUOTES}*:-")
"""Characters without which a query is words alone, and possibly OR."""
_SHORTEST_PREFIX = 3
"""Letters of a prefix while somebody types: with fewer, too many words match."""


class QuerySyntaxError(ValueError):
    """A query with an error at an offset."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


class _Node:
    """A part of a query. A dataclass would take as long to import as everything else here."""

    __slots__: tuple[str, ...] = ()

    def __repr__(self) -> str:
        fields = [f"{name}={getattr(self, name)!r}" for name in self.__slots__]
        return f"{type(self).__name__}({', '.join(fields)})"


class Term(_Node):
    """A word, a phrase or a prefix, as its `kind` says."""

    __slots__ = ("kind", "offset", "text")

    def __init__(self, kind: str, text: str, offset: int) -> None:
        self.kind = kind
        self.text = text
        self.offset = offset


class Clause(_Node):
    """Alternative terms of which one must occur, or none if it is negated."""

    __slots__ = ("alternatives", "is_negated")

    def __init__(self, alternatives: tuple[Term, ...], *, is_negated: bool) -> None:
        self.alternatives = alternatives
        self.is_negated = is_negated


class Field(_Node):
    """A field and its value; a date is kept as it was typed."""

    __slots__ = ("is_negated", "name", "offset", "value")

    def __init__(self, name: str, value: str, offset: int, *, is_negated: bool) -> None:
        self.name = name
        self.value = value
        self.offset = offset
        self.is_negated = is_negated


class Query(_Node):
    """A parsed query: all clauses and all fields must match."""

    __slots__ = ("clauses", "fields")

    def __init__(self, clauses: tuple[Clause, ...], fields: tuple[Field, ...]) -> None:
        self.clauses = clauses
        self.fields = fields

    @property
    def terms(self) -> tuple[Term, ...]:
        """All terms that may occur."""
        clauses = [clause for clause in self.clauses if not clause.is_negated]
        return tuple([term for clause in clauses for term in clause.alternatives])


def literal_query(text: str) -> Query:
    """Return the query of a text without syntax: everything between spaces is a word."""
    clauses, end = [], 0
    for word in text.split():
        offset = text.index(word, end)
        clauses.append(Clause((Term("word", word, offset),), is_negated=False))
        end = offset + len(word)
    return Query(tuple(clauses), ())


def parse_query(text: str) -> Query:
    """Return the query in a text; raise QuerySyntaxError, and nothing else, for an error."""
    if _SYNTAX.isdisjoint(text) and (words := text.split()) and "OR" not in words:
        return literal_query(text)
    groups = _groups(_items(text))
    fields = tuple([_field(item) for item, *_ in groups if item["field"]])
    clauses = tuple([_clause(group) for group in groups if not group[0]["field"]])
    if not groups:
        raise QuerySyntaxError(
            "there is nothing to look for: write a word, or a field such as project:name", 0
        )
    if not fields and all([clause.is_negated for clause in clauses]):
        raise QuerySyntaxError(
            "nothing is left to look for: write a word that must occur, or a field as well", 0
        )
    return Query(clauses, fields)


def parse_unfinished(text: str) -> Query:
    """Return the query in a text that somebody is typing: its last word is a prefix."""
    query = parse_query(text)
    last = query.terms[-1] if query.terms else None
    is_open = last is not None and last.kind == "word" and text[last.offset :] == last.text
    return (
        parse_query(f"{text}*")
        if is_open and text[-_SHORTEST_PREFIX:].isalnum() and len(text) >= _SHORTEST_PREFIX
        else query
    )


def _items(text: str) -> Iterator[re.Match[str]]:
    """Yield the items between spaces."""
    import re

    pattern, offset = re.compile(_ITEM), 0
    while offset < len(text):
        if text[offset].isspace():
            offset += 1
            continue
        item = pattern.match(text, offset)
        if item is None or item["unclosed"]:
            opening = item.start("unclosed") if item else offset
            raise QuerySyntaxError(f'the quote at {opening} is not closed: write "two words"', opening)
        yield item
        offset = item.end()


def _groups(items: Iterator[re.Match[str]]) -> list[list[re.Match[str]]]:
    """Return the items in groups of those that OR joins."""
    groups: list[list[re.Match[str]]] = []
    joint: re.Match[str] | None = None
    for item in items:
        if item[0] == "OR":
            if joint or not groups:
                raise _dangling_or(item)
            joint = item
        elif joint:
            groups[-1].append(item)
            _check_joint(joint, groups[-1])
            joint = None
        else:
            groups.append([item])
    if joint:
        raise _dangling_or(joint)
    return groups


def _check_joint(joint: re.Match[str], group: Sequence[re.Match[str]]) -> None:
    if any([item["field"] or item["minus"] for item in group]):
        offset = joint.start()
        raise QuerySyntaxError(
            f"the OR at {offset} joins more than words: write it between two words or phrases", offset
        )


def _dangling_or(joint: re.Match[str]) -> QuerySyntaxError:
    offset = joint.start()
    return QuerySyntaxError(
        f'the OR at {offset} has only one side: write one OR two, or "OR" for the word', offset
    )


def _clause(group: Sequence[re.Match[str]]) -> Clause:
    return Clause(tuple([_term(item) for item in group]), is_negated=bool(group[0]["minus"]))


def _term(item: re.Match[str]) -> Term:
    offset = item.start() + len(item["minus"] or "")
    text = _content(item)
    if item["bare"] is None:
        if not text.strip():
            raise QuerySyntaxError(f'the phrase at {offset} is empty: write "two words"', offset)
        return Term("prefix" if item["star"] else "phrase", text, offset)
    if not text:
        raise QuerySyntaxError(
            f"the minus at {offset - 1} stands alone: write it before a word, as in -word", offset - 1
        )
    bare = text.rstrip("*")
    if not bare:
        raise QuerySyntaxError(
            f"the star at {offset} stands alone: write it after the begin of a word, as in wor*", offset
        )
    return Term("word" if bare == text else "prefix", bare, offset)


def _field(item: re.Match[str]) -> Field:
    typed = item["field"].lower()
    name = ALIASES.get(typed, typed)
    offset = item.start("field")
    value = _content(item).strip()
    if not value:
        raise QuerySyntaxError(
            f"the field at {offset} has no value: write it without a space, as in {typed}:value", offset
        )
    if name in CHOICES:
        value = value.lower()
        if value not in CHOICES[name]:
            choices = ", ".join(CHOICES[name])
            raise QuerySyntaxError(
                f"{typed}: at {offset} has none of its values: write one of {choices}", offset
            )
    if name in ALIASES.values():
        _check_date(name, value, offset)
    return Field(name, value, offset, is_negated=bool(item["minus"]))


def _content(item: re.Match[str]) -> str:
    return next(text for text in item.group("straight", "curly", "bare") if text is not None)


def _check_date(name: str, value: str, offset: int) -> None:
    from retold.search.dates import now, parse_since, parse_until

    try:
        (parse_since if name == "after" else parse_until)(value, now())
    except (ValueError, OverflowError):
        raise QuerySyntaxError(
            f"the date at {offset} is none: write {name}:2026-01-27, {name}:7d or {name}:yesterday", offset
        ) from None


_DASHES = r"(?<!\S)[-*]+(?!\S)"
_MOST_ERRORS = 16
"""Other errors that are removed: after each, the question is parsed again."""


def parse_question(question: str) -> Query:
    """Return the query in a question; raise QuerySyntaxError if it is empty or a field has a wrong value.

    A dash between words, a quote that is not closed and `file:` before a space are ignored.
    """
    import re

    text = re.sub(_DASHES, lambda match: " " * len(match[0]), question)
    for _ in range(_MOST_ERRORS):
        try:
            return parse_query(text)
        except QuerySyntaxError as error:
            repaired = _remove_error(text, error.offset)
            if repaired == text:
                raise
            text = repaired
    return parse_query(text)


def _remove_error(text: str, offset: int) -> str:
    """Return a text with a space in offset of the quote, the OR or the colon at the offset of an error."""
    if text.startswith(tuple(_QUOTES), offset):
        return f"{text[:offset]} {text[offset + 1 :]}"
    if text.startswith("OR", offset):
        return f"{text[:offset]}  {text[offset + 2 :]}"
    name, colon, rest = text[offset:].partition(":")
    is_bare = colon and name.isalpha() and not rest[:1].strip()
    return f"{text[:offset]}{name} {rest}" if is_bare else text


NO_NAMES: Mapping[str, Sequence[str]] = {}
LARGEST_OR = 500
"""Operands of an OR. FTS5 checks all operands for each document, so a longer OR becomes an OR of groups."""


def match_expression(
    query: Query, *, has_positions: bool, names: Mapping[str, Sequence[str]] = NO_NAMES
) -> str | None:
    """Return the expression for MATCH of FTS5; None if it would have no word that must occur.

    A table without positions has no phrases: a match has all words of a phrase, and `needs_verification`. In offset of a
    word, the names that it is part of match as well, if they are given.
    """
    conditions = _conditions(query, has_positions=has_positions, is_negated=False, names=names)
    if not conditions:
        return None
    excluded = exclusion_expression(query, has_positions=has_positions)
    return _join("AND", conditions) if excluded is None else f"{_join('AND', conditions)} NOT {excluded}"


def exclusion_expression(query: Query, *, has_positions: bool) -> str | None:
    """Return the expression of all exclusions; None if there are none."""
    conditions = _conditions(query, has_positions=has_positions, is_negated=True)
    return _join("OR", conditions) if conditions else None


def clause_phrases(query: Query) -> list[list[str]]:
    """Return the phrases of each clause that must occur, in the order of the expression for a table with positions."""
    clauses = [
        [phrase for term in clause.alternatives for phrase in _strings(term, has_positions=True)]
        for clause in query.clauses
        if not clause.is_negated
    ]
    return [clause for clause in clauses if clause]


def needs_verification(query: Query) -> bool:
    """Return whether matches of a table without positions must be verified in the text."""
    terms = [term for clause in query.clauses for term in clause.alternatives]
    return any([len(query_words(term.text)[0]) > 1 for term in terms])


def is_symbol_query(query: Query) -> bool:
    """Return whether a query has terms, and none with a letter, a digit or a picture."""
    return bool(query.terms) and not any(split_runs(term.text) for term in query.terms)


def single_words(query: Query) -> set[str]:
    """Return the words that must occur and may be parts of names."""
    return {word for term in query.terms if (word := _single_word(term)) is not None}


def _single_word(term: Term) -> str | None:
    words, is_open = query_words(term.text)
    is_single = len(words) == 1 and not is_open and term.kind == "word" and words[0].isascii()
    return words[0].lower() if is_single else None


def _conditions(
    query: Query, *, has_positions: bool, is_negated: bool, names: Mapping[str, Sequence[str]] = NO_NAMES
) -> list[str]:
    """Return an expression for each clause with a word."""
    conditions = []
    for clause in query.clauses:
        if clause.is_negated != is_negated:
            continue
        terms = [
            strings
            for term in clause.alternatives
            if (strings := _with_names(term, _strings(term, has_positions=has_positions), names))
        ]
        if is_negated:  # a text may have all words of a phrase without the phrase
            terms = [strings for strings in terms if len(strings) == 1]
        if terms:
            conditions.append(_join("OR", [_join("AND", strings) for strings in terms]))
    return conditions


def _with_names(term: Term, strings: list[str], names: Mapping[str, Sequence[str]]) -> list[str]:
    names_of_word = names.get(_single_word(term) or "", ())
    return [_any_of([*strings, *(f'"{name}"' for name in names_of_word)])] if names_of_word else strings


def _any_of(strings: Sequence[str]) -> str:
    """Join strings by OR, in groups if they are many; NOT "" keeps FTS5 from joining the groups again."""
    while len(strings) > LARGEST_OR:
        groups = [strings[start : start + LARGEST_OR] for start in range(0, len(strings), LARGEST_OR)]
        strings = [f'({_join("OR", group)} NOT "")' for group in groups]
    return _join("OR", strings)


def _join(operator: str, conditions: Sequence[str]) -> str:
    return conditions[0] if len(conditions) == 1 else f"({f' {operator} '.join(conditions)})"


def _strings(term: Term, *, has_positions: bool) -> list[str]:
    """Return the quoted strings of a term; they consist of letters and digits, so nothing in them is syntax."""
    words, is_open = query_words(term.text)
    if not words:
        return []
    strings = [" ".join(words)] if has_positions else words
    star = " *" if is_open or term.kind == "prefix" else ""
    return [f'"{string}"' for string in strings[:-1]] + [f'"{strings[-1]}"{star}']


def find_names_with_parts(index: Index, words: Collection[str]) -> dict[str, list[str]]:
    """Return the names in the index that each word is part of, the shortest first."""
    every = set(index.ask_all(lambda file: file.identifiers_with(words)))
    ordered = sorted(every, key=lambda name: (len(name), name))
    names = {word: [name.lower() for name in ordered if is_name_part(word, name)] for word in words}
    return {word: of_word for word, of_word in names.items() if of_word}


def is_name_part(word: str, name: str) -> bool:
    """Return whether a word is one part of a name or several in sequence, as `httpserver` of `HTTPServer2`."""
    whole = name.lower()
    if word not in whole:
        return False
    spans = find_part_spans(name)
    starts, ends = {start for start, _ in spans}, {end for _, end in spans}
    return any(start + len(word) in ends for start in starts if whole.startswith(word, start))
