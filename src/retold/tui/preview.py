"""The conversation that is chosen in the list, beside it: what is known of it, and how it begins or where it says it."""

from collections.abc import Iterator
from datetime import datetime

from retold.export.text.search_results import hit_pieces
from retold.export.transcript import transcript_lines
from retold.search.quick_find import TitleMatch
from retold.tui.answers import ArchiveQueries, StyledLine, beginning, fates
from retold.tui.card import facts

ENTRIES, LINES = 8, 80
"""How much is shown."""
LONGEST = 600


def preview(archive: ArchiveQueries, match: TitleMatch, now: datetime) -> list[StyledLine]:
    """Return the preview; of a conversation that was found by its text, what was said there."""
    key = match.card.key
    return [*facts(match.card, fates(archive, key), now), *_said(archive, match)]


def _said(archive: ArchiveQueries, match: TitleMatch) -> Iterator[StyledLine]:
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
    lines = [line for _, entry in transcript_lines(session) for line in entry]
    for style, text in lines[:LINES]:
        yield [(style, text if len(text) <= LONGEST else text[:LONGEST] + "…")]
