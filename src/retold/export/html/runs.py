"""A conversation in the pieces that it fell into: what still holds, and what was taken back, compressed or replaced."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from retold.export.html.entries import EntryView, entry_view, is_shown, speaker
from retold.export.html.frame import RenderContext
from retold.export.html.signs import show_control_chars
from retold.export.transcript import one_line, plural
from retold.model.session import Entry, Message, words_of

_HEADINGS = {
    "rewound": "Taken back: the conversation went on as if this had not been said",
    "compacted": "Before the compression: the agent itself kept only a summary of this",
    "superseded": "Replaced: this was said again in another way",
    "copied": "Copied from an earlier session",
}
_OPEN = ("live", "compacted", "copied")
"""What happened all the same; the rest is a side branch, behind its heading until somebody asks."""
_PROMPT = 1_000

Numbered = tuple[int, Entry]


class EntryRun(msgspec.Struct, frozen=True):
    """Entries that follow each other and had the same fate."""

    fate: str
    """`live`, `rewound`, `compacted`, `superseded`, or `copied`."""
    heading: str
    """What became of them; nothing for those that still hold."""
    is_open: bool
    level: int
    entries: Iterator[EntryView]


class Prompt(msgspec.Struct, frozen=True):
    """A line of the table of contents."""

    anchor: str
    text: str
    fate: str


def runs(frame: RenderContext) -> Iterator[EntryRun]:
    """Yield the pieces of a conversation, each made when it is asked for."""
    shown = [(number, entry) for number, entry in _numbered(frame) if is_shown(entry, frame.choice)]
    for fate, group in groupby(shown, key=_fate_of):
        entries = list(group)
        messages = sum(isinstance(entry, Message) for _, entry in entries)
        heading = f"{_HEADINGS[fate]} ({plural(messages, 'message')})" if fate in _HEADINGS else ""
        yield EntryRun(fate, heading, fate in _OPEN, frame.level, _views(entries, frame))


def contents(frame: RenderContext) -> Iterator[Prompt]:
    """Yield what people said, a line each."""
    for number, entry in _numbered(frame):
        words = words_of(entry)
        if words is not None:
            text = show_control_chars(one_line(words[:_PROMPT])) or "(nothing)"
            yield Prompt(f"{frame.prefix}{number}", text, _fate_of((number, entry)))


def _numbered(frame: RenderContext) -> Iterator[Numbered]:
    """Number the messages from 1: the same ones have the same numbers, whatever else is shown; or all by their places."""
    if frame.first is not None:
        yield from enumerate(frame.telling.session.timeline, frame.first)
        return
    number = 0
    for entry in frame.telling.session.timeline:
        number += isinstance(entry, Message)
        yield number, entry


def _fate_of(numbered: Numbered) -> str:
    entry = numbered[1]
    return "copied" if entry.fate == "live" and not entry.own else entry.fate


def _views(entries: Sequence[Numbered], frame: RenderContext) -> Iterator[EntryView]:
    before: tuple[str | None, ...] = (None,)
    for number, entry in entries:
        now = speaker(entry)
        yield entry_view(entry, number, frame, goes_on=now == before != (None,))
        before = now
