"""How much of what there is was read: told at the end of every sync."""

from __future__ import annotations

from retold.archive.queries.lookups import count_problems

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Sequence

    from retold.archive.store import Store


class CoverageCount:
    """Files found, read and unchanged; sessions that are new; problems in all of them."""

    __slots__ = ("found", "new_sessions", "problems", "read", "seconds", "unchanged")

    def __init__(  # noqa: PLR0913 - as many as the contract names
        self, found: int, read: int, unchanged: int, new_sessions: int, problems: int, seconds: float
    ) -> None:
        self.found, self.read, self.unchanged = found, read, unchanged
        self.new_sessions, self.problems, self.seconds = new_sessions, problems, seconds


def keep_found(record: Store, scope: str, agent: str, found: int, troubled: int) -> None:
    """Keep how many files of an agent there are, and how many could not be opened: true as long as nothing changes."""
    record.set_fact(f"coverage {scope} {agent}", f"{found} {troubled}")


def told_coverage(
    record: Store, scope: str, agents: Sequence[str], seconds: float, done: CoverageCount | None = None
) -> CoverageCount:
    """Return the coverage over all agents, of a sync that has read some files, or none."""
    kept = [(record.fact(f"coverage {scope} {agent}") or "0 0").split() for agent in agents]
    found, troubled = (sum(int(one[place]) for one in kept) for place in (0, 1))
    problems = count_problems(record) + troubled
    read, new = (done.read, done.new_sessions) if done is not None else (0, 0)
    return CoverageCount(found, read, found - read, new, problems, seconds)
