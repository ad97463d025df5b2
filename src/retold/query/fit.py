"""How much of what is telling in a question a text holds."""

from __future__ import annotations

from collections.abc import Sequence

from retold.archive.index.tokenizer import tokens
from retold.query.telling import Keywords

LOOKED_AT = 20_000


class Fit:
    """A question, held against texts."""

    def __init__(self, words: Sequence[Keywords]) -> None:
        self._words = [
            (one.weight, [set(tokens(term.text)) for terms, _ in one.forms for term in terms])
            for one in words
        ]

    def of(self, *texts: str | None) -> float:
        """Return the weight of all that is found in texts, of each thing once."""
        there = {token for text in texts if text for token in tokens(text[:LOOKED_AT])}
        return sum(weight for weight, forms in self._words if any(form <= there for form in forms if form))
