"""How long the agents keep sessions, and which of them go soon: as the last sync found their settings."""

from __future__ import annotations

import time

from retold.archive.record import as_path, as_stored

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from retold.archive.record import Store

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
