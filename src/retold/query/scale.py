"""What the words of a question weigh: the rarer a word is in the whole index, the more it tells."""

from __future__ import annotations

import math

from retold.archive.index.matches import count, frequency
from retold.archive.index.reader import TABLES
from retold.query.expression import expression
from retold.query.language import Clause, Query

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Sequence

    from retold.archive.index.reader import Index, IndexFile
    from retold.query.language import Term
    from retold.query.telling import Keywords

COUNTED = 1_000
"""Documents of a file up to which they are counted: of what is in more of them, it is enough to know how common it is."""
_LEAST = 1e-6
"""What FTS5 takes a word for that is in more than half of all documents."""


class Form:
    """A word as it was asked for, or all its other forms together, as both tables are asked for it."""

    __slots__ = ("matches", "number", "share", "terms", "word")

    def __init__(self, number: int, word: int, terms: tuple[Term, ...], share: float) -> None:
        self.number, self.word, self.terms, self.share = number, word, terms, share
        query = Query((Clause(terms, is_negated=False),), ())
        asked = {table: expression(query, has_positions=table == "said") for table in TABLES}
        self.matches = {table: match for table, match in asked.items() if match is not None}


class TermWeights:
    """The words of a question, with how often each form of them occurs in each file of the index."""

    def __init__(self, index: Index, words: Sequence[Keywords]) -> None:
        every = [
            (number, terms, share * word.weight)
            for number, word in enumerate(words)
            for terms, share in word.forms
        ]
        forms = [Form(place, *one) for place, one in enumerate(every)]
        self._counts = dict(index.at_once(lambda file: [(file.path, _TermCounts(file, forms))]))
        files = list(self._counts.values())
        self.forms = [form for form in forms if any([counts.holds(form) for counts in files])]
        """Those that occur anywhere."""
        self._weights = {table: self._weighed(table, len(words)) for table in TABLES}

    def _weighed(self, table: str, words: int) -> list[float]:
        files = self._counts.values()
        held = [0] * words
        for form in self.forms:
            held[form.word] += sum([counts.of(table, form) for counts in files])
        every = sum([counts.every[table] for counts in files])
        return [math.log(1 + every / (number + 0.5)) for number in held]

    def weight(self, table: str, form: Form) -> float:
        """Return what a form of a word weighs: it is as rare as all forms of the word together."""
        return form.share * self._weights[table][form.word]

    def count(self, file: IndexFile, table: str, form: Form) -> int:
        """Return in how many documents of a file a form occurs, as far as they are counted."""
        return self._counts[file.path].of(table, form)

    def rarity(self, file: IndexFile, form: Form) -> float:
        """Return what FTS5 multiplies with when it says what a document is worth: how rare it takes a form for."""
        counts = self._counts[file.path]
        there = counts.of("said", form)
        return max(math.log((counts.every["said"] - there + 0.5) / (there + 0.5)), _LEAST)

    def marked(self) -> Query:
        """Return what is marked in a text."""
        return Query(
            (Clause(tuple([term for form in self.forms for term in form.terms]), is_negated=False),), ()
        )


class _TermCounts:
    """How often forms occur in one file of the index."""

    __slots__ = ("_there", "every")

    def __init__(self, file: IndexFile, forms: Sequence[Form]) -> None:
        self.every = {table: count(file, table) for table in TABLES}
        """How many documents there are."""
        self._there = {
            (table, form.number): frequency(file, table, match, COUNTED)
            for table in TABLES
            for form in forms
            if (match := form.matches.get(table)) is not None
        }

    def of(self, table: str, form: Form) -> int:
        return self._there.get((table, form.number), 0)

    def holds(self, form: Form) -> bool:
        return any([self.of(table, form) for table in TABLES])
