"""Runs `retold stats --json` and reads its reports."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from support.person import Person

Json = dict[str, Any]
BY = ("day", "week", "month", "model", "project", "agent", "session")
"""The groupings that have tokens and costs; a grouping by tool has neither."""


def stats_report(person: Person, by: str) -> dict[str, Json]:
    """Return the lines of a report by their `of` field."""
    done = person.run("stats", "--by", by, "--utc", "--json")
    assert done.code == 0, done
    lines = done.objects
    assert {line["by"] for line in lines} == {by}
    found = {line["of"]: line for line in lines}
    assert len(found) == len(lines)
    return found


def total_cost(lines: Iterable[Json]) -> Decimal:
    """Return the exact sum of all known costs."""
    return sum((Decimal(line["cost_usd"]) for line in lines if line["cost_usd"] is not None), Decimal(0))
