"""A transcript page by page: some entries at a time, in rows that fit the screen, and looked through without being shown."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from retold.export.transcript import TranscriptLine, TranscriptOptions, about, transcript_lines
from retold.model.session import View
from retold.sessions.load import load_session
from retold.sessions.pages import SessionTurn, TimelineSlice, slices, turns
from retold.tui.data import ArchiveQueries
from retold.tui.widgets import plain, wrapped

ENTRIES = 80
"""How many entries a page has."""
GUTTER = "┆ "
"""Stands before what its agent holds no longer; the heading says in a word what became of it."""


class TranscriptReading(msgspec.Struct, frozen=True):
    """Which conversation is read, and how."""

    archive: ArchiveQueries
    key: str
    view: View = "full"
    wanted: TranscriptOptions = TranscriptOptions()


class ScreenRow(NamedTuple):
    """A row of the screen: what it is, the entry it belongs to, and the line of that entry."""

    style: str
    text: str
    place: int
    line: int


class TranscriptPage(NamedTuple):
    """Rows of the entries from one place to another, of so many."""

    first: int
    end: int
    total: int
    rows: list[ScreenRow]


def page(reading: TranscriptReading, first: int, columns: int, until: int | None = None) -> TranscriptPage:
    """Return the entries from a place on, and up to another; before the first of all, what is known of the whole."""
    rows: list[ScreenRow] = []
    first = place = max(first, 0)
    total = 0
    for part in _slices(reading, first, ENTRIES if until is None else until - first):
        rows += _head(part, columns) if part.first == 0 else ()
        for number, lines in transcript_lines(part.session, reading.wanted):
            is_live = part.session.timeline[number].fate == "live"
            rows += _rows(lines, part.first + number, columns, is_live=is_live)
        place, total = part.first + len(part.session.timeline), part.total
        if until is None or place >= until:
            break
    if not total and not rows:
        return TranscriptPage(
            0, 0, 0, [ScreenRow("bad", "This conversation is no longer in the archive.", 0, 0)]
        )
    return TranscriptPage(min(first, place), place, total, rows)


def _slices(reading: TranscriptReading, first: int, count: int) -> Iterator[TimelineSlice]:
    with reading.archive.opened() as record:
        yield from slices(record, reading.key, count, first, reading.view)


def _head(part: TimelineSlice, columns: int) -> Iterator[ScreenRow]:
    title, *facts = about(part.session)
    # The screen has the title in its first line, unless it is too long for that.
    return _rows(facts if len(title.text) <= columns else [title, *facts], -1, columns, is_live=True)


def _rows(lines: Iterable[TranscriptLine], place: int, columns: int, *, is_live: bool) -> Iterator[ScreenRow]:
    gutter = "" if is_live else GUTTER
    for number, line in enumerate(lines):
        for row in wrapped(plain(line.text), columns - len(gutter)):
            style = line.style if is_live or line.style != "plain" else "faint"
            yield ScreenRow(style, (gutter if row or number else "") + row, place, number)


def outline(reading: TranscriptReading) -> list[SessionTurn]:
    """Return the turns of a conversation, by their places in the view that is read."""
    with reading.archive.opened() as record:
        return list(turns(record, reading.key, reading.view))


def same_place(reading: TranscriptReading, other: View, place: int) -> int:
    """Return where in another view a person is who is at a place of this one: at the message, or that before it."""
    with reading.archive.opened() as record:
        here, there = (load_session(record, reading.key, view) for view in (reading.view, other))
    if here is None or there is None:
        return 0
    places = {entry.id: number for number, entry in enumerate(there.timeline) if entry.id is not None}
    before = reversed(here.timeline[: place + 1])
    return next((places[entry.id] for entry in before if entry.id in places), 0)


def next_match(
    reading: TranscriptReading, words: str, start: tuple[int, int], step: int
) -> tuple[int, int] | None:
    """Return the entry and the line after a place, or before it, that holds some letters; the end leads to the beginning."""
    needle = words.casefold()
    found = [where for where, text in _all_lines(reading) if needle in text.casefold()]
    if not found:
        return None
    after = [where for where in found if (where > start if step > 0 else where < start)]
    if after:
        return after[0] if step > 0 else after[-1]
    return found[0] if step > 0 else found[-1]


def _all_lines(reading: TranscriptReading) -> Iterator[tuple[tuple[int, int], str]]:
    for part in _slices(reading, 0, 5 * ENTRIES):
        for number, lines in transcript_lines(part.session, reading.wanted):
            place = part.first + number
            yield from (((place, line), text) for line, (_, text) in enumerate(lines))
