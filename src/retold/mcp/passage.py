"""A piece of an answer: what it is and where it stands, in our words, and what stands there, in theirs."""

from __future__ import annotations

import re

import msgspec

from retold.export.text.escape import HIDDEN, pictured
from retold.mcp.budget import fitting, units

# A model reads what no person sees: soft hyphens, joiners of graphemes, marks of Mongolian, and selectors of variants
# beyond the usual ones. Joiners of emoji and scripts stay.
_UNSEEN = re.compile(f"[{HIDDEN}\xad\u034f\u180b-\u180f\U000e0000-\U000e01ef]")
LONGEST_HEAD = 240
_WIDEST_HEAD = 360
"""In units of the budget: some letters take more room than others, and the smallest answer has to hold a head."""
QUOTE = "> "


class Passage(msgspec.Struct, frozen=True):
    """What is not told apart, unless it is longer than all that may be told."""

    head: str
    """One line: the session, the turn, when, who. It may hold a title, which is as little ours as the quote."""
    quote: str = ""
    is_clean: bool = False
    """Whether secrets are out of the quote already."""
    numbers: int = 1
    """How many numbers it takes up, where there were some before it of which nothing is told."""


def plain(text: str) -> str:
    """Return text in which nothing is hidden from a person who would read it."""
    return pictured(text.replace("\r\n", "\n"), _UNSEEN)


def head_line(text: str) -> str:
    """Return a head on one line, no longer than heads are."""
    line = " ".join(plain(text).split())
    if len(line) <= LONGEST_HEAD and units(line) <= _WIDEST_HEAD:
        return line
    return f"{line[: min(fitting(line, _WIDEST_HEAD), LONGEST_HEAD - 1)]}…"


def quoted(text: str) -> str:
    """Return what others said with every line marked: none of it can pass for a line of ours."""
    return "\n".join(f"{QUOTE}{line}" for line in text.split("\n"))
