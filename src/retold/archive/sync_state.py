"""State that one sync leaves for the next: dependencies, clues to projects, and how long agents keep sessions."""

from __future__ import annotations

import time

from retold.archive.store import as_path, as_stored

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from retold.archive.store import Store
    from retold.model.session import Evidence

    Dependency = tuple[str, str | bytes, object]
    """What a sync looked at: kind, subject and the value that it found. Equal values mean that nothing changed."""

    ProjectClue = tuple[str, Evidence, str | None]
    """Root of a project, evidence for it, and the agent's own name for it."""


HIDDEN_PREFIX = "forgotten:"
"""Stands before the keyed hash of a path that only forgotten sessions lead to: `archive/annotations.py`."""
HIDDEN_FOLDER = "below"
"""Kind of the dependency on a folder that holds hidden paths."""


def load_dependencies(store: Store, scope: str) -> Iterator[Dependency]:
    """Yield the dependencies of the last sync of a scope."""
    return store.rows("SELECT kind, subject, value FROM dependencies WHERE scope = ?", (scope,))


def write_dependencies(store: Store, scope: str, dependencies: Iterable[Dependency]) -> None:
    """Write the dependencies of a sync in place of those of the last one; equal rows are not written again."""
    new = {(kind, subject): value for kind, subject, value in dependencies}
    for kind, subject, value in list(load_dependencies(store, scope)):
        if (kind, subject) not in new:
            sql = "DELETE FROM dependencies WHERE scope = ? AND kind = ? AND subject = ?"
            store.connection.execute(sql, (scope, kind, subject))
        elif new[kind, subject] == value:
            del new[kind, subject]
    store.connection.executemany(
        "INSERT OR REPLACE INTO dependencies VALUES (?, ?, ?, ?)",
        [(scope, subject, kind, value) for (kind, subject), value in new.items()],
    )


def write_dependency(store: Store, scope: str, kind: str, subject: str | bytes, value: object) -> None:
    """Write the value of one dependency of the last sync of a scope."""
    sql = "UPDATE dependencies SET value = ? WHERE scope = ? AND kind = ? AND subject = ?"
    store.connection.execute(sql, (value, scope, kind, subject))


def load_clues(store: Store, home: str) -> set[ProjectClue]:
    """Return the clues of a home to its projects."""
    return set(store.rows("SELECT root, evidence, native_key FROM clues WHERE home = ?", (as_stored(home),)))


def load_all_clues(store: Store) -> Iterator[tuple[str, ProjectClue]]:
    """Yield the clues of all homes, each with its home."""
    for home, *clue in store.rows("SELECT home, root, evidence, native_key FROM clues"):
        yield as_path(home), tuple(clue)


def write_clues(store: Store, home: str, clues: Iterable[ProjectClue]) -> None:
    """Write the clues of a home in place of its earlier ones."""
    stored = as_stored(home)
    store.connection.execute("DELETE FROM clues WHERE home = ?", (stored,))
    rows = [(stored, native_key, root, evidence) for root, evidence, native_key in clues]
    store.connection.executemany("INSERT INTO clues VALUES (?, ?, ?, ?)", rows)


def load_roots(store: Store) -> dict[str, str]:
    """Return roots of projects by their hashes."""
    return dict(store.rows("SELECT hash, root FROM roots"))


def write_roots(store: Store, roots: Mapping[str, str]) -> None:
    """Write roots of projects by their hashes."""
    store.connection.executemany("INSERT OR REPLACE INTO roots VALUES (?, ?)", roots.items())


def count_problems(store: Store) -> int:
    """Return how many problems sessions have, without notes and damaged originals, which count as problems of files."""
    sql = "SELECT count(*) FROM problems WHERE severity <> 'note' AND code <> 'original-damaged'"
    return int(next(store.rows(sql))[0])


DAY = 86_400
SOON = 7 * DAY
"""Seconds. Later deletions are not mentioned yet."""
_NO_EXCEPTION = "-"
_LAST_SAID = """
SELECT count(*), max(unixepoch(ended_at)) FROM sessions
WHERE +agent = ?1 AND ended_at < strftime('%Y-%m-%dT%H:%M:%S', ?2, 'unixepoch') AND kind IN ('main', 'fork') AND is_spoken
AND coalesce(native_key, '') NOT GLOB ?3 AND EXISTS (
    SELECT 1 FROM session_sources JOIN sources ON sources.id = source
    WHERE session = sessions.id AND home = ?4 AND is_present AND sources.cluster IS NOT NULL
)
"""
_LAST_WRITTEN = """
SELECT count(DISTINCT session), max(modified_ns) / 1000000000 FROM sources
JOIN session_sources ON source = sources.id JOIN sessions ON sessions.id = session
WHERE sources.agent = ?1 AND modified_ns < ?2 * 1000000000 AND kind IN ('main', 'fork') AND is_spoken
AND coalesce(native_key, '') NOT GLOB ?3 AND home = ?4 AND is_present AND sources.cluster IS NOT NULL
"""
_EXPIRING = {"said": _LAST_SAID, "written": _LAST_WRITTEN}


class ExpiringSessions:
    """Sessions of a home that an agent deletes soon."""

    __slots__ = ("agent", "count", "home", "seconds")

    def __init__(self, agent: str, home: str, count: int, seconds: float) -> None:
        self.agent, self.home, self.count = agent, home, count
        self.seconds = seconds
        """Until the last of them is due; zero or less if all are due."""


def write_limits(
    store: Store, agent: str, limits: Iterable[tuple[str, float | None, str, str | None]]
) -> None:
    """Write the limits of an agent: home, seconds, from when they count, and the pattern of project keys that are spared."""
    store.connection.execute("DELETE FROM facts WHERE name GLOB ?", (f"limit {agent} *",))
    for number, (home, seconds, counted_from, spared) in enumerate(limits):
        stored = as_stored(home)
        if seconds is not None and isinstance(stored, str):  # only doctor reports a home that is not UTF-8
            store.set_fact(
                f"limit {agent} {number}", f"{seconds} {counted_from} {spared or _NO_EXCEPTION} {stored}"
            )


def find_expiring(store: Store) -> Iterator[ExpiringSessions]:
    """Yield the sessions that an agent deletes soon, by home; only the archive is read."""
    now = time.time()
    # As a list: the next query must not run while this one is open.
    for name, value in list(store.rows("SELECT name, value FROM facts WHERE name GLOB 'limit *'")):
        agent = name.split()[1]
        seconds, counted_from, spared, home = value.split(" ", 3)
        since = now + SOON - float(seconds)
        count, last = store.row(_EXPIRING[counted_from], (agent, int(since), spared, as_stored(home))) or (
            0,
            0,
        )
        if count:
            yield ExpiringSessions(agent, as_path(home), count, (last or now) + float(seconds) - now)
