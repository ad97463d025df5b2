"""The query as people type it.

time zone            both words
"time zone" zon*     a phrase, the beginning of a word
zone OR offset       one of them
-zone -"time zone"   not
tool:shell is:error  what the session must be like
"""

from __future__ import annotations

import re

from retold.search.filters import ALIASES, CHOICES

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


FIELDS = (
    "agent",
    "project",
    "model",
    "tool",
    "file",
    "role",
    "status",
    "tag",
    "home",
    "after",
    "before",
    "is",
)
"""What may stand before a colon; all else there is part of a word, as in `std::vector`."""
SYNTAX = (
    'words, a phrase ("time zone"), a beginning (migrat*), one of two (flaky OR timeout), not (sensor -oven),'
    " fields (tool:shell, file:build.py, is:error)"
)
"""The language in a line, with examples that find something in the home of `retold demo`."""
_QUOTES = '"“”„‟«»\uff02'
_ITEM = re.compile(
    rf"""
    (?P<minus>-(?![->]))?  # `--force` and `->` are words
    (?:(?P<field>(?ai:{"|".join([*FIELDS, *ALIASES])})):)?
    (?:
        (?:"(?P<straight>[^"]*)"|[{_QUOTES[1:]}](?P<curly>[^{_QUOTES}]*)[{_QUOTES}])(?P<star>(?(field)|\*?))
        |(?P<unclosed>[{_QUOTES}])
        |(?P<bare>\S*)
    )
    """,
    re.VERBOSE,
)
_SPACE = re.compile(r"\s*")
_TELLING = 3
"""Fewer letters begin too many words."""


class QuerySyntaxError(ValueError):
    """A query that means nothing; `place` is the index of the character where it goes wrong."""

    def __init__(self, message: str, place: int) -> None:
        super().__init__(message)
        self.message = message
        self.place = place


class _Value:
    """Named facts. A dataclass would say the same and take as long to import as all else here."""

    __slots__: tuple[str, ...] = ()

    def __repr__(self) -> str:
        facts = [f"{name}={getattr(self, name)!r}" for name in self.__slots__]
        return f"{type(self).__name__}({', '.join(facts)})"


class Term(_Value):
    """A word, a phrase, or the beginning of a word; `kind` says which."""

    __slots__ = ("kind", "place", "text")

    def __init__(self, kind: str, text: str, place: int) -> None:
        self.kind = kind
        self.text = text
        self.place = place


class Clause(_Value):
    """Terms of which one must occur, or must not."""

    __slots__ = ("alternatives", "is_negated")

    def __init__(self, alternatives: tuple[Term, ...], *, is_negated: bool) -> None:
        self.alternatives = alternatives
        self.is_negated = is_negated


class Field(_Value):
    """What a session must be like, or must not; a date stays as it was typed."""

    __slots__ = ("is_negated", "name", "place", "value")

    def __init__(self, name: str, value: str, place: int, *, is_negated: bool) -> None:
        self.name = name
        self.value = value
        self.place = place
        self.is_negated = is_negated


class Query(_Value):
    """What was asked: every clause and every field must hold."""

    __slots__ = ("clauses", "fields")

    def __init__(self, clauses: tuple[Clause, ...], fields: tuple[Field, ...]) -> None:
        self.clauses = clauses
        self.fields = fields

    @property
    def terms(self) -> tuple[Term, ...]:
        """All that may be marked in a text."""
        wanted = [clause for clause in self.clauses if not clause.is_negated]
        return tuple([term for clause in wanted for term in clause.alternatives])


def plain_query(text: str) -> Query:
    """Return the query of a text in which nothing has a meaning of its own: every piece between blanks is a word."""
    found = re.finditer(r"\S+", text)
    terms = [Term("word", match[0], match.start()) for match in found]
    return Query(tuple([Clause((term,), is_negated=False) for term in terms]), ())


def parse(text: str) -> Query:
    """Return the query that a text means; raises Unclear, and nothing else, where it means none."""
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
    """Return the query that a text means while somebody is still typing: its last word may go on."""
    query = parse(text)
    last = query.terms[-1] if query.terms else None
    is_open = last is not None and last.kind == "word" and text[last.place :] == last.text
    return parse(f"{text}*") if is_open and text[-_TELLING:].isalnum() and len(text) >= _TELLING else query


def _items(text: str) -> Iterator[re.Match[str]]:
    """Yield what stands between spaces."""
    place = 0
    while (place := _end(_SPACE, text, place)) < len(text):
        item = _ITEM.match(text, place)
        if item is None or item["unclosed"]:
            opening = item.start("unclosed") if item else place
            raise QuerySyntaxError(f'the quote at {opening} is not closed: write "two words"', opening)
        yield item
        place = item.end()


