"""Sessions in the order in which people look for them."""

from __future__ import annotations

from retold.archive.conditions import LISTED, teach
from retold.archive.listing import NOT_BELOW_OTHERS, rows_named, session_rows, summary_texts, titles
from retold.projects.matching import is_meant

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from retold.archive.conditions import Condition
    from retold.archive.listing import SessionRow
    from retold.archive.record import Record
    from retold.query.wanted import Wanted


def listed(
    record: Record, wanted: Wanted, limit: int | None = None, *, every_kind: bool = False
) -> list[SessionRow]:
    """Return the meant sessions, the newest first; subagents only where their parent is not there."""
    return session_rows(record, [*_meant(record, wanted, every_kind=every_kind), NOT_BELOW_OTHERS], limit)


def listed_keys(record: Record, wanted: Wanted) -> list[str]:
    """Return the keys of the sessions that a list shows, the newest first."""
    chosen = [*_meant(record, wanted, every_kind=False), NOT_BELOW_OTHERS]
    return [key for key, _ in titles(record, chosen)]


def outlines(record: Record, wanted: Wanted, limit: int | None = None) -> Iterator[str]:
    """Yield the JSON form of the sessions that a list shows, the newest first."""
    return summary_texts(record, [*_meant(record, wanted, every_kind=False), NOT_BELOW_OTHERS], limit)


def titled(record: Record, wanted: Wanted) -> list[tuple[str, str | None]]:
    """Return key and title of all meant sessions of whatever kind; subagents only where their parent is not there."""
    return titles(record, [*_meant(record, wanted, every_kind=True), NOT_BELOW_OTHERS])


def summaries(
    record: Record, wanted: Wanted, limit: int | None = None, *, every_kind: bool = False
) -> Iterator[str]:
    """Yield the JSON form of the meant sessions, subagents too, the newest first."""
    return summary_texts(record, _meant(record, wanted, every_kind=every_kind), limit)


def _meant(record: Record, wanted: Wanted, *, every_kind: bool) -> list[Condition]:
    teach(record.connection, is_meant)
    return [*wanted.sessions, *([] if every_kind else [LISTED])]


def named(record: Record, text: str) -> list[tuple[str, str | None]]:
    """Return key and title of the sessions that a text may mean: a key, a native id, or the start of either."""
    return [(key, title) for _, key, title in rows_meant(record, text)]


def rows_meant(
    record: Record, text: str, conditions: Iterable[Condition] = ()
) -> list[tuple[int, str, str | None]]:
    """Return the same with the id in the archive, of those of which conditions hold; a native id means the main session."""
    found = rows_named(record, text, conditions)
    main = [row for row in found if row[3] != "subagent"]
    return [(number, key, title) for number, key, title, _ in main or found]
