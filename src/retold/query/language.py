"""The query as people type it, and as the text index is asked.

time zone            both words
"time zone" zon*     a phrase, the beginning of a word
zone OR offset       one of them
-zone -"time zone"   not
tool:shell is:error  what the session must be like
"""

from __future__ import annotations

import re

from retold.archive.words import sought

TYPE_CHECKING = False  # typing costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
_ALIASES = {"since": "after", "until": "before"}
_CHOICES = {
    "is": (
        "error", "live", "rewound", "compacted", "superseded", "subagent", "fork", "lost", "checkpoint", "capture",
    ),
    "role": ("user", "assistant", "system"),
    "status": ("success", "failure", "interrupted"),
}  # fmt: skip
_QUOTES = '"“”„‟«»\uff02'
_ITEM = re.compile(
    rf"""
    (?P<minus>-(?![->]))?  # `--force` and `->` are words
    (?:(?P<field>(?ai:{"|".join([*FIELDS, *_ALIASES])})):)?
    (?:
        (?:"(?P<straight>[^"]*)"|[{_QUOTES[1:]}](?P<curly>[^{_QUOTES}]*)[{_QUOTES}])(?P<star>(?(field)|\*?))
        |(?P<unclosed>[{_QUOTES}])
        |(?P<bare>\S*)
    )
    """,
    re.VERBOSE,
)
_SPACE = re.compile(r"\s*")


NO_NAMES: Mapping[str, Sequence[str]] = {}


class Unclear(ValueError):  # noqa: N818 - it says what the query is
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


def parse(text: str) -> Query:
    """Return the query that a text means; raises Unclear, and nothing else, where it means none."""
    groups = _groups(_items(text))
    fields = tuple([_field(item) for item, *_ in groups if item["field"]])
    clauses = tuple([_clause(group) for group in groups if not group[0]["field"]])
    if not groups:
        raise Unclear("there is nothing to look for: write a word, or a field such as project:name", 0)
    if not fields and all([clause.is_negated for clause in clauses]):
        raise Unclear("nothing is left to look for: write a word that must occur, or a field as well", 0)
    return Query(clauses, fields)


def expression(
    query: Query, *, has_positions: bool, names: Mapping[str, Sequence[str]] = NO_NAMES
) -> str | None:
    """Return what FTS5 is asked to MATCH; None if no word is left that must occur.

    A table without positions has no phrases: what it finds has all their words, and `needs_verifying`. Where names are
    given that a word is part of, they do as well.
    """
    wanted = _conditions(query, has_positions=has_positions, is_negated=False, names=names)
    if not wanted:
        return None
    unwanted = exclusion(query, has_positions=has_positions)
    return _joined("AND", wanted) if unwanted is None else f"{_joined('AND', wanted)} NOT {unwanted}"


def exclusion(query: Query, *, has_positions: bool) -> str | None:
    """Return what FTS5 must not MATCH; None if everything may occur."""
    unwanted = _conditions(query, has_positions=has_positions, is_negated=True)
    return _joined("OR", unwanted) if unwanted else None


def needs_verifying(query: Query) -> bool:
    """Tell whether what a table without positions finds must be looked for in the text itself."""
    terms = [term for clause in query.clauses for term in clause.alternatives]
    return any([len(sought(term.text)[0]) > 1 for term in terms])


def lone_words(query: Query) -> set[str]:
    """Return the words that must occur and may be parts of names."""
    return {word for term in query.terms if (word := _lone(term)) is not None}


def _lone(term: Term) -> str | None:
    words, is_open = sought(term.text)
    is_lone = len(words) == 1 and not is_open and term.kind == "word" and words[0].isascii()
    return words[0].lower() if is_lone else None


