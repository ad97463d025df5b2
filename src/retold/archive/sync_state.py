"""What a sync asked of the world, and what was answered."""

from __future__ import annotations

import time

from retold.archive.queries.conditions import OF_SESSIONS
from retold.archive.store import as_path, as_stored

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from retold.archive.store import Store
    from retold.model.session import Evidence

    Answer = tuple[str, str | bytes, object]
    """Of which kind, what about, and what was answered."""

    Told = tuple[str, Evidence, str | None]
    """A root, how it is known, and the agent's own name for it."""


HIDDEN = "forgotten:"
"""Stands before the keyed hash of a path that only forgotten sessions lead to: `archive/keyed_hashes.py`."""
BELOW = "below"
"""The kind of an answer that names a folder in which hidden paths are."""


def kept_answers(record: Store, scope: str) -> Iterator[Answer]:
    """Yield the answers of the last sync of a scope."""
    return record.rows("SELECT kind, asked, answer FROM answers WHERE scope = ?", (scope,))


def keep_answers(record: Store, scope: str, answers: Iterable[Answer]) -> None:
    """Keep the answers of a sync in place of those of the one before; what stays the same is not written again."""
    ask = record.connection.execute
    new = {(kind, asked): answer for kind, asked, answer in answers}
    for kind, asked, answer in list(kept_answers(record, scope)):
        if (kind, asked) not in new:
            ask("DELETE FROM answers WHERE scope = ? AND kind = ? AND asked = ?", (scope, kind, asked))
        elif new[kind, asked] == answer:
            del new[kind, asked]
    record.connection.executemany(
        "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)",
        [(scope, asked, kind, answer) for (kind, asked), answer in new.items()],
    )


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


DAY = 86_400
SOON = 7 * DAY
"""Seconds: what goes later than that is not worth a word yet."""
_NONE = "-"
_SAID = """
SELECT count(*), max(unixepoch(ended_at)) FROM sessions
WHERE +agent = ?1 AND ended_at < strftime('%Y-%m-%dT%H:%M:%S', ?2, 'unixepoch') AND kind IN ('main', 'fork') AND is_spoken
AND coalesce(native_key, '') NOT GLOB ?3 AND EXISTS (
    SELECT 1 FROM session_sources JOIN sources ON sources.id = source
    WHERE session = sessions.id AND home = ?4 AND is_there AND sources.cluster IS NOT NULL
)
"""
_WRITTEN = """
SELECT count(DISTINCT session), max(modified_ns) / 1000000000 FROM sources
JOIN session_sources ON source = sources.id JOIN sessions ON sessions.id = session
WHERE sources.agent = ?1 AND modified_ns < ?2 * 1000000000 AND kind IN ('main', 'fork') AND is_spoken
AND coalesce(native_key, '') NOT GLOB ?3 AND home = ?4 AND is_there AND sources.cluster IS NOT NULL
"""
_ASKED = {"said": _SAID, "written": _WRITTEN}


class Due:
    """Sessions that an agent deletes soon."""

    __slots__ = ("agent", "count", "home", "seconds")

    def __init__(self, agent: str, home: str, count: int, seconds: float) -> None:
        self.agent, self.home, self.count = agent, home, count
        self.seconds = seconds
        """Until the last of them is due; not above nought where all are."""


def keep_limits(
    record: Store, agent: str, limits: Iterable[tuple[str, float | None, str, str | None]]
) -> None:
    """Keep, for each home of an agent: for how many seconds, counted from when, and what is spared."""
    record.connection.execute("DELETE FROM facts WHERE name GLOB ?", (f"limit {agent} *",))
    for number, (home, seconds, counted_from, spared) in enumerate(limits):
        stored = as_stored(home)
        if seconds is not None and isinstance(
            stored, str
        ):  # a home whose name is no text is told by doctor only
            record.set_fact(f"limit {agent} {number}", f"{seconds} {counted_from} {spared or _NONE} {stored}")


def due_soon(record: Store) -> Iterator[Due]:
    """Yield, for each home of which an agent deletes something soon, how much; nothing but the archive is asked."""
    now = time.time()
    # As a list: what is asked next must not meet an open question.
    for name, value in list(record.rows("SELECT name, value FROM facts WHERE name GLOB 'limit *'")):
        agent = name.split()[1]
        seconds, counted_from, spared, home = value.split(" ", 3)
        since = now + SOON - float(seconds)
        count, last = record.row(_ASKED[counted_from], (agent, int(since), spared, as_stored(home))) or (0, 0)
        if count:
            yield Due(agent, as_path(home), count, (last or now) + float(seconds) - now)
