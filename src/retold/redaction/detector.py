"""Where the secrets of a text are."""

import re

from retold.redaction import assignments, persons, surroundings, tokens
from retold.redaction.budget import Budget
from retold.redaction.finding import Finding, apart
from retold.redaction.folding import unfolded

_DULL = re.compile(r"[A-Za-z0-9_-]{0,19}$|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""What most texts of a session are, counted and not measured: names of tools, words, ids."""
_CASED = re.compile("|".join(map(re.escape, (*tokens.ANCHORS, *persons.ANCHORS))) + "|[_.-][A-Za-z0-9_-]{20}")
_CASELESS = re.compile("|".join(map(re.escape, (*assignments.ANCHORS, *surroundings.ANCHORS))))
_SHORT = 400
"""In a short text, it takes longer to look for each anchor than to look for all at once; in a long one it is far faster."""


def findings(text: str, budget: Budget | None = None) -> list[Finding]:
    """Return the secrets of a text, in order, none over another; raises OverBudget where it takes too many steps."""
    if _DULL.match(text):
        return []
    budget = budget or Budget(len(text))
    found = _found(text, budget)
    plain = unfolded(text)
    if plain:
        found += [
            Finding(plain.place(start), plain.place(end), kind)
            for start, end, kind in _found(plain.text, budget)
        ]
    return apart(found) if found else found


def _found(text: str, budget: Budget) -> list[Finding]:
    low = lower(text)
    if len(text) < _SHORT and not _CASED.search(text) and not _CASELESS.search(low):
        return []
    return [
        *tokens.tokens(text, budget),
        *surroundings.surrounded(text, low, budget),
        *assignments.assigned(text, low, budget),
        *persons.persons(text, budget),
    ]


def lower(text: str) -> str:
    """Return a text with the letters of ASCII in lower case, so that all places stay."""
    if text.isascii():
        return text.lower()
    return text.encode(errors="surrogatepass").lower().decode(errors="surrogatepass")
