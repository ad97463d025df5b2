"""Homes of which every figure is known: the ledger has each request once, whatever lies about of it."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from support.person import Person
from support.stats_reports import BY, stats_report, total_cost
from support.token_homes import Totals, sum_usages

Json = dict[str, Any]
AGENTS = ("gemini", "claude", "codex")

pytestmark = [pytest.mark.shared, pytest.mark.slow]


def make(shared: Path, script: str, home: Path, *arguments: str) -> None:
    subprocess.run(
        [sys.executable, shared / "truth" / script, home, *arguments], check=True, stdout=subprocess.DEVNULL
    )


@pytest.fixture
def person(shared: Path, tmp_path: Path) -> Person:
    """Someone with copies, twins, a ghost, a subagent, a rewind and a torn line in their home."""
    make(shared, "make_home.py", tmp_path / "home")
    return Person(tmp_path / "home")


@pytest.fixture
def truth(person: Person) -> dict[str, Totals]:
    return expected(json.loads((person.folder / "EXPECTED.json").read_text()))


def expected(told: Mapping[str, Json]) -> dict[str, Totals]:
    """Return what `make_home.py` says was asked for, in the words of the ledger."""
    gemini, claude, codex = told["gemini"], told["claude"], told["codex"]
    reasoning = 100  # which it does not tell: it is in the output of each
    each = claude["tokens_each"]
    given = each["input"] + each["cache_read"] + each["cache_write"]
    return {
        "gemini": {
            **{name: gemini["tokens"][name] for name in ("input", "cached", "output", "tool", "total")},
            "cache_write": 0,
            "reasoning": gemini["tokens"]["thoughts"],
            "requests": gemini["requests"],
        },
        "claude": times(
            claude["requests"],
            {
                "input": given,
                "cached": each["cache_read"],
                "cache_write": each["cache_write"],
                "output": each["output"],
                "reasoning": 0,
                "tool": 0,
                "total": given + each["output"],
                "requests": 1,
            },
        ),
        "codex": times(
            codex["sessions"],
            {
                "input": codex["tokens_each"]["input"],
                "cached": codex["tokens_each"]["cached"],
                "cache_write": 0,
                "output": codex["tokens_each"]["output"] - reasoning,
                "reasoning": reasoning,
                "tool": 0,
                "total": codex["tokens_each"]["input"] + codex["tokens_each"]["output"],
                "requests": 1,
            },
        ),
    }


def times(number: int, figures: Totals) -> Totals:
    return {name: number * figure for name, figure in figures.items()}


def by_agent(rows: Iterable[Json]) -> dict[str, Totals]:
    """Return what was measured: a checkpoint tells no tokens, and what is guessed of it is no truth."""
    known = [row for row in rows if not row["usage"]["estimated"]]
    return {agent: sum_usages(row["usage"] for row in known if row["agent"] == agent) for agent in AGENTS}


def test_the_made_home_took_what_it_says(person: Person, truth: dict[str, Totals]) -> None:
    person.sync()
    rows = person.rows()
    assert by_agent(rows.values()) == truth
    assert truth["gemini"]["requests"] == 12
    guessed = [row for row in rows.values() if row["usage"]["estimated"]]
    assert [row["kind"] for row in guessed] == ["checkpoint"]


def test_a_backup_of_the_home_takes_nothing(person: Person, truth: dict[str, Totals], tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    shutil.copytree(person.folder, backup)
    person.sync("--home", f"old={backup}")
    assert by_agent(person.rows().values()) == truth
    shutil.rmtree(person.folder / ".gemini" / "tmp")
    person.sync()
    assert by_agent(person.rows().values()) == truth


@pytest.mark.parametrize("by", BY)
def test_a_report_of_the_made_home_adds_up_to_what_it_says(
    by: str, person: Person, truth: dict[str, Totals]
) -> None:
    person.sync()
    lines = stats_report(person, by).values()
    names = truth["gemini"]
    assert sum_usages(line["usage"] for line in lines) == {
        name: sum(one[name] for one in truth.values()) for name in names
    }
    assert sum(line["requests"] for line in lines) == 16
    if by == "agent":
        assert {line["of"]: sum_usages([line["usage"]]) for line in lines} == truth


# The clean corpus -------------------------------------------------------------------------------------------------

REQUESTS = {50: 9, 100: 17}
"""How many requests `make_priced_corpus.py` has in each session, by the size of these in KiB."""


def priced(sessions: int, size: int) -> Totals:
    """Return what `make_priced_corpus.py` asks for, by its own arithmetic."""
    each = [priced_request(place) for place in range(REQUESTS[size])]
    return times(sessions, {name: sum(one[name] for one in each) for name in each[0]})


def priced_request(place: int) -> Totals:
    """Return one request of a session: its prompt grows by a thousand tokens, half of which are cached the next time."""
    given = 1000 * (place + 1)
    one = {"input": given, "cached": 500 * place, "cache_write": 0, "output": 200, "reasoning": 50, "tool": 0}
    return {**one, "total": given + 250, "requests": 1}


def test_the_clean_corpus_took_what_its_arithmetic_says(shared: Path, tmp_path: Path) -> None:
    make(shared, "make_priced_corpus.py", tmp_path / "home", "40", "50")
    person = Person(tmp_path / "home")
    person.sync()
    rows = person.rows()
    assert len(rows) == 40
    assert sum_usages(row["usage"] for row in rows.values()) == priced(40, 50)


def price(known: Totals) -> Decimal:
    """Return what `gemini-2.5-pro` costs: $1.25 a million, of cached tokens $0.125, of answers and thoughts $10."""
    fresh, answered = known["input"] - known["cached"], known["output"] + known["reasoning"]
    return (fresh * Decimal("1.25") + known["cached"] * Decimal("0.125") + answered * Decimal(10)) / 1_000_000


def test_the_price_of_the_clean_corpus_is_known() -> None:
    assert price(priced(1000, 100)) == Decimal("157.25")


def test_the_clean_corpus_costs_what_it_is_worth(shared: Path, tmp_path: Path) -> None:
    """107 MB, of which agentsview says $64.76."""
    make(shared, "make_priced_corpus.py", tmp_path / "home", "1000", "100")
    person = Person(tmp_path / "home")
    person.sync()
    reports = {by: stats_report(person, by).values() for by in BY}
    assert {by: total_cost(lines) for by, lines in reports.items()} == dict.fromkeys(BY, Decimal("157.25"))
    for lines in reports.values():
        assert sum_usages(line["usage"] for line in lines) == priced(1000, 100)
    (model,) = reports["model"]
    assert (model["of"], model["requests"], model["cost_usd"]) == ("gemini-2.5-pro", 17_000, "157.25")
    assert {Decimal(line["cost_usd"]) for line in reports["session"]} == {price(priced(1, 100))}
