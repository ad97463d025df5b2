"""The query as the text index is asked."""

from __future__ import annotations

from retold.archive.index.tokenizer import part_spans, sought

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from retold.archive.index.reader import Index
    from retold.search.query import Query, Term


NO_NAME_WORDS: Mapping[str, Sequence[str]] = {}
GROUPED = 500
"""Operands of an OR. FTS5 looks at all operands for each document, so a longer OR becomes an OR of groups."""


def expression(
    query: Query, *, has_positions: bool, names: Mapping[str, Sequence[str]] = NO_NAME_WORDS
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


def phrases(query: Query) -> list[list[str]]:
    """Return the phrases of each clause that must occur, in the order in which the table with positions is asked for them."""
    found = [
        [phrase for term in clause.alternatives for phrase in _search(term, has_positions=True)]
        for clause in query.clauses
        if not clause.is_negated
    ]
    return [clause for clause in found if clause]


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
    query: Query, *, has_positions: bool, is_negated: bool, names: Mapping[str, Sequence[str]] = NO_NAME_WORDS
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
    return [_any_of([*strings, *(f'"{name}"' for name in found)])] if found else strings


def _any_of(strings: Sequence[str]) -> str:
    """Join strings by OR, in groups where they are many; NOT "" keeps FTS5 from joining the groups again."""
    while len(strings) > GROUPED:
        groups = [strings[start : start + GROUPED] for start in range(0, len(strings), GROUPED)]
        strings = [f'({_joined("OR", group)} NOT "")' for group in groups]
    return _joined("OR", strings)


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


def names_with_parts(index: Index, words: Collection[str]) -> dict[str, list[str]]:
    """Return for each word the names in the index that hold it, the shortest first."""
    there = sorted(
        set(index.at_once(lambda file: file.names_with(words))), key=lambda name: (len(name), name)
    )
    found: dict[str, list[str]] = {}
    for word in words:
        fitting = [name.lower() for name in there if is_part(word, name)]
        if fitting:
            found[word] = fitting
    return found


def is_part(word: str, name: str) -> bool:
    """Tell whether a word is a part of a name, or several parts side by side, as `httpserver` in `HTTPServer2`."""
    whole = name.lower()
    if word not in whole:
        return False
    spans = part_spans(name)
    starts, ends = {start for start, _ in spans}, {end for _, end in spans}
    places = (place for place in starts if whole.startswith(word, place))
    return any(place + len(word) in ends for place in places)
