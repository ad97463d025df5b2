"""Whatever happens to the files of sessions, what was asked for stays the same: tokens, requests and money."""

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from support.conversation_files import dice
from support.ledger_scenarios import SCENARIOS, migrate_home
from support.person import AGENTS, Person
from support.stats_reports import BY, stats_report, total_cost
from support.token_homes import FORMS, Totals, Work, draw_requests, sum_usages, totals

pytestmark = pytest.mark.slow

NAMES = ("gemini", "claude", "codex")


class Event(NamedTuple):
    """A session, and what happened to it."""

    accident: str
    work: Work

    @property
    def form(self) -> str:
        return SCENARIOS[self.accident][0]

    @property
    def agent(self) -> str:
        return FORMS[self.form].agent


@some.composite
def events(draw: some.DrawFn) -> list[Event]:
    """Draw a home: some sessions, and an accident for each."""
    chances = draw(some.randoms(use_true_random=False))
    names = draw(some.lists(some.sampled_from(sorted(SCENARIOS)), min_size=1, max_size=6))
    return [event(name, number, chances) for number, name in enumerate(names, 1)]


def event(accident: str, number: int, chances: Random) -> Event:
    form = FORMS[SCENARIOS[accident][0]]
    return Event(accident, Work(number, draw_requests(form, number * 100, chances.randrange(1, 6), chances)))


def happened(home: Path, known: Iterable[Event], chances: Random) -> None:
    for one in known:
        SCENARIOS[one.accident][1](home, one.work, chances)


def truth(known: Sequence[Event]) -> dict[str, Totals]:
    """Return what was asked for: each request once."""
    return {
        agent: totals(request for one in known if one.agent == agent for request in one.work.requests)
        for agent in NAMES
    }


def sums(person: Person) -> dict[str, Totals]:
    """Return what each agent took: the same from the sessions and from the reports."""
    rows = person.rows().values()
    assert not any(row["usage"]["estimated"] for row in rows if row["usage"]["requests"])
    found = {agent: sum_usages(row["usage"] for row in rows if row["agent"] == agent) for agent in NAMES}
    lines = stats_report(person, "agent")
    assert {agent: sum_usages([lines[agent]["usage"]] if agent in lines else []) for agent in NAMES} == found
    return found


class Counted(NamedTuple):
    """What a home took by something, with its price: figures, and money to the last place."""

    figures: dict[str, Totals]
    money: dict[str, str | None]


def counted(person: Person, by: str) -> Counted:
    lines = stats_report(person, by)
    figures = {of: sum_usages([line["usage"]]) for of, line in lines.items()}
    return Counted(figures, {of: line["cost_usd"] for of, line in lines.items()})


def undisturbed(known: Iterable[Event]) -> dict[str, Counted]:
    """Return what the same requests take where nothing happened to their files."""
    with somebody() as person:
        for one in known:
            FORMS[one.form].write(person.folder, one.work.session, one.work.requests)
        person.sync()
        return all_counted(person)


def all_counted(person: Person) -> dict[str, Counted]:
    return {by: counted(person, by) for by in ("day", "month", "model")}


@contextmanager
def somebody() -> Iterator[Person]:
    with TemporaryDirectory() as folder:
        yield Person(Path(folder) / "home", Path(folder) / "archive")


def shuffle_times(person: Person, chances: Random) -> None:
    for path in person.sources():
        moment = chances.randrange(1_600_000_000, 1_790_000_000)
        os.utime(path, (moment, moment))


@pytest.mark.parametrize("accident", sorted(SCENARIOS))
def test_an_accident_adds_no_request(accident: str) -> None:
    known = [event(accident, number, dice(number)) for number in range(1, 7)]
    with somebody() as person:
        happened(person.folder, known, dice(20))
        person.sync()
        assert sums(person) == truth(known)
        migrate_home(person.folder)
        person.sync()
        assert sums(person) == truth(known)


@pytest.mark.parametrize("by", ["day", "week", "model", "project", "agent", "session"])
def test_a_report_needs_no_archive_to_say_the_same(by: str) -> None:
    known = [event(name, number, dice(number)) for number, name in enumerate(sorted(SCENARIOS), 1)]
    with somebody() as person:
        happened(person.folder, known, dice(20))
        migrate_home(person.folder)
        told = counted(Person(person.folder, person.folder.with_name("none yet")), by)
        person.sync()
        assert told == counted(person, by)
        assert sum_usages(told.figures.values()) == totals(
            request for one in known for request in one.work.requests
        )


@settings(max_examples=40, deadline=None)
@given(events(), some.randoms(use_true_random=False), some.sets(some.sampled_from(["migrated", "backed up"])))
def test_nothing_that_happens_to_files_changes_a_total(
    known: list[Event], chances: Random, besides: set[str]
) -> None:
    with somebody() as person:
        happened(person.folder, chances.sample(known, len(known)), chances)
        if "migrated" in besides:
            migrate_home(person.folder)
        shuffle_times(person, chances)
        homes = [*backup(person)] if "backed up" in besides else []
        person.sync(*homes)
        assert sums(person) == truth(known)
        assert all_counted(person) == undisturbed(known)
        assert len({total_cost(stats_report(person, by).values()) for by in BY}) == 1


def backup(person: Person) -> Iterator[str]:
    folder = person.folder.with_name("backup")
    for agent in AGENTS:
        if (person.folder / agent).exists():
            shutil.copytree(person.folder / agent, folder / agent)
    yield from ("--home", f"backup={folder}")


@settings(max_examples=20, deadline=None)
@given(events(), some.randoms(use_true_random=False))
def test_it_does_not_matter_which_files_come_first(known: list[Event], chances: Random) -> None:
    with somebody() as person:
        happened(person.folder, known, chances)
        late = [path for path in person.sources() if chances.random() < 0.5]
        away = person.folder.with_name("away")
        for number, path in enumerate(late):
            away.mkdir(exist_ok=True)
            path.rename(away / str(number))
        person.sync()
        for number in chances.sample(range(len(late)), len(late)):
            late[number].parent.mkdir(parents=True, exist_ok=True)
            (away / str(number)).rename(late[number])
            if chances.random() < 0.3:
                person.sync()
        person.sync()
        assert sums(person) == truth(known)
