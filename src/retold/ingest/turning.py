"""Turns by their numbers: each begins with what a person said, as in an outline; whatever comes before the first is of the first."""

from __future__ import annotations

from retold.archive.queries.listing import has_copied_words, prompt_places
from retold.archive.store import Store


def turn_places(record: Store, session: int, key: str) -> list[int]:
    """Return where each turn begins in the timeline; the first does at its start.

    The archive knows that without reading a session, but for one that begins with what was said in another.
    """
    if has_copied_words(record, session):
        from retold.ingest.slices import turns  # which brings all that reads sessions with it

        places = [turn.place for turn in turns(record, key)]
    else:
        places = prompt_places(record, session)
    return [0, *places[1:]]
