"""The list of sessions: rows, search and what narrows them down."""

import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from support.gemini_home import ROOT, GeminiHome, call, gemini, session_id, user
from support.person import Json, Person
from support.session_list_page import facets, list_rows, session_count
from support.web_server import Visit, run_web_server

OTHER = "/home/ann/dev/orchard"


def talk(number: int, words: str, *calls: Json) -> list[Json]:
    return [user(f"u{number}", 1, words), gemini(f"g{number}", 2, f"About {words}", calls)]


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Person:
    home = GeminiHome(tmp_path_factory.mktemp("lists") / "ann")
    home.mark("almanac", ROOT)
    home.mark("orchard", OTHER)
    failed = call("run_shell_command", {"command": "make"}, 2, status="error")
    home.lines("almanac", 1, 1, talk(1, "where do herons nest", failed), kind="main")
    home.lines(
        "almanac",
        2,
        2,
        [*talk(2, "who counted the storks"), {"$rewindTo": "u2"}, *talk(3, "herons again")],
        kind="main",
    )
    edited = call("write_file", {"file_path": f"{OTHER}/tree.py", "content": "pears"}, 2)
    home.lines("orchard", 3, 3, talk(4, "plant pear trees", edited), root=OTHER, kind="main")
    home.lines("orchard", 4, 4, [user("u5", 1, "never answered")], root=OTHER, kind="main")
    lost = home.lines("orchard", 5, 5, talk(6, "prune in winter"), root=OTHER, kind="main")
    home.logs("orchard", [(9, "only a prompt of herons")])
    person = Person(home.folder)
    person.sync()
    assert person.run("tag", session_id(3), "+fruit").code == 0
    lost.unlink()
    person.sync()
    return person


@pytest.fixture(scope="module")
def visit(person: Person) -> Iterator[Visit]:
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        yield visit


def test_a_row_tells_what_the_list_tells(person: Person, visit: Visit) -> None:
    shown = list_rows(visit.get("/").text)
    listed = {row["key"]: row for row in person.run("list", "--json").objects}
    assert list(shown) == list(listed)
    by_title = {row["title"]: shown[key] for key, row in listed.items()}
    herons = by_title["where do herons nest"]
    for told in (
        "gemini",
        "almanac",
        "gemini-2.5-pro",
        "1 prompt · 2 messages",
        "1 tool error",
        "115 tokens",
        "failure",
    ):
        assert told in herons, told
    assert "interrupted" in by_title["never answered"]
    assert "fruit" in by_title["plant pear trees"]
    assert "gone from its home" in by_title["prune in winter"]
    assert "only prompts are left" in by_title["only a prompt of herons"]
    assert all("gone" not in row for title, row in by_title.items() if title != "prune in winter")


@pytest.mark.parametrize(
    "address",
    [
        "/",
        "/?agent=gemini",
        "/?project=orchard",
        "/?status=failure",
        "/?q=herons",
        "/?q=herons&project=almanac",
    ],
)
def test_each_facet_counts_what_choosing_it_shows(visit: Visit, address: str) -> None:
    found = facets(visit.get(address).text)
    assert {name for _, name, _, _ in found} >= {"agent", "project", "model", "tool", "status"}
    for href, name, value, number in found:
        if name not in parse_qs(urlsplit(address).query):
            assert session_count(visit.get(href).text) == number, (name, value)


def test_a_chosen_facet_shows_what_else_could_be_chosen_and_how_to_take_it_off(visit: Visit) -> None:
    text = visit.get("/?project=" + quote(ROOT)).text
    projects = {value: (href, number) for href, name, value, number in facets(text) if name == "project"}
    assert {value: number for value, (_, number) in projects.items()} == {ROOT: 2, OTHER: 4}
    assert projects[ROOT][0] == "/"
    assert len(list_rows(text)) == 2
    assert 'data-chip="project"><bdi>project: almanac</bdi>' in text


def test_several_filters_narrow_and_stay_in_the_address(visit: Visit) -> None:
    text = visit.get("/?agent=gemini&status=success&tool=file_write").text
    (row,) = list_rows(text).values()
    assert row.startswith("plant pear trees")
    assert all("tool=file_write" in href for href, name, _, _ in facets(text) if name == "project")


def test_words_are_found_where_they_were_said(person: Person, visit: Visit) -> None:
    text = visit.get("/?q=herons+again").text
    (key,) = list_rows(text)
    places = [
        parse_qs(urlsplit(unescape(href)).query)
        for href in re.findall(r'href="(/session\?[^"]*at=[^"]*)"', text)
    ]
    timeline = person.show(key)["timeline"]
    assert places
    for place in places:
        assert place["key"] == [key]
        assert "herons again" in str(timeline[int(place["at"][0])])
    assert "<mark>herons</mark> <mark>again</mark>" in text


def test_a_place_tells_what_became_of_it(visit: Visit) -> None:
    (row,) = list_rows(visit.get("/?q=storks").text).values()
    assert "you taken back who counted the storks" in row


def test_the_order_is_the_best_or_the_newest(visit: Visit) -> None:
    best = list(list_rows(visit.get("/?q=herons").text))
    newest = list(list_rows(visit.get("/?q=herons&order=newest").text))
    listed = [key for key in list_rows(visit.get("/").text) if key in newest]
    assert sorted(best) == sorted(newest)
    assert newest == listed


def test_a_word_that_is_being_typed_is_found_by_its_beginning(visit: Visit) -> None:
    text = visit.get("/?q=hero").text
    assert len(list_rows(text)) == 3
    assert "Nobody said “hero” as a word: these begin so." in text


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("q=%22two+words", "The quote at 0 is not closed: write &#34;two words&#34;."),
        ("q=is:nonsense", "Is: at 0 has none of its values"),
        ("q=(&mode=regex", "No regular expression: missing ), unterminated subpattern."),
        ("since=someday", "“someday” is no date: try 2026-01-27, 7d or yesterday."),
        ("until=99999y", "“99999y” is no date"),
        ("q=unheard", "Nothing found"),
        ("q=unheard", "Look for these letters anywhere"),
        ("project=nowhere", "Take off all filters"),
        ("from=1000", "There are no more."),
    ],
)
def test_what_is_not_understood_or_not_found_says_what_to_try(visit: Visit, query: str, told: str) -> None:
    answered = visit.get(f"/?{query}")
    assert answered.status == 200
    assert told in answered.text


def test_letters_and_patterns_are_found_anywhere(visit: Visit) -> None:
    (letters,) = list_rows(visit.get("/?q=rune+in+win&mode=letters").text).values()
    assert letters.startswith("prune in winter")
    patterns = visit.get("/?q=pe.r+tre*s&mode=regex").text
    (pattern,) = list_rows(patterns).values()
    assert pattern.startswith("plant pear trees")
    assert "<mark>pear trees</mark>" in patterns
    assert list_rows(visit.get("/?q=pe.r&mode=regex&project=almanac").text) == {}
