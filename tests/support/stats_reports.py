"""What `retold stats` tells, as programs get it."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from support.person import Person

Json = dict[str, Any]
BY = ("day", "week", "month", "model", "project", "agent", "session")
"""What tokens and money are counted by: those of a tool nobody knows."""


def stats_report(person: Person, by: str) -> dict[str, Json]:
    """Return the lines of a report, by what each is about."""
    done = person.run("stats", "--by", by, "--utc", "--json")
    assert done.code == 0, done
    lines = done.objects
    assert {line["by"] for line in lines} == {by}
    found = {line["of"]: line for line in lines}
    assert len(found) == len(lines)
    return found


def total_cost(lines: Iterable[Json]) -> Decimal:
    """Return the money of all that has a price, to the last place."""
    return sum((Decimal(line["cost_usd"]) for line in lines if line["cost_usd"] is not None), Decimal(0))
