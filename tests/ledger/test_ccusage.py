"""Side by side with ccusage: where nothing lies twice in a home, both count the same, to the token."""

import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from support.ccusage import Ccusage, Tokens, ccusage_tokens, retold_tokens, session_id, tokens_by_model
from support.conversation_files import dice
from support.person import Person
from support.stats_reports import stats_report
from support.token_homes import FORMS, Request, sum_usages, totals, works

Json = dict[str, Any]
Made = Callable[[str], tuple[Person, str]]
"""Makes a clean home of a kind, and says which agent's sessions are in it."""

pytestmark = pytest.mark.peer
BIG = {"gemini": "gemini", "gemini-jsonl": "gemini", "claude": "claude", "codex": "codex"}
"""The forms of `make_big_corpus.py`, and whose they are."""
SHARED = [
    pytest.param(name, marks=pytest.mark.shared) for name in ("priced", *(f"big {form}" for form in BIG))
]


@pytest.fixture
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Made:
    def home(kind: str) -> tuple[Person, str]:
        person = Person(tmp_path / "home")
        if form := FORMS.get(kind):
            for work in works(form, 8, dice(20)):
                form.write(person.folder, work.session, work.requests)
            return person, form.agent
        script, *rest = kind.split()
        if script == "priced":
            run(request, "make_priced_corpus.py", person.folder, "20", "20")
            return person, "gemini"
        if importlib.util.find_spec("numpy") is None:
            pytest.skip("make_big_corpus.py needs numpy, which only the benchmarks install")
        run(request, "make_big_corpus.py", person.folder, "12", "1.2", "--fmt", *rest)
        return person, BIG[rest[0]]

    return home


def run(request: pytest.FixtureRequest, script: str, home: Path, *arguments: str) -> None:
    truth = request.getfixturevalue("shared") / "truth"
    subprocess.run([sys.executable, truth / script, home, *arguments], check=True, stdout=subprocess.DEVNULL)


def summed(rows: Iterable[Tokens]) -> Tokens:
    return Tokens(*map(sum, zip(*rows, strict=True)))


@pytest.mark.parametrize("kind", [*FORMS, *SHARED])
def test_every_session_took_what_ccusage_says(kind: str, made: Made, ccusage: Ccusage) -> None:
    person, agent = made(kind)
    person.sync()
    usages = {row["native_id"]: row["usage"] for row in person.rows().values()}
    told = {session_id(row): row for row in ccusage.rows(person.folder, agent, "session")}
    assert len(told) > 7
    assert {key: retold_tokens(agent, usage) for key, usage in usages.items()} == {
        key: ccusage_tokens(row) for key, row in told.items()
    }
    assert {key: usage["total"] for key, usage in usages.items()} == {
        key: row["totalTokens"] for key, row in told.items()
    }
    assert retold_tokens(agent, sum_usages(usages.values())) == ccusage_tokens(
        ccusage.totals(person.folder, agent)
    )


@pytest.mark.parametrize("kind", [*FORMS, *SHARED])
def test_every_model_and_every_day_took_what_ccusage_says(kind: str, made: Made, ccusage: Ccusage) -> None:
    person, agent = made(kind)
    person.sync()
    days = {row["date"]: row for row in ccusage.rows(person.folder, agent, "daily")}
    lines = stats_report(person, "day")
    assert {day: retold_tokens(agent, line["usage"]) for day, line in lines.items()} == {
        day: ccusage_tokens(row) for day, row in days.items()
    }
    assert {day: line["usage"]["total"] for day, line in lines.items()} == {
        day: row["totalTokens"] for day, row in days.items()
    }
    named = {model for row in days.values() for model in tokens_by_model(row)}
    told = {
        name: summed(tokens_by_model(row)[name] for row in days.values() if name in tokens_by_model(row))
        for name in named
    }
    by_model = {
        model: retold_tokens(agent, line["usage"]) for model, line in stats_report(person, "model").items()
    }
    assert {model: by_model.get(model) for model in named} == told
    assert bool(named) == (kind != "big codex")  # whose files name no model
    assert not named or set(by_model) == named


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="this system takes no zone from TZ")
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Pacific/Auckland"])
def test_a_day_begins_where_ccusage_says(zone: str, tmp_path: Path, ccusage: Ccusage) -> None:
    """A session that goes on for four days, in which a month ends; in Berlin one of them has 23 hours."""
    person = Person(tmp_path / "home")
    asked = [Request(number, 20 * number, "gemini-2.5-pro", 1000 + number) for number in range(4 * 24 * 3)]
    FORMS["gemini-lines"].write(person.folder, 1, asked)
    person.sync()
    done = person.spawn("stats", "--by", "day", "--json", env=person.env | {"TZ": zone})
    told, in_utc = (
        {row["date"]: row["totalTokens"] for row in ccusage.rows(person.folder, "gemini", "daily", one)}
        for one in (zone, "UTC")
    )
    assert {line["of"]: line["usage"]["total"] for line in done.objects} == told
    assert told != in_utc  # or this would say nothing of zones


@pytest.mark.parametrize("kind", FORMS)
def test_ccusage_says_what_was_made(kind: str, made: Made, ccusage: Ccusage) -> None:
    """What its words are taken to mean: a home of which every figure is known tells."""
    person, agent = made(kind)
    known = [request for work in works(FORMS[kind], 8, dice(20)) for request in work.requests]
    told = ccusage.totals(person.folder, agent)
    assert ccusage_tokens(told) == retold_tokens(agent, totals(known))
    assert told["totalTokens"] == totals(known)["total"]
    for model in FORMS[kind].models:
        rows = ccusage.rows(person.folder, agent, "daily")
        meant = totals(request for request in known if request.model == model)
        assert summed(
            tokens_by_model(row)[model] for row in rows if model in tokens_by_model(row)
        ) == retold_tokens(agent, meant)