def _end(pattern: re.Pattern[str], text: str, place: int) -> int:
    found = pattern.match(text, place)
    return found.end() if found else place


def _groups(items: Iterator[re.Match[str]]) -> list[list[re.Match[str]]]:
    """Return the items, with those together that OR joins."""
    groups: list[list[re.Match[str]]] = []
    joint: re.Match[str] | None = None
    for item in items:
        if item[0] == "OR":
            if joint or not groups:
                raise _dangling(item)
            joint = item
        elif joint:
            groups[-1].append(item)
            _check_joint(joint, groups[-1])
            joint = None
        else:
            groups.append([item])
    if joint:
        raise _dangling(joint)
    return groups


def _check_joint(joint: re.Match[str], group: Sequence[re.Match[str]]) -> None:
    if any([item["field"] or item["minus"] for item in group]):
        place = joint.start()
        raise QuerySyntaxError(
            f"the OR at {place} joins more than words: write it between two words or phrases", place
        )


def _dangling(joint: re.Match[str]) -> QuerySyntaxError:
    place = joint.start()
    return QuerySyntaxError(
        f'the OR at {place} has only one side: write one OR two, or "OR" for the word', place
    )


def _clause(group: Sequence[re.Match[str]]) -> Clause:
    return Clause(tuple([_term(item) for item in group]), is_negated=bool(group[0]["minus"]))


def _term(item: re.Match[str]) -> Term:
    place = item.start() + len(item["minus"] or "")
    text = _content(item)
    if item["bare"] is None:
        if not text.strip():
            raise QuerySyntaxError(f'the phrase at {place} is empty: write "two words"', place)
        return Term("prefix" if item["star"] else "phrase", text, place)
    if not text:
        raise QuerySyntaxError(
            f"the minus at {place - 1} stands alone: write it before a word, as in -word", place - 1
        )
    bare = text.rstrip("*")
    if not bare:
        raise QuerySyntaxError(
            f"the star at {place} stands alone: write it after the begin of a word, as in wor*", place
        )
    return Term("word" if bare == text else "prefix", bare, place)


def _field(item: re.Match[str]) -> Field:
    typed = item["field"].lower()
    name = ALIASES.get(typed, typed)
    place = item.start("field")
    value = _content(item).strip()
    if not value:
        raise QuerySyntaxError(
            f"the field at {place} has no value: write it without a space, as in {typed}:value", place
        )
    if name in CHOICES:
        value = value.lower()
        if value not in CHOICES[name]:
            choices = ", ".join(CHOICES[name])
            raise QuerySyntaxError(
                f"{typed}: at {place} has none of its values: write one of {choices}", place
            )
    if name in ALIASES.values():
        _check_date(name, value, place)
    return Field(name, value, place, is_negated=bool(item["minus"]))


def _content(item: re.Match[str]) -> str:
    return next(text for text in item.group("straight", "curly", "bare") if text is not None)


def _check_date(name: str, value: str, place: int) -> None:
    from retold.search.dates import now, parse_since, parse_until

    try:
        (parse_since if name == "after" else parse_until)(value, now())
    except (ValueError, OverflowError):
        raise QuerySyntaxError(
            f"the date at {place} is none: write {name}:2026-01-27, {name}:7d or {name}:yesterday", place
        ) from None


_ALONE = re.compile(r"(?<!\S)[-*]+(?!\S)")
_QUOTE_SIGNS = frozenset('"“”„‟«»\uff02')
_MOST = 16
"""How many other slips are passed over: each means to read the question again."""


def parse_plain(question: str) -> Query:
    """Return the query that a question means; raises Unclear for an empty one, and for a field with a wrong value.

    A dash between words, a quote that is not closed and `file:` before a blank mean nothing.
    """
    text = _ALONE.sub(lambda signs: " " * len(signs[0]), question)
    for _ in range(_MOST):
        try:
            return parse(text)
        except QuerySyntaxError as unclear:
            mended = _without_slip(text, unclear.place)
            if mended == text:
                raise
            text = mended
    return parse(text)


def _without_slip(text: str, place: int) -> str:
    """Return a text with a blank for the quote at a place, or for what makes the word there more than a word."""
    if text[place : place + 1] in _QUOTE_SIGNS:
        return f"{text[:place]} {text[place + 1 :]}"
    if text.startswith("OR", place):
        return f"{text[:place]}  {text[place + 2 :]}"
    name, colon, rest = text[place:].partition(":")
    is_bare = colon and name.isalpha() and not rest[:1].strip()
    return f"{text[:place]}{name} {rest}" if is_bare else text
