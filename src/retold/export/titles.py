"""Titles, where they are told to somebody who must not see all of a conversation."""

from __future__ import annotations

_CUT = "…"


def uncut(title: str | None) -> str | None:
    """Return a title without the word in which it was cut: half a secret is not known for what it is."""
    if title is None or not title.endswith(_CUT):
        return title
    return f"{title.rpartition(' ')[0]} {_CUT}".lstrip()
