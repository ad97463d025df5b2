"""Turns as the archive counts them: each begins with a person's prompt, and whatever comes before the first is of the first."""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator

    from retold.archive.record import Record


def turn_of(record: Record, session: int, seq: int) -> int:
    """Return the number of the turn that a place in the timeline is in, from 1."""
    asked = "SELECT count(*) FROM messages WHERE session = ? AND seq <= ? AND is_prompt"
    found = record.row(asked, (session, seq))
    return max(1, found[0] if found else 1)


def turn_places(record: Record, session: int) -> list[int]:
    """Return where each turn begins in the timeline; the first does at its start."""
    asked = "SELECT seq FROM messages WHERE session = ? AND is_prompt ORDER BY seq"
    prompts = [seq for (seq,) in record.rows(asked, (session,))]
    return [0, *prompts[1:]]


def answer_places(record: Record, session: int) -> Iterator[int]:
    """Yield where an agent says something that was not taken back, the last first."""
    asked = (
        "SELECT seq FROM messages WHERE session = ? AND role = 'assistant' AND NOT is_event AND fate = 'live'"
    )
    return (seq for (seq,) in record.rows(f"{asked} ORDER BY seq DESC", (session,)))
