"""Every surface counts the same conversations of the demo: the definition stands in docs/conversations.md."""

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import shorten
from urllib.parse import quote

import pytest
from mcp_types import TextResourceContents
from textual.pilot import Pilot

import retold
from retold.mcp.service import QueryService
from retold.mcp.service import ServerSettings as Reach
from retold.tui.data import ArchiveQueries
from support.demo_person import DemoPerson
from support.mcp_client import McpClient
from support.session_list_page import facets, list_rows, session_count
from support.terminal_browser import drive, listed_matches, press
from support.web_server import Visit, run_web_server

PAGE = Path(__file__).parent.parent / "docs/conversations.md"


@pytest.fixture(scope="module")
def ann(tmp_path_factory: pytest.TempPathFactory) -> DemoPerson:
    return DemoPerson(tmp_path_factory.mktemp("counts"))


@pytest.fixture(scope="module")
def rows(ann: DemoPerson) -> list[dict[str, object]]:
    """Return every session that the archive has, of any kind."""
    with retold.open(ann.archive) as archive:
        keys = archive._store.rows("SELECT key FROM sessions")  # noqa: SLF001 - past every condition that is tested
        return [ann.show(key) for (key,) in list(keys)]


@pytest.fixture(scope="module")
def count(rows: list[dict[str, object]]) -> int:
    """Count conversations by the words of the definition."""
    keys = {row["key"] for row in rows}
    kinds = ("main", "fork", "prompts-only")
    alone = [row for row in rows if row["kind"] == "subagent" and row["parent"] not in keys]
    counted = [row for row in rows if row["kind"] in kinds] + alone
    found = sum(bool(row["counts"]["messages"] or row["title"] or row["problems"]) for row in counted)  # type: ignore[index]
    assert 0 < found < len(rows)
    return found


@pytest.fixture(scope="module")
def visit(ann: DemoPerson) -> Iterator[Visit]:
    with run_web_server(str(ann.archive)) as visit:
        visit.enter()
        yield visit


def number(text: str, pattern: str) -> int:
    """Return the number that a pattern finds."""
    found = re.search(pattern, text)
    assert found is not None, (pattern, shorten(text, 400))
    return int(found[1].replace(",", ""))


def test_the_list_and_its_json_show_the_same(ann: DemoPerson, count: int) -> None:
    shown = [line.split()[-1] for line in ann.run("list").out.splitlines()[1:]]
    told = [row["native_id"][:8] for row in ann.run("list", "--json").objects]
    assert shown == told
    assert len(told) == count


def test_with_all_both_show_every_session(ann: DemoPerson, rows: list[dict[str, object]]) -> None:
    shown = ann.run("list", "--all").out.splitlines()[1:]
    told = ann.run("list", "--all", "--json").objects
    assert len(shown) == len(told) == len(rows)
    assert {row["key"] for row in told} == {row["key"] for row in rows}


def test_a_first_sync_names_as_many_new_sessions(ann: DemoPerson, count: int, tmp_path: Path) -> None:
    for argument, pattern in ((), r"(\d+) new sessions"), (("--json",), r'"new_sessions": (\d+)'):
        env = ann.env | {"RETOLD_HOME": str(tmp_path / "".join(["sync", *argument]))}
        done = ann.spawn("sync", *argument, env=env)
        assert number(done.out + done.err, pattern) == count


def test_retold_alone_names_what_it_does_not_show(ann: DemoPerson, count: int) -> None:
    done = ann.run()
    assert len(done.out.splitlines()) - 1 + number(done.err, r"and (\d+) more: retold list") == count


def test_stats_count_the_same(ann: DemoPerson, count: int) -> None:
    assert number(ann.run("stats").out, r" (\d+) sessions ") == count
    for by in ("agent", "project"):
        assert sum(line["sessions"] for line in ann.run("stats", "--by", by, "--json").objects) == count


def test_projects_add_up_to_it(ann: DemoPerson, count: int) -> None:
    told = ann.run("projects", "--json").objects
    assert sum(one["sessions"] for one in told) == count
    by_root = {line["of"]: line["sessions"] for line in ann.run("stats", "--by", "project", "--json").objects}
    assert {one["root"] or "unknown": one["sessions"] for one in told} == by_root
    assert sum(number(line, r" (\d+)  \d{4}-") for line in ann.run("projects").out.splitlines()) == count


