"""A scan of all text, as it is asked for and as it is told: values between whoever asks and a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from retold.query.holding import ResultItem
from retold.query.reach import EVERYTHING, AccessScope

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
