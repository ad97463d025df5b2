"""Values of filters and fields: tools by kind and in any case, and the names there are where a value is unknown."""

import pytest

import retold
from retold.archive.queries.listing import TOOL_KINDS
from retold.model import CATEGORIES
from retold.search.listing import FolderScope
from retold.tui.data import ArchiveQueries, search_text, unknown_in_query
from support.demo_person import DemoPerson
from support.mcp_client import connect_person
from support.person import Json
from support.report_pages import section, table_rows
from support.session_list_page import list_rows, session_count
from support.web_server import run_web_server

ALL = ("-n", "1000")


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> DemoPerson:
    return DemoPerson(tmp_path_factory.mktemp("values"))


@pytest.fixture(scope="module")
def calls(person: DemoPerson) -> dict[str, list[Json]]:
    """Return the tool calls of every session, as `retold show` prints them."""
    return {
        key: [
            part
            for entry in session["timeline"]
            for part in entry.get("parts", ())
            if part["type"] == "tool_call"
        ]
        for key, session in person.sessions().items()
    }


def sessions_with(calls: dict[str, list[Json]], field: str, *values: str) -> set[str]:
    return {key for key, parts in calls.items() if any(part[field] in values for part in parts)}


def test_each_kind_is_made_of_canonical_names() -> None:
    assert {name for names in TOOL_KINDS.values() for name in names} <= set(CATEGORIES)


@pytest.mark.parametrize("kind", sorted(TOOL_KINDS))
@pytest.mark.parametrize("change", [str, str.upper, str.capitalize], ids=["lower", "upper", "capital"])
def test_a_kind_finds_the_tools_of_every_agent(
    person: DemoPerson, calls: dict[str, list[Json]], kind: str, change: type[str]
) -> None:
    expected = sessions_with(calls, "canonical", *TOOL_KINDS[kind])
    assert len({key.partition(":")[0] for key in expected}) > 1
    assert set(person.keys(f"tool:{change(kind)}", *ALL)) == expected
    listed = person.run("list", "--all", "--json", "--tool", change(kind))
    assert {row["key"] for row in listed.objects} == expected


@pytest.mark.parametrize("name", ["bash", "BASH", "Bash"])
def test_a_tool_is_found_in_any_case(person: DemoPerson, calls: dict[str, list[Json]], name: str) -> None:
    expected = sessions_with(calls, "name", "Bash")
    assert expected
    assert set(person.keys(f"tool:{name}", *ALL)) == expected


def test_stats_count_the_tools_of_a_kind(person: DemoPerson) -> None:
    by_tool = {line["of"]: line for line in person.run("stats", "--json", "--by", "tool").objects}
    shell = {line["of"] for line in person.run("stats", "--json", "--by", "tool", "--tool", "Shell").objects}
    assert shell == {name for name, line in by_tool.items() if line["tool"]["canonical"] == "shell_exec"}


def test_library_page_browser_and_tools_for_agents_find_the_same(person: DemoPerson) -> None:
    expected = set(person.keys("tool:shell", *ALL))
    with retold.open(person.archive) as archive:
        assert {one.key for one in archive.search("tool:Shell", limit=1000)} == expected
    in_browser = {
        one.key for one in search_text(ArchiveQueries(str(person.archive)), FolderScope(""), "tool:SHELL")
    }
    assert in_browser == expected
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        page = visit.get("/?q=tool:Shell&many=100").text
        assert set(list_rows(page)) == expected
        assert session_count(page) == len(person.run("list", "--json", "--tool=shell").objects)
        by_kind, by_name = (visit.get(f"/?tool={name}").text for name in ("SHELL", "shell_exec"))
        assert session_count(by_kind) == session_count(by_name) > 0
    with connect_person(str(person.archive), is_all=True) as agent:
        answers = agent.pages("search_history", query="tool:SHELL", budget=20_000)
        assert not any(answer.is_error for answer in answers)
        assert {key for key in expected if any(key in answer.text for answer in answers)} == expected


def test_the_page_of_one_tool_is_of_that_tool_alone(person: DemoPerson) -> None:
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        page = visit.get("/tools?period=all&tool=Edit").text
    assert [row[0] for row in table_rows(section(page, "of-tools"))] == ["Edit"]


@pytest.mark.parametrize(
    "where", [("search", "tool:nope"), ("search", "x", "--tool", "nope"), ("list", "--tool=nope")]
)
def test_a_miss_names_the_tools_there_are(person: DemoPerson, where: tuple[str, ...]) -> None:
    done = person.run(*where)
    assert done.code == 1
    (line,) = [line for line in done.err.splitlines() if "nope" in line]
    assert line.startswith("retold: no tool is called nope: there are exec_command, Bash, replace, ")
    assert line.endswith("; the kinds of tools are shell, edit, read, search, web")


