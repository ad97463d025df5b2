"""What the page says of money is what `retold stats` says."""

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from retold.export.text.amounts import format_count, format_duration, format_money
from retold.export.text.formatting import format_short_number
from support.gemini_home import GeminiHome, call, gemini, user
from support.person import Person
from support.report_pages import archive_demo, page_links, section, summary_cards, table_rows
from support.web_server import Visit, run_web_server

Json = dict[str, Any]
HOSTILE = '"><script>hit()</script>'


@pytest.fixture(scope="module", params=["UTC", "America/St_Johns"])
def person(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """Days begin with half an hour in some zones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield archive_demo(tmp_path_factory.mktemp("spend"))
    time.tzset()


@pytest.fixture(scope="module")
def visit(person: Person) -> Iterator[Visit]:
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        yield visit


def shown(visit: Visit, path: str, **query: object) -> str:
    answered = visit.get(f"{path}?{urlencode(query)}" if query else path)
    assert answered.status == 200, answered
    return answered.text


def picos(line: Json) -> int | None:
    if line["cost_usd"] is None:
        return None
    whole, _, rest = line["cost_usd"].partition(".")
    return int(whole) * 10**12 + int(rest.ljust(12, "0") or 0)


def cost(line: Json) -> str:
    told = picos(line)
    return format_money(told) + ("+" if line["unpriced_requests"] and told is not None else "")


def stats(person: Person, by: str, *filters: str) -> list[Json]:
    return person.run("stats", "--json", "--by", by, *filters).objects


def added(lines: list[Json], name: str) -> int:
    return sum(line[name] or 0 for line in lines)


FILTERS: list[dict[str, str]] = [
    {},
    {"agent": "claude"},
    {"agent": "gemini", "model": "gemini-2.5-pro"},
    {"project": "ladle"},
]


@pytest.mark.parametrize("filters", FILTERS, ids=str)
@pytest.mark.parametrize("days", [("", ""), ("14d", ""), ("9d", "5d")], ids=str)
def test_every_figure_is_that_of_stats(
    person: Person, visit: Visit, filters: dict[str, str], days: tuple[str, str]
) -> None:
    since, until = (_day(text) for text in days)
    given = [
        f"--{name}={value}" for name, value in (*filters.items(), ("since", since), ("until", until)) if value
    ]
    page = shown(visit, "/spend", period="all", since=since, until=until, **filters)
    for by in ("model", "project", "agent"):
        told = sorted(
            (line["of"].rpartition("/")[2], format_count(line["usage"]["total"]), cost(line))
            for line in stats(person, by, *given)
            if line["requests"]
        )
        found = sorted(
            (name, tokens, paid) for name, _, tokens, paid in table_rows(section(page, f"of-{by}"))
        )
        assert [(name.lower(), *rest) for name, *rest in found] == [
            (name.lower(), *rest) for name, *rest in told
        ]
    lines = stats(person, "agent", *given)
    dear = [told for told in map(picos, lines) if told is not None]
    assert summary_cards(page) == {
        "Cost": format_money(sum(dear) if dear else None)
        + ("+" if dear and added(lines, "unpriced_requests") else ""),
        "Tokens": format_short_number(sum(line["usage"]["total"] or 0 for line in lines)),
        "Requests": format_count(added(lines, "requests")),
        "Sessions": format_count(added(lines, "sessions")),
        "Prompts": format_count(added(lines, "prompts")),
        "Active time": format_duration(added(lines, "active_seconds")),
    }


def _day(ago: str) -> str:
    return str(datetime.now().astimezone().date() - timedelta(days=int(ago[:-1]))) if ago else ""


def test_days_are_those_of_stats(person: Person, visit: Visit) -> None:
    told = {line["of"]: line for line in stats(person, "day")}
    words: dict[str, Callable[[Json], str]] = {
        "cost": cost,
        "tokens": lambda line: f"{format_count(line['usage']['total'] or 0)} tokens",
        "sessions": lambda line: f"{line['sessions']} session{'' if line['sessions'] == 1 else 's'}",
    }
    for measure, told_of in words.items():
        page = shown(visit, "/spend", period="all", show=measure)
        found = dict(table_rows(section(page, "of-days")))
        assert found == {day: told_of(line) for day, line in told.items() if line["requests"] or day in found}
        assert set(found) >= {day for day, line in told.items() if line["requests"]}
    by_time = dict(table_rows(section(page, "of-time")))
    assert {day: dear for day, dear in by_time.items() if dear != "-"} == {
        day: cost(line) for day, line in told.items() if line["cost_usd"] is not None
    }


@pytest.mark.parametrize("by", ["day", "week", "month"])
def test_cost_over_time_is_that_of_stats(person: Person, visit: Visit, by: str) -> None:
    told = {line["of"]: cost(line) for line in stats(person, by) if line["cost_usd"] is not None}
    found = table_rows(section(shown(visit, "/spend", period="all", by=by), "of-time"))
    assert {of: dear for of, dear in found if dear != "-"} == told


def test_the_requests_behind_a_figure_come_to_it(person: Person, visit: Visit) -> None:
    page = shown(visit, "/spend", period="all")
    for by in ("model", "project", "agent"):
        for line in stats(person, by):
            if not line["requests"]:
                continue
            link = next(
                link
                for link in page_links(section(page, f"of-{by}"))
                if "/ledger" in link and quote(line["of"], safe="") in link
            )
            told = visit.get(link).text
            if line["requests"] <= 100:
                assert "✓ the sum is what the report says" in told
            assert "✗" not in told
            assert f"{format_count(line['requests'])} requests" in told


def test_the_ledger_turns_its_pages(person: Person, visit: Visit) -> None:
    link, seen = "/spend/ledger?period=all", []
    while link:
        page = visit.get(link).text
        seen += table_rows(page)
        link = next(
            (
                one
                for one in page_links(page.partition('aria-label="Pages of this list"')[2])
                if f"page={len(seen) // 100}" in one
            ),
            "",
        )
    told = person.run("stats", "--json", "--explain", "--by", "agent").objects
    assert len(seen) == len(told)
    dearest = max(told, key=lambda one: float(one["cost_usd"] or 0))
    charge = dearest["charges"][0]
    assert any(
        f"{charge['tokens']:,} {charge['of'].replace('_', ' ')} x ${charge['usd_per_million']}/M" in row[-1]
        for row in seen
    )
    assert any(dearest["cost_usd"] in row[-1] for row in seen)


def test_the_dearest_sessions_lead_to_themselves_and_their_requests(person: Person, visit: Visit) -> None:
    lines = [line for line in stats(person, "session") if picos(line)]
    page = section(shown(visit, "/spend", period="all"), "dearest")
    keys = [line["of"] for line in sorted(lines, key=lambda line: -(picos(line) or 0))[:10]]
    found = page_links(page)
    assert [link for link in found if link.startswith("/session?")] == [
        f"/session?{urlencode({'key': key})}" for key in keys
    ]
    ledger = visit.get(next(link for link in found if "/ledger" in link)).text
    assert "✓ the sum is what the report says" in ledger
    assert {link for link in page_links(ledger) if link.startswith("/session?")} == {
        f"/session?{urlencode({'key': keys[0]})}"
    }


def test_hours_are_those_of_the_requests(person: Person, visit: Visit) -> None:
    counted: dict[str, int] = {}
    for one in person.run("stats", "--json", "--explain", "--by", "agent").objects:
        if one["at"] and not one["usage"]["estimated"]:
            at = datetime.fromisoformat(one["at"]).astimezone()
            counted[f"{at:%A %H}:00"] = counted.get(f"{at:%A %H}:00", 0) + 1
    found = table_rows(section(shown(visit, "/spend", period="all"), "of-hours"))
    assert {name: int(number.replace(",", "")) for name, number in found} == counted


def test_what_figures_rest_on_stands_below_them(person: Person, visit: Visit) -> None:
    told = person.run("stats").out.splitlines()
    notes = next(line for line in told if line.startswith("prices:"))
    assert notes.split(" · ")[0] in shown(visit, "/spend", period="all")


@pytest.mark.parametrize(
    "name", ["agent", "project", "model", "tool", "session", "since", "until", "period", "show", "page"]
)
@pytest.mark.parametrize("path", ["/spend", "/spend/ledger", "/tools", "/projects", "/files"])
def test_an_address_out_of_an_enemys_hand_is_only_text(visit: Visit, path: str, name: str) -> None:
    for value in (HOSTILE, "-1", "9" * 30, "%00", "\ud7ff", "unknown", "' OR 1=1 --"):
        answered = visit.get(f"{path}?{urlencode({name: value})}")
        assert answered.status == (404 if name == "tool" and path == "/tools" else 200)
        assert "<script>hit" not in answered.text


def test_an_archive_without_sessions_has_its_pages(tmp_path: Path) -> None:
    person = Person(tmp_path / "bob")
    person.sync()
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        for path in ("/spend", "/spend?period=all", "/spend/ledger", "/tools", "/projects", "/files"):
            assert visit.get(path).status == 200, path
        for path in (
            "/projects?root=den",
            "/files?path=den",
            "/files/changes?path=den&key=den",
            "/tools?tool=den",
        ):
            assert visit.get(path).status == 404, path


def test_names_out_of_transcripts_stay_names(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ann")
    hostile = f"/home/ann/{HOSTILE}"
    told = {**gemini("g1", 2, "In reeds."), "model": HOSTILE}
    home.lines("den", 1, 1, [user("u1", 1, f"{HOSTILE}?"), told], kind="main")
    home.mark("den", hostile)
    person = Person(home.folder)
    person.sync()
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        for path in (
            "/spend?period=all",
            "/spend/ledger?period=all",
            "/projects",
            f"/projects?root={quote(hostile)}",
        ):
            answered = visit.get(path)
            assert answered.status == 200
            assert "<script>hit" not in answered.text
            assert "&lt;script&gt;hit" in answered.text


@pytest.mark.parametrize("year", ["0001", "1969", "2999", "9999"])
def test_times_that_cannot_be_do_no_harm(tmp_path: Path, year: str) -> None:
    home = GeminiHome(tmp_path / "ann")
    when = f"{year}-12-31T23:59:59.000Z"
    failed = {**call("replace", {"file_path": "moon.py"}, 2, status="error"), "timestamp": when}
    said = [
        user("u1", 1, "Now?"),
        gemini("g1", 2, "Now."),
        {**user("u2", 1, "Then?"), "timestamp": when},
        {**gemini("g2", 2, "Then.", [failed]), "timestamp": when},
    ]
    home.lines(
        "den", 1, 1, said, kind="main", startTime=min(when, "2026-03-01T09:00:00.000Z"), lastUpdated=when
    )
    person = Person(home.folder)
    person.sync()
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        for path in ("/spend", "/spend/ledger", "/tools", "/projects", "/files"):
            for period in (
                "period=all",
                "period=7d",
                "since=1971-01-01&until=2199-12-31",
                f"until={year}-12-31",
            ):
                answered = visit.get(f"{path}?{period}")
                assert answered.status == 200, (path, period)
                assert len(answered.text) < 800_000, (path, period)


def test_a_model_whose_name_begins_another_is_counted_alone(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ann")
    said = [
        user("u1", 1, "Which bird?"),
        {**gemini("g1", 2, "A heron."), "model": "heron"},
        user("u2", 3, "And now?"),
        {**gemini("g2", 4, "A small one."), "model": "heron-lite"},
    ]
    home.lines("den", 1, 1, said, kind="main")
    person = Person(home.folder)
    person.sync()
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        assert summary_cards(visit.get("/spend?period=all&model=heron").text)["Requests"] == "1"
        ledger = visit.get("/spend/ledger?period=all&model=heron").text
        assert [row[2] for row in table_rows(ledger)] == ["heron"]
        assert "✓ the sum is what the report says" in ledger
