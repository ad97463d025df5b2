"""A question in plain words as a query: what would be a slip of the query language is only punctuation there."""

from __future__ import annotations

import re

from retold.query.language import Query, QuerySyntaxError, parse

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