def _conditions(
    query: Query, *, has_positions: bool, is_negated: bool, names: Mapping[str, Sequence[str]] = NO_NAMES
) -> list[str]:
    """Return the clauses for FTS5, but for those without a word."""
    clauses = [clause for clause in query.clauses if clause.is_negated == is_negated]
    searches = [
        [
            strings
            for term in clause.alternatives
            if (strings := _with_names(term, _search(term, has_positions=has_positions), names))
        ]
        for clause in clauses
    ]
    if is_negated:  # a text may have all words of a phrase that it has not
        searches = [[strings for strings in search if len(strings) == 1] for search in searches]
    return [_joined("OR", [_joined("AND", strings) for strings in search]) for search in searches if search]


def _with_names(term: Term, strings: list[str], names: Mapping[str, Sequence[str]]) -> list[str]:
    found = names.get(_lone(term) or "", ())
    return [_joined("OR", [*strings, *(f'"{name}"' for name in found)])] if found else strings


def _joined(operator: str, conditions: Sequence[str]) -> str:
    return conditions[0] if len(conditions) == 1 else f"({f' {operator} '.join(conditions)})"


def _search(term: Term, *, has_positions: bool) -> list[str]:
    """Return the strings that FTS5 looks for; they are of letters and digits only, so nothing in them is syntax."""
    words, is_open = sought(term.text)
    if not words:
        return []
    strings = [" ".join(words)] if has_positions else words
    star = " *" if is_open or term.kind == "prefix" else ""
    return [f'"{string}"' for string in strings[:-1]] + [f'"{strings[-1]}"{star}']


def _items(text: str) -> Iterator[re.Match[str]]:
    """Yield what stands between spaces."""
    place = 0
    while (place := _end(_SPACE, text, place)) < len(text):
        item = _ITEM.match(text, place)
        if item is None or item["unclosed"]:
            opening = item.start("unclosed") if item else place
            raise Unclear(f'the quote at {opening} is not closed: write "two words"', opening)
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
        raise Unclear(
            f"the OR at {place} joins more than words: write it between two words or phrases", place
        )


def _dangling(joint: re.Match[str]) -> Unclear:
    place = joint.start()
    return Unclear(f'the OR at {place} has only one side: write one OR two, or "OR" for the word', place)


def _clause(group: Sequence[re.Match[str]]) -> Clause:
    return Clause(tuple([_term(item) for item in group]), is_negated=bool(group[0]["minus"]))


def _term(item: re.Match[str]) -> Term:
    place = item.start() + len(item["minus"] or "")
    text = _content(item)
    if item["bare"] is None:
        if not text.strip():
            raise Unclear(f'the phrase at {place} is empty: write "two words"', place)
        return Term("prefix" if item["star"] else "phrase", text, place)
    if not text:
        raise Unclear(
            f"the minus at {place - 1} stands alone: write it before a word, as in -word", place - 1
        )
    bare = text.rstrip("*")
    if not bare:
        raise Unclear(
            f"the star at {place} stands alone: write it after the begin of a word, as in wor*", place
        )
    return Term("word" if bare == text else "prefix", bare, place)


def _field(item: re.Match[str]) -> Field:
    typed = item["field"].lower()
    name = _ALIASES.get(typed, typed)
    place = item.start("field")
    value = _content(item).strip()
    if not value:
        raise Unclear(
            f"the field at {place} has no value: write it without a space, as in {typed}:value", place
        )
    if name in _CHOICES:
        value = value.lower()
        if value not in _CHOICES[name]:
            choices = ", ".join(_CHOICES[name])
            raise Unclear(f"{typed}: at {place} has none of its values: write one of {choices}", place)
    if name in _ALIASES.values():
        _check_date(name, value, place)
    return Field(name, value, place, is_negated=bool(item["minus"]))


def _content(item: re.Match[str]) -> str:
    return next(text for text in item.group("straight", "curly", "bare") if text is not None)


def _check_date(name: str, value: str, place: int) -> None:
    from datetime import UTC, datetime

    from retold.query.dates import parse_since, parse_until

    try:
        (parse_since if name == "after" else parse_until)(value, datetime.now(UTC))
    except (ValueError, OverflowError):
        raise Unclear(
            f"the date at {place} is none: write {name}:2026-01-27, {name}:7d or {name}:yesterday", place
        ) from None
