"""Where projects lie, as the homes say and as was found out."""

from __future__ import annotations

from retold.archive.conditions import OF_SESSIONS
from retold.archive.record import as_path, as_stored

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from retold.archive.record import Store
    from retold.model.session import Evidence

    Told = tuple[str, Evidence, str | None]
    """A root, how it is known, and the agent's own name for it."""


def clues_of(record: Store, home: str) -> set[Told]:
    """Return what a home said about its projects."""
    return set(record.rows("SELECT root, evidence, native_key FROM clues WHERE home = ?", (as_stored(home),)))


def all_clues(record: Store) -> Iterator[tuple[str, Told]]:
    """Yield what every home said, each with its home."""
    for home, *told in record.rows("SELECT home, root, evidence, native_key FROM clues"):
        yield as_path(home), tuple(told)


def keep_clues(record: Store, home: str, told: Iterable[Told]) -> None:
    """Keep what a home says, in place of what it said before."""
    place = as_stored(home)
    record.connection.execute("DELETE FROM clues WHERE home = ?", (place,))
    rows = [(place, native_key, root, evidence) for root, evidence, native_key in told]
    record.connection.executemany("INSERT INTO clues VALUES (?, ?, ?, ?)", rows)


def roots(record: Store) -> dict[str, str]:
    """Return the roots that were found by their hashes."""
    return dict(record.rows("SELECT hash, root FROM roots"))


def is_project_known(record: Store, name: str) -> bool:
    """Tell whether a filter means the project of some session; SQLite must have been taught `is_meant`."""
    asked = f"SELECT 1 FROM sessions WHERE {OF_SESSIONS['project']} LIMIT 1"  # noqa: S608 - ours
    return record.row(asked, (name,)) is not None


def hashes_without_roots(record: Store) -> set[str]:
    """Return the hashes of the projects whose folders are not known, or only guessed."""
    asked = "SELECT DISTINCT hash FROM sessions WHERE hash IS NOT NULL AND evidence IN ('none', 'guessed')"
    return {found for (found,) in record.rows(asked)}


def keep_roots(record: Store, found: Mapping[str, str]) -> None:
    """Keep roots that were found by their hashes."""
    record.connection.executemany("INSERT OR REPLACE INTO roots VALUES (?, ?)", found.items())
