"""A long session cut into stretches, as the index keeps them: so that a part of it can be told without the whole."""

from collections.abc import Iterator, Sequence

from retold.archive.index.writer import Timeline, TimelineChunk
from retold.ingest.turns import OPENINGS, openings
from retold.model.serialization import ENTRIES, bundled
from retold.model.session import Entry

LONG = 3 << 20
"""Bytes of files that are read for one session; from so many on, to read them takes longer than all else about a page."""
_MOST, _ROOM = 32, 256 << 10
"""Entries in a stretch, and bytes behind which a stretch ends."""


def timeline_of(timeline: Sequence[Entry]) -> Timeline:
    """Return a timeline as the index takes it."""
    outline = bundled(map(OPENINGS.packed, openings(timeline)))
    return Timeline(len(timeline), outline, _stretches(timeline))


def _stretches(timeline: Sequence[Entry]) -> Iterator[TimelineChunk]:
    """Yield stretches, cut from the beginning on: where a session grows, all but the last stay as they are."""
    waiting: list[bytes] = []
    size = 0
    for place, entry in enumerate(timeline, 1):
        waiting.append(ENTRIES.packed(entry))
        size += len(waiting[-1])
        if len(waiting) == _MOST or size >= _ROOM or place == len(timeline):
            yield TimelineChunk(place - len(waiting), bundled(waiting))
            waiting, size = [], 0
