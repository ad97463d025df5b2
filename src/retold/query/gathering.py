"""What the conversations of one file of the index hold of a question."""

from __future__ import annotations

from retold.archive.index.matches import Weighed, occurrences, said_in
from retold.archive.index.reader import TABLES
from retold.query.nearness import ProximityScore

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator

    from retold.archive.index.reader import Conditions, IndexFile
    from retold.query.scale import Form, TermWeights

MOST = {"said": 1_000, "output": 300}
"""How many documents of a file may hold a form that leads to conversations; a more common one adds to what was found."""
BEST = 300
"""How many documents are taken where what leads to conversations tells little."""
LITTLE = 2
"""How many times as much what leads must weigh as what does not."""
NEXT_TO_NOTHING = 8
"""How many times as much what leads weighs if what does not is not even looked for."""
HUMAN, AGENT = 4.0, 1.0
"""What a word weighs in what a person said, and in what the agent did."""
SHARES = {"said": 1.0, "output": 0.4}
"""What a word weighs in what was said, and in what only went by."""
_USUAL = 0.5
"""What it is worth that a document holds something, if nothing else is known."""


class Gathering:
    """A file of the index, and what was found in it."""

    def __init__(self, file: IndexFile, scale: TermWeights, wanted: Conditions) -> None:
        """Look for the words."""
        self._file, self._scale, self._wanted = file, scale, wanted
        self.conversed: dict[int, ProximityScore] = {}
        """By the session's id in the file."""
        self._places: dict[int, tuple[int, int]] = {}
        common, leading = [], 0.0
        for table, form in self._there():
            if self._leads(table, form):
                taken = self._lead(table, form)
                leading = max(leading, scale.weight(table, form) if taken else 0.0)
            elif table == "said":
                common.append(form)
        if LITTLE * max([scale.weight("said", form) for form in common], default=0.0) > leading:
            self._take_best(common)
        for form in common:
            if NEXT_TO_NOTHING * scale.weight("said", form) > leading:
                self._follow(form)

    def _there(self) -> Iterator[tuple[str, Form]]:
        for table in TABLES:
            for form in self._scale.forms:
                if self._scale.count(self._file, table, form):
                    yield table, form

    def _leads(self, table: str, form: Form) -> bool:
        """Tell whether a form leads to conversations: if it is rare, or only ever went by."""
        is_rare = self._scale.count(self._file, table, form) <= MOST[table]
        return is_rare or not self._scale.count(self._file, "said", form)

    @staticmethod
    def _match(table: str, *forms: Form) -> str:
        return " OR ".join([form.matches[table] for form in forms])

    def _lead(self, table: str, form: Form) -> bool:
        """Take every document that holds a form, or the latest; tell whether there are any that are meant."""
        weight = self._scale.weight(table, form) * SHARES[table]
        rarity = self._scale.rarity(self._file, form) if table == "said" else 1.0
        sought = Weighed(table, self._match(table, form), (HUMAN, AGENT))
        taken = list(occurrences(self._file, sought, self._wanted, MOST[table]))
        for session, doc, seq, worth in taken:
            self._places[doc] = session, seq
            often = worth / rarity  # how often and in how much text, as BM25 has it
            self._conversed(session).hold(form.word, (weight * often / (often + 1), seq, doc))
        return bool(taken)

    def _take_best(self, forms: list[Form]) -> None:
        """Take the documents that are worth most: all that is asked for is common, but not all of it together."""
        sought = Weighed("said", self._match("said", *forms), (HUMAN, AGENT), is_best=True)
        for session, doc, seq, _ in occurrences(self._file, sought, self._wanted, BEST):
            self._places[doc] = session, seq

    def _follow(self, form: Form) -> None:
        """Look for a common form in the documents that were taken."""
        worth = self._scale.weight("said", form) * _USUAL
        for doc in said_in(self._file, form.matches["said"], self._places):
            session, seq = self._places[doc]
            self._conversed(session).hold(form.word, (worth, seq, doc))

    def _conversed(self, session: int) -> ProximityScore:
        found = self.conversed.get(session)
        if found is None:
            found = self.conversed[session] = ProximityScore()
        return found