def test_briefs_add_up_to_it(ann: DemoPerson, count: int) -> None:
    roots = [one["root"] for one in ann.run("projects", "--json").objects]
    unknown = sum(one["sessions"] for one in ann.run("projects", "--json").objects if one["root"] is None)
    briefs = [ann.run("brief", root).out for root in roots if root]
    assert sum(number(brief, r"(\d+) sessions? ") for brief in briefs) + unknown == count


def test_the_library_gives_the_same(ann: DemoPerson, count: int, rows: list[dict[str, object]]) -> None:
    with retold.open(ann.archive) as archive:
        assert len(list(archive.sessions())) == count
        assert len(list(archive.sessions(every_kind=True))) == len(rows)


def test_doctor_counts_the_same(ann: DemoPerson, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retold.maintenance.doctor.checks.run_checks", lambda _: ())
    assert number(ann.run("doctor").out, r"Nothing is at risk: (\d+) sessions archived") == count


def test_the_terminal_browser_counts_the_same(ann: DemoPerson, count: int) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await press(pilot)
        assert len(listed_matches(pilot)) == count

    drive(ArchiveQueries(str(ann.archive)), play)


def test_the_page_counts_the_same(visit: Visit, count: int) -> None:
    assert number(visit.get("/").text, r">(\d+) conversations<") == count
    projects = visit.get("/projects?period=all").text
    assert sum(map(int, re.findall(r'aria-label="(\d+) sessions? of ', projects))) == count
    each = re.findall(r'<span class="agent \w+">\w+</span> <span class="faint">(\d+)</span>', projects)
    assert sum(map(int, each)) == count
    assert number(visit.get("/spend?period=all").text, r"Sessions</dt>\s*<dd[^>]*>(\d+)") == count


def test_a_search_on_the_page_counts_conversations_apart_from_subagents_and_copies(
    visit: Visit, count: int, rows: list[dict[str, object]]
) -> None:
    for query in ("-tool:nope", "a&mode=letters", "[a-z]&mode=regex"):
        page = visit.get(f"/?q={query}&many=100").text
        words = r'<p role="status" aria-live="polite">(\d+) conversations, and (\d+) subagents or copies of one</p>'
        found = re.search(words, page)
        assert found is not None, query
        assert (int(found[1]), int(found[2])) == (count, len(list_rows(page)) - count), query
    assert len(list_rows(visit.get("/?q=-tool:nope&many=100").text)) == len(rows)


def test_a_search_on_the_page_counts_a_filter_as_the_list_does(ann: DemoPerson, visit: Visit) -> None:
    for name, value in ("agent", "claude"), ("since", "7d"), ("tool", "shell"):
        listed = len(ann.run("list", "--json", f"--{name}", value).objects)
        searched = visit.get(f"/?q={name}:{value}&many=100").text
        assert session_count(searched) == session_count(visit.get(f"/?{name}={value}").text) == listed
        assert all(
            session_count(visit.get(href).text) == number for href, _, _, number in facets(searched)[:6]
        )


def test_each_project_of_the_page_counts_as_the_list_that_it_links(ann: DemoPerson, visit: Visit) -> None:
    for one in ann.run("projects", "--json").objects:
        if one["root"]:
            page = visit.get(f"/projects?root={quote(one['root'])}&period=all").text
            assert number(page, r"Sessions</dt><dd><a [^>]*>(\d+)<") == one["sessions"]
            assert (
                number(visit.get(f"/?project={quote(one['root'])}").text, r">(\d+) conversations?<")
                == one["sessions"]
            )


def test_the_tools_for_agents_count_the_same(ann: DemoPerson, count: int) -> None:
    client = McpClient(QueryService(Reach(str(ann.archive), str(ann.folder), is_all=True)))
    result = client.said(lambda one: one.read_resource("retold://project"))
    (content,) = result.contents
    assert isinstance(content, TextResourceContents)
    assert sum(map(int, re.findall(r": (\d+) conversations?\n", content.text))) == count
    assert sum(map(int, re.findall(r"(?:claude|codex|gemini) (\d+)", content.text))) == count


def test_the_demo_says_how_many_it_made(ann: DemoPerson, count: int, tmp_path: Path) -> None:
    assert sum(ann.made.conversations.values()) == count
    assert number(ann.run("demo", str(tmp_path / "demo")).err, r"Made (\d+) invented conversations") == count


def test_the_query_of_the_page_counts_the_same(ann: DemoPerson, count: int) -> None:
    (query,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (row,) = ann.run("sql", "--json", query).objects
    assert [*row.values()] == [count]
