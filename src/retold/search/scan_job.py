"""A scan of all text, as it is asked for and as it is told: values between whoever asks and a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from retold.archive.store import as_text
from retold.search.access import EVERYTHING, AccessScope
from retold.search.results import MessageHit, SearchResult


class ResultPlace(msgspec.Struct, frozen=True):
    """A place in a conversation where it stands."""

    seq: int
    """In the timeline of the full view."""
    role: str | None
    tool: str | None
    fate: str
    snippet: str
    matches: tuple[tuple[int, int], ...]


class ResultItem(msgspec.Struct, frozen=True, tag=True):
    """A conversation, and where in it it stands."""

    session: int
    """Its id in this archive."""
    places: tuple[ResultPlace, ...] = ()


def holding_of(conversation: SearchResult) -> ResultItem:
    """Return what a search found as a value."""
    return ResultItem(conversation.session, tuple(map(_place_of, conversation.hits)))


def _place_of(hit: MessageHit) -> ResultPlace:
    matches = tuple((start, end) for start, end in hit.matches)
    return ResultPlace(hit.seq, hit.role, hit.tool, hit.fate, as_text(hit.snippet), matches)


BOUND = 5.0
"""Seconds after which a scan is ended: a pattern can take longer than anybody lives."""

End = Literal["done", "stopped", "broken", "busy", "unclear"]
"""How a scan ended: broken is one that ended by itself before it was done."""


class ScanJob(msgspec.Struct, frozen=True):
    """What to look for. It is told on the input: every user of a machine sees what a process was started with."""

    text: str
    is_regex: bool
    filters: Mapping[str, str]
    limit: int
    folder: bytes = b""
    """Of the archive."""
    reach: AccessScope = EVERYTHING
    """How far whoever asks may see."""
    is_redacted: bool = False
    """Whether what is told of the text around is without secrets."""


class Trouble(msgspec.Struct, frozen=True, tag=True):
    """Why there is nothing to look for."""

    message: str


class Scanned(msgspec.Struct, frozen=True):
    """What a scan came to."""

    holdings: tuple[ResultItem, ...] = ()
    end: End = "done"
    message: str = ""
    """Why there is nothing to look for."""
