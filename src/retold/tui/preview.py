"""The conversation that is chosen in the list, beside it: what is known of it, and how it begins or where it says it."""

from collections.abc import Iterator
from datetime import datetime

from retold.export.hits import hit_pieces
from retold.export.transcript import told
from retold.query.cards import Match
from retold.tui.answers import Archive, Pieces, beginning, fates
from retold.tui.card import facts

ENTRIES, LINES = 8, 80
"""How much is shown."""
LONGEST = 600


def preview(archive: Archive, match: Match, now: datetime) -> list[Pieces]:
    """Return the preview; of a conversation that was found by its text, what was said there."""
    key = match.card.key
    return [*facts(match.card, fates(archive, key), now), *_said(archive, match)]


def _said(archive: Archive, match: Match) -> Iterator[Pieces]:
    for hit in match.hits:
        yield []
        yield [("bar", "▸ "), *hit_pieces(hit)]
    first = max(0, match.hits[0].seq) if match.hits else 0
    session = beginning(archive, match.card.key, first, ENTRIES)
    if session is None:
        return
    if first:
        yield []
        yield [("faint", "… from there on:")]
    lines = [line for _, entry in told(session) for line in entry]
    for style, text in lines[:LINES]:
        yield [(style, text if len(text) <= LONGEST else text[:LONGEST] + "…")]
