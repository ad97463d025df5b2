"""Where people and agents spoke in a session, as the archive knows it without reading the session."""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator

    from retold.archive.record import Store


def prompt_places(record: Store, session: int) -> list[int]:
    """Return where in the timeline somebody said something that was not copied as a mere message."""
    asked = "SELECT seq FROM messages WHERE session = ? AND is_prompt ORDER BY seq"
    return [seq for (seq,) in record.rows(asked, (session,))]


def has_copied_words(record: Store, session: int) -> bool:
    """Tell whether there may be words of a person in it that count as prompts in another session alone."""
    asked = "SELECT 1 FROM messages WHERE session = ? AND copied AND role = 'user' AND NOT is_event AND NOT is_prompt"
    return record.row(asked, (session,)) is not None


def answer_places(record: Store, session: int) -> Iterator[int]:
    """Yield where an agent says something that was not taken back, the last first."""
    asked = (
        "SELECT seq FROM messages WHERE session = ? AND role = 'assistant' AND NOT is_event AND fate = 'live'"
    )
    return (seq for (seq,) in record.rows(f"{asked} ORDER BY seq DESC", (session,)))
