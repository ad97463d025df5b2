"""Where an answer was left off, to be gone on with."""

from __future__ import annotations

import re

import msgspec

_FORM = re.compile(r"([0-9]{1,9})\.([0-9]{1,12})", re.ASCII)


class BadCursor(Exception):  # noqa: N818 - it says what happened
    """What was asked cannot be answered; the message tells the agent what to ask instead."""


class Cursor(msgspec.Struct, frozen=True, order=True):
    """The passage that comes next, and how much of it was told already."""

    passage: int = 0
    told: int = 0

    def __str__(self) -> str:
        return f"{self.passage}.{self.told}"


def cursor_of(text: str) -> Cursor:
    """Return the place that a text means; no text is the beginning."""
    if not text:
        return Cursor()
    found = _FORM.fullmatch(text)
    if found is None:
        raise BadCursor(
            f"{text[:40]!r} is no cursor: give back the one that the last answer ended with, or none"
        )
    return Cursor(int(found[1]), int(found[2]))
