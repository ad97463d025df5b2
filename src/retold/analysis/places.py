"""Where in a session something stands: by its entry, and by the turn that a person would look for."""

from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from retold.model.session import Entry, words_of


class TurnPlace(msgspec.Struct, frozen=True, gc=False):
    """A place in a timeline."""

    seq: int
    """Of the entry, from 0."""
    turn: int
    """How many times a person had spoken by then: the number of the turn in an outline; 0 before anybody has."""
    at: datetime | None


class PlacedEntry(msgspec.Struct, frozen=True, gc=False):
    """An entry with its place."""

    place: TurnPlace
    entry: Entry

    @property
    def is_taken_back(self) -> bool:
        """Whether a person took it back."""
        return self.entry.fate == "rewound"


def placed(entries: Iterable[Entry]) -> Iterator[PlacedEntry]:
    """Yield the entries that count, from a whole timeline; those that do not still have their places."""
    turn = 0
    for seq, entry in enumerate(entries):
        turn += words_of(entry) is not None
        if entry.own and entry.fate != "superseded":
            yield PlacedEntry(TurnPlace(seq, turn, entry.at), entry)
