"""What Claude Code deletes by itself: transcripts whose files were not written to for `cleanupPeriodDays`, at every start.

Evidence: `cli.js` of 1.0.100, 2.0.76 and 2.1.100. Nought deleted everything at once up to 2.0; 2.1 rejects it, and keeps all.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from retold.agents.claude.places import find
from retold.agents.protocol import AgentHome, Ghost, Limit, Source, Threat
from retold.model.problem import Problem, problem
from retold.reading.diagnostics import shifted
from retold.reading.disk import modified_at, open_file, printable, read_settings

DAYS = 30
_DAY = 86_400
_LONGEST = 36_500


def ghosts(home: AgentHome) -> Iterator[Ghost]:  # noqa: ARG001 - as every agent has it
    """Yield nothing: Claude Code leaves no files without conversation beside those that have one."""
    return iter(())


def limit(home: AgentHome) -> Limit:
    """Return for how long a transcript is kept that nothing is added to."""
    path = home.path / "settings.json"
    found = read_settings(path, home.disk)
    if isinstance(found, Problem):
        return Limit(DAYS * _DAY, "written", problems=(found,))
    days = found.get("cleanupPeriodDays", DAYS)
    if type(days) not in (int, float) or days < 0:
        odd = problem("unexpected-shape", "no number of days", printable(path), pointer="/cleanupPeriodDays")
        return Limit(DAYS * _DAY, "written", problems=(odd,))
    return Limit(min(days, _LONGEST) * _DAY, "written")


def retention(home: AgentHome) -> Iterator[Threat]:
    """Yield every transcript, with the time from which on it is too old."""
    seconds = limit(home).seconds or 0
    for source in find(home):
        written_at = _written_at(source) if isinstance(source, Source) else None
        if isinstance(source, Source) and written_at is not None:
            at = shifted(written_at, timedelta(seconds=seconds)) if seconds else None
            yield Threat(source, source.cluster, "expired", at)


def _written_at(source: Source) -> datetime | None:
    file = open_file(source.path, source.disk)
    if isinstance(file, Problem):
        return None
    file.close()
    return min(modified_at(file.modified_ns), datetime(2500, 1, 1, tzinfo=UTC))
