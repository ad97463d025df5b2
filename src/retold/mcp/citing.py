"""How a conversation is cited: by its key, so that it can be asked for again, and in a few words, so that it need not be."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from msgspec.structs import replace

from retold.export.text import times
from retold.export.text.escape import uncut
from retold.projects.matching import last_name
from retold.search.pages import SessionSummary

_TITLE = 90


def cited(card: SessionSummary) -> str:
    """Return a conversation in a line: its key, when it ended, its project, its title."""
    facts = [card.key, moment(card.ended_at), last_name(card.root) if card.root else None, title(card.title)]
    return " · ".join(fact for fact in facts if fact)


def cleanly_cited(card: SessionSummary, clean: Callable[[str], str]) -> str:
    """Return the same without secrets, taken out by somebody who knows more of them than the title gives away."""
    return cited(card if card.title is None else replace(card, title=clean(uncut(card.title) or "")))


def moment(at: datetime | None) -> str | None:
    """Return a time to the minute, in UTC: keys are in UTC as well."""
    return None if at is None else times.moment(at, is_utc=True)


def title(text: str | None) -> str | None:
    """Return a title that leaves room for what is told below it; it is cut between words, see `uncut`."""
    line = " ".join((text or "").split())
    return uncut(line if len(line) <= _TITLE else f"{line[: _TITLE - 1]}…")
