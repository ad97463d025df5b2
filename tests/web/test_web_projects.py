"""Projects on the page: all of them, also those of which nobody knows where they lay."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from retold.export.text.amounts import format_count, format_money
from retold.web.pages.projects import EVIDENCE
from support.gemini_home import GeminiHome, call, gemini, sha, user
from support.person import Person
from support.report_pages import archive_demo, page_links, section, summary_cards, table_rows, visible_text
from support.web_server import Visit, run_web_server


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Person:
    return archive_demo(tmp_path_factory.mktemp("projects"))


@pytest.fixture(scope="module")
def visit(person: Person) -> Iterator[Visit]:
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        yield visit


def test_all_projects_are_told(person: Person, visit: Visit) -> None:
    told = person.run("projects", "--json").objects
    costs = {
        line["of"]: line["cost_usd"] for line in person.run("stats", "--json", "--by", "project").objects
    }
    found = table_rows(visit.get("/projects").text)
    assert len(found) == len(told)
    for row, place in zip(found, told, strict=True):
        name = place["root"] or place["hash"] or (place["native_keys"] or ["unknown"])[0]
        assert row[0].startswith(f"{name.rpartition('/')[2]} ")
        assert row[2] == format_count(place["sessions"])
        cost = costs.get(name)
        assert row[6] == ("-" if cost is None else format_money(round(float(cost) * 10**12)))
        assert sum(int(word) for word in row[3].split()[1::2]) == place["sessions"]


def test_each_project_has_its_page(person: Person, visit: Visit) -> None:
    page = visit.get("/projects").text
    for link in {link for link in page_links(page) if link.startswith("/projects?")}:
        answered = visit.get(link)
        assert answered.status == 200
        assert any(words in answered.text for words in EVIDENCE.values())
    place = next(one for one in person.run("projects", "--json").objects if one["root"])
    one = visit.get(f"/projects?{urlencode({'root': place['root']})}").text
    assert summary_cards(one)["Sessions"] == format_count(place["sessions"])
    told = person.run("list", "--json", "--project", place["root"]).objects
    keys = [row["key"] for row in told if row["kind"] != "subagent"][:12]
    found = [link for link in page_links(section(one, "of-sessions")) if link.startswith("/session?")]
    assert found == [f"/session?{urlencode({'key': key})}" for key in keys]
    tools = {
        line["of"]: line["tool_calls"]
        for line in person.run("stats", "--json", "--by", "tool", "--project", place["root"]).objects
    }
    shown = {row[0]: int(row[1]) for row in table_rows(section(one, "of-tools"))}
    assert shown.items() <= tools.items()
    assert {
        f"/?{urlencode({'project': place['root']})}",
        f"/spend?{urlencode({'project': place['root']})}",
    } <= set(page_links(one))


def test_a_project_of_which_only_a_hash_is_known_is_reached(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ann")
    folder = sha("/nowhere/that/is/named")
    said = [
        user("u1", 1, "Count the herons."),
        gemini("g1", 2, "Done.", [call("write_file", {"file_path": "herons.txt", "content": "3"}, 2)]),
    ]
    home.lines(folder, 1, 1, said, kind="main", projectHash=folder)
    person = Person(home.folder)
    person.sync()
    (place,) = person.run("projects", "--json").objects
    assert (place["root"], place["hash"]) == (None, folder)
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        (link,) = {link for link in page_links(visit.get("/projects").text) if link.startswith("/projects?")}
        page = visit.get(link).text
        assert "Root not known" in visible_text(page)
        assert summary_cards(page)["Sessions"] == "1"
        assert [row[:2] for row in table_rows(section(page, "of-files"))] == [["herons.txt", "1"]]
        spend = next(link for link in page_links(page) if link.startswith("/spend?"))
        assert summary_cards(visit.get(f"{spend}&period=all").text)["Requests"] == "1"
