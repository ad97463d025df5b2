"""What the page says of tools: how each did, and where it failed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from retold.export.text.amounts import format_count, format_duration, format_share
from support.conversation_files import claude, turns
from support.gemini_home import GeminiHome, call, gemini, user
from support.person import Person
from support.report_pages import archive_demo, page_links, section, summary_cards, table_rows
from support.web_server import Visit, run_web_server

Json = dict[str, Any]


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Person:
    return archive_demo(tmp_path_factory.mktemp("tools"))


@pytest.fixture(scope="module")
def visit(person: Person) -> Iterator[Visit]:
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        yield visit


def told_of(line: Json) -> list[str]:
    tool = line["tool"]
    mean = format_duration(tool["seconds"] / tool["timed_calls"]) if tool["timed_calls"] else "-"
    rate = format_share(line["tool_errors"], line["tool_calls"])
    counts = [format_count(line[name]) for name in ("tool_calls", "tool_errors")]
    took = [mean, format_duration(tool["slowest_seconds"])]
    return [line["of"], tool["canonical"], "", *counts, rate, format_count(line["tool_retries"]), *took]


@pytest.mark.parametrize("agent", ["", "codex"])
def test_each_tool_is_told_as_stats_tells_it(person: Person, visit: Visit, agent: str) -> None:
    lines = person.run("stats", "--json", "--by", "tool", *([f"--agent={agent}"] if agent else [])).objects
    page = visit.get(f"/tools?period=all&agent={agent}").text
    found = table_rows(section(page, "of-tools"))
    assert [row[:9] for row in found] == [told_of(line) for line in lines]
    assert summary_cards(page) == {
        "Calls": format_count(sum(line["tool_calls"] for line in lines)),
        "Failed": format_count(sum(line["tool_errors"] for line in lines)),
        "Retries": format_count(sum(line["tool_retries"] for line in lines)),
    }
    if agent:
        assert all(row[9] == f"{agent} {row[3]}" for row in found)


def test_failures_over_time_are_all_failures(person: Person, visit: Visit) -> None:
    page = visit.get("/tools?period=all").text
    days = {line["of"]: line for line in person.run("stats", "--json", "--by", "day").objects}
    found = {day: told for day, told in table_rows(section(page, "of-time")) if told != "0 of 0"}
    assert found == {
        day: f"{line['tool_errors']} of {line['tool_calls']}"
        for day, line in days.items()
        if line["tool_calls"]
    }


def test_a_failure_leads_to_its_place(person: Person, visit: Visit) -> None:
    page = section(visit.get("/tools?period=all&tool=Bash").text, "of-failures")
    found = [link for link in page_links(page) if link.startswith("/session?")]
    assert found
    for link in found:
        place = parse_qs(urlsplit(link).query)
        assert urlsplit(link).fragment == f"e{place['at'][0]}"
        entry = person.show(place["key"][0])["timeline"][int(place["at"][0])]
        calls = [part for part in entry["parts"] if part["type"] == "tool_call"]
        assert [call for call in calls if call["name"] == "Bash" and call["status"] == "error"]


def test_one_tool_is_counted_alone(person: Person, visit: Visit) -> None:
    lines = {line["of"]: line for line in person.run("stats", "--json", "--by", "tool").objects}
    page = visit.get("/tools?period=all&tool=Bash").text
    assert [row[0] for row in table_rows(section(page, "of-tools"))] == ["Bash"]
    assert summary_cards(page)["Failed"] == format_count(lines["Bash"]["tool_errors"])
    in_sessions = table_rows(section(page, "of-failing"))
    assert sum(int(row[2]) for row in in_sessions) == lines["Bash"]["tool_errors"]
    kind = visit.get("/tools?period=all&tool=shell_exec").text
    assert {row[1] for row in table_rows(section(kind, "of-tools"))} == {"shell_exec"}


def test_a_tool_that_rested_in_a_period_is_still_one(visit: Visit) -> None:
    assert visit.get("/tools?tool=Bash&since=1999-01-01&until=1999-01-02").status == 200
    assert visit.get("/tools?tool=Abacus&period=all").status == 404


def test_a_tool_of_two_agents_is_one_with_a_share_for_each(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ann")
    calls = [
        call("Bash", {"command": "ls"}, 2),
        {**call("Bash", {"command": "nest"}, 2, status="error"), "id": "b2"},
    ]
    home.lines("den", 1, 1, [user("u1", 1, "Look."), gemini("g1", 2, "Done.", calls)], kind="main")
    claude(home.folder, 2, turns("reed"))
    person = Person(home.folder)
    person.sync()
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        page = section(visit.get("/tools?period=all").text, "of-tools")
        (row,) = table_rows(page)
        assert (row[0], row[3], row[4], row[5]) == ("Bash", "3", "1", "33%")
        assert sorted(zip(row[9].split()[::2], row[9].split()[1::2], strict=True)) == [
            ("claude", "1"),
            ("gemini", "2"),
        ]
        assert 'class="part gemini"' in page