@pytest.mark.parametrize("where", [("list",), ("list", "--json"), ("stats",), ("export", "--format=md")])
@pytest.mark.parametrize(
    ("option", "named"),
    [
        ("--model=nope", "gemini-2.5-pro"),
        ("--tag=nope", "sea"),
        ("--home=nope", "there are none"),
        ("--project=nope", "ladle"),
    ],
)
def test_a_miss_names_models_tags_homes_and_projects(
    person: DemoPerson, where: tuple[str, ...], option: str, named: str
) -> None:
    key = next(iter(person.rows()))
    assert person.run("tag", key, "+sea").code == 0
    done = person.run(*where, option)
    assert done.code == 1
    kind = option[2:].partition("=")[0]
    (line,) = [line for line in done.err.splitlines() if f"no {kind} is called nope" in line]
    assert named in line
    assert person.run("list", "--tag=SEA").code == 0


def test_a_name_that_is_known_makes_no_message(person: DemoPerson) -> None:
    done = person.run("search", "nosuchwordanywhere", "tool:bash", "-tool:nope")
    assert (done.code, done.err) == (1, "retold: nothing found\n")


def test_page_browser_and_tools_for_agents_name_the_tools_there_are(person: DemoPerson) -> None:
    told = "o tool is called nope: there are exec_command, Bash, "
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        for address in ("/?tool=nope", "/?q=tool:nope", "/?q=tide&tool=nope"):
            assert f"N{told}" in visit.get(address).text
    assert f"n{told}" in unknown_in_query(ArchiveQueries(str(person.archive)), "tool:nope")
    with connect_person(str(person.archive), is_all=True) as agent:
        answer = agent.ask("search_history", query="x tool:nope")
    assert answer.is_error
    assert f"n{told}" in answer.text


def test_tools_for_agents_name_no_tool_beyond_their_reach(person: DemoPerson) -> None:
    with connect_person(str(person.archive), "/nowhere/at/all") as agent:
        answer = agent.ask("search_history", query="x tool:nope")
    assert answer.is_error
    assert "no tool is called nope: there are none" in answer.text


def test_tools_for_agents_do_not_say_which_projects_there_are(person: DemoPerson) -> None:
    with connect_person(str(person.archive), "/nowhere/at/all") as agent:
        answer = agent.ask("search_history", query="x project:ladle")
    assert not answer.is_error
    assert answer.text.startswith("Nothing was found.")


def test_a_project_is_known_by_its_path_its_hash_and_a_part_of_its_name(person: DemoPerson) -> None:
    row = next(row for row in person.rows().values() if row["project"]["root"])
    root, digest = row["project"]["root"], row["project"]["hash"]
    for name in (root, f"{root}/", digest, digest[:8], root[-4:].upper()):
        done = person.run("search", "nosuchwordanywhere", "--project", name)
        assert (done.code, done.err) == (1, "retold: nothing found\n"), name


@pytest.mark.parametrize(
    "arguments", [("list", "--agent=foo"), ("stats", "--agent=foo"), ("search", "x", "--agent=foo")]
)
def test_an_unknown_agent_is_wrong_usage(person: DemoPerson, arguments: tuple[str, ...]) -> None:
    done = person.run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "no agent is called foo: write one of claude, codex, gemini" in done.err


def test_an_unknown_agent_in_a_query_is_wrong_usage(person: DemoPerson) -> None:
    done = person.run("search", "tide agent:foo")
    assert (done.code, done.out) == (2, "")
    assert "agent: at 5 has none of its values: write one of claude, codex, gemini" in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("list", "--agent=Codex"),
        ("search", "agent:CODEX"),
        ("list", "--role=User"),
        ("list", "--status=SUCCESS"),
    ],
)
def test_a_known_value_is_right_in_any_case(person: DemoPerson, arguments: tuple[str, ...]) -> None:
    lower = tuple(argument.lower() for argument in arguments)
    assert person.run(*arguments, "--json").objects == person.run(*lower, "--json").objects != []


def test_sync_takes_the_name_of_an_agent_in_any_case(person: DemoPerson) -> None:
    assert person.run("sync", "--agent", "Claude").code == 0
    assert person.run("sync", "--agent", "foo").code == 2


def test_library_page_and_tools_for_agents_refuse_an_unknown_agent(person: DemoPerson) -> None:
    told = "o agent is called foo: write one of claude, codex, gemini"
    with retold.open(person.archive) as archive, pytest.raises(ValueError, match=f"n{told}"):
        list(archive.sessions(agent="foo"))
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        assert f"N{told}" in visit.get("/?agent=foo").text
        assert "No date" not in visit.get("/?agent=foo").text
        assert session_count(visit.get("/?agent=Codex").text) == session_count(
            visit.get("/?agent=codex").text
        )
    with connect_person(str(person.archive), is_all=True) as agent:
        for tool in ("search_history", "find_fix"):
            answer = agent.ask(tool, **{"query" if tool == "search_history" else "problem": "x"}, agent="foo")
            assert answer.is_error
            assert f"n{told}" in answer.text
