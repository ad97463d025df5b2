"""Sessions in the order in which people look for them."""

from __future__ import annotations

from retold.archive.queries.conditions import CONVERSATIONS, NOT_BELOW_OTHERS, of_key, register_functions
from retold.archive.queries.listing import heading_rows, rows_named, session_rows, summary_texts, titles
from retold.projects.matching import is_meant

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from retold.archive.queries.conditions import Condition
    from retold.archive.queries.listing import SessionRow
    from retold.archive.store import Store
    from retold.query.wanted import Filters


class Heading:
    """A session as one line shows it."""

    __slots__ = ("ended_at", "hash", "key", "native_key", "root", "title")

    def __init__(  # noqa: PLR0913 - one for each column
        self,
        key: str,
        title: str | None,
        root: str | None,
        native_key: str | None,
        project_hash: str | None,
        ended_at: str | None,
    ) -> None:
        self.key, self.title, self.root, self.native_key = key, title, root, native_key
        self.hash, self.ended_at = project_hash, ended_at

    @property
    def project(self) -> str:
        """What tells its project from all others; sessions without any project share an empty one."""
        return self.hash or self.root or self.native_key or ""


def listed(
    record: Store, wanted: Filters, limit: int | None = None, *, every_kind: bool = False
) -> list[SessionRow]:
    """Return the matching conversations, the newest first; with `every_kind` all sessions, subagents too."""
    return session_rows(record, _meant(record, wanted, every_kind=every_kind), limit)


def listed_keys(record: Store, wanted: Filters) -> list[str]:
    """Return the keys of the sessions that a list shows, the newest first."""
    return [key for key, _ in titles(record, _meant(record, wanted, every_kind=False))]


def outlines(record: Store, wanted: Filters, limit: int | None = None) -> Iterator[str]:
    """Yield the JSON form of the sessions that a list shows, the newest first."""
    return summary_texts(record, _meant(record, wanted, every_kind=False), limit)


def titled(record: Store, wanted: Filters) -> list[tuple[str, str | None]]:
    """Return key and title of all meant sessions of whatever kind; subagents only where their parent is not there."""
    return titles(record, [*_meant(record, wanted, every_kind=True), NOT_BELOW_OTHERS])


def headings(record: Store, wanted: Filters) -> list[Heading]:
    """Return the sessions of every kind that match; subagents only where their parent is not there."""
    conditions = [*_meant(record, wanted, every_kind=True), NOT_BELOW_OTHERS]
    return [Heading(*row) for row in heading_rows(record, conditions)]


def headings_of(record: Store, keys: Iterable[str]) -> list[Heading]:
    """Return the sessions with the given keys."""
    return [Heading(*row) for key in keys for row in heading_rows(record, [of_key(key)])]


def summaries(
    record: Store, wanted: Filters, limit: int | None = None, *, every_kind: bool = False
) -> Iterator[str]:
    """Yield the JSON form of what `listed` returns, in its order."""
    return summary_texts(record, _meant(record, wanted, every_kind=every_kind), limit)


def _meant(record: Store, wanted: Filters, *, every_kind: bool) -> list[Condition]:
    register_functions(record.connection, is_meant)
    return [*wanted.sessions, *([] if every_kind else CONVERSATIONS)]


def named(record: Store, text: str) -> list[tuple[str, str | None]]:
    """Return key and title of the sessions that a text may mean: a key, a native id, or the start of either."""
    return [(key, title) for _, key, title in rows_meant(record, text)]


def rows_meant(
    record: Store, text: str, conditions: Iterable[Condition] = ()
) -> list[tuple[int, str, str | None]]:
    """Return the same with the id in the archive, of those of which conditions hold; a native id means the main session."""
    found = rows_named(record, text, conditions)
    main = [row for row in found if row[3] != "subagent"]
    return [(number, key, title) for number, key, title, _ in main or found]
