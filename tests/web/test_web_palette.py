"""The palette: where a few letters lead."""

import re
from collections.abc import Iterator
from html import unescape

import pytest

from support.gemini_home import ROOT, GeminiHome, gemini, session_id, user
from support.person import Person
from support.web_server import Visit, run_web_server

_LINK = re.compile(r'<li data-row><a href="([^"]*)"[^>]*>(.*?)</a></li>', re.DOTALL)


def offered(visit: Visit, typed: str) -> list[tuple[str, str]]:
    """Address and text of all that is offered."""
    answered = visit.get(f"/palette?q={typed}")
    assert answered.status == 200
    assert "<html" not in answered.text
    return [
        (unescape(href), " ".join(unescape(re.sub(r"<[^>]+>", " ", told)).split()))
        for href, told in _LINK.findall(answered.text)
    ]


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    home = GeminiHome(tmp_path_factory.mktemp("palette") / "ann")
    home.mark("almanac", ROOT)
    for number in range(1, 12):
        said = [user(f"u{number}", number, f"bird {number}"), gemini(f"g{number}", number, "It moults.")]
        home.lines("almanac", number, number, said, kind="main")
    person = Person(home.folder)
    person.sync()
    person.run("name", session_id(5), "Plumage of the spendthrift")
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        yield visit


def test_nothing_typed_yet_offers_the_newest(visit: Visit) -> None:
    found = offered(visit, "")
    birds = [f"gemini bird {number}" for number in range(11, 3, -1)]
    birds[6] = "gemini Plumage of the spendthrift"
    assert [told.partition(" almanac")[0] for _, told in found] == birds


def test_words_lead_to_the_place_where_they_were_said(visit: Visit) -> None:
    found = offered(visit, "moults")
    assert len(found) == 7
    href, told = found[0]
    assert href.startswith("/session?key=gemini")
    assert "&at=1#e1" in href
    assert told.endswith("agent It moults .")
    assert found[-1] == ("/?q=moults", "All results for “moults” Ctrl Enter")


def test_the_beginning_of_a_word_is_enough(visit: Visit) -> None:
    assert len(offered(visit, "moul")) == 7
    assert [href for href, _ in offered(visit, "z")] == ["/?q=z"]


def test_titles_projects_and_pages_are_offered_too(visit: Visit) -> None:
    spend = offered(visit, "spend")
    assert any(told.startswith("gemini Plumage of the spendthrift") for _, told in spend)
    assert ("/spend", "page Spend") in spend
    assert ("/?project=%2Fhome%2Fann%2Fdev%2Falmanac", "project almanac 11 conversations") in offered(
        visit, "almanac"
    )
    assert ("/spend", "page Spend") in offered(visit, "cost")


@pytest.mark.parametrize("typed", ["%22", "-", "OR", "tool:", "%00", "is:error", "*", "%F0%9F%A6%A2"])
def test_what_means_nothing_yet_is_no_error(visit: Visit, typed: str) -> None:
    assert offered(visit, typed)[-1][0].startswith("/?q=")


def test_an_id_leads_to_its_conversation(visit: Visit) -> None:
    assert any("bird 3" in told for _, told in offered(visit, session_id(3)))
