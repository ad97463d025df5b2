"""A search reads a limited number of outputs to verify phrases; when the limit is reached it goes on without an error."""

import pytest

from retold.archive.index.reader import Index
from retold.archive.store import Store
from retold.projects.matching import matches_project
from retold.search.engine import OUTPUTS_READ, THOROUGH_LIMIT
from retold.search.pages import SearchRequest, find_page
from retold.search.ranking import SessionCandidate, rank_sessions
from support.conversation_files import Turn, claude, claude_key
from support.person import Person

DENIED = OUTPUTS_READ + 2
"""Sessions with a phrase in an output: more than a search with a low limit reads."""
SPREAD = 90
"""Sessions that have all words of a phrase and of a second clause, but not the phrase."""


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Person:
    person = Person(tmp_path_factory.mktemp("budget") / "ann")
    for number in range(1, DENIED + 1):
        claude(person.folder, number, [Turn("deploy the tables", "permission denied: x", "done")])
    for number in range(DENIED + 1, DENIED + SPREAD + 1):
        claude(person.folder, number, [Turn("look up", "moon rocket: blue zone", "done")])
    claude(
        person.folder,
        DENIED + SPREAD + 1,
        [Turn("call rocketLaunch()", "a blue moon", "done")],
    )
    person.sync()
    return person


DENIED_QUERY = 'deploy "permission denied"'
ALL_DENIED = {claude_key(number) for number in range(1, DENIED + 1)}


def test_a_low_limit_ends_without_an_error_when_the_outputs_to_read_are_spent(person: Person) -> None:
    found = person.search(DENIED_QUERY, "-n", "10")
    assert len(found) == 10
    assert {one["key"] for one in found} <= ALL_DENIED


def test_a_low_limit_finds_as_many_as_it_may_read_and_says_so(person: Person) -> None:
    done = person.run("search", DENIED_QUERY, "--json", "-n", str(THOROUGH_LIMIT))
    assert done.code == 0
    assert len(done.objects) == OUTPUTS_READ
    assert "--limit" in done.err


def test_a_high_limit_finds_every_session_with_its_hits(person: Person) -> None:
    found = person.search(DENIED_QUERY, "-n", "1000")
    assert {one["key"] for one in found} == ALL_DENIED
    texts = [hit["snippet"] for one in found[:3] for hit in one["hits"]]
    assert all(any(word in text for word in ("deploy", "denied")) for text in texts)
    assert all(one["hits"] for one in found)


def test_the_page_shows_results_when_the_outputs_to_read_are_spent(person: Person) -> None:
    with Store(str(person.archive)) as record:
        found = find_page(record, SearchRequest(DENIED_QUERY), 0, 50)
    assert len(found.items) == 50
    assert len(found.sessions) == OUTPUTS_READ
    assert not found.is_exact


def test_a_session_that_several_tiers_put_off_is_found_once(person: Person) -> None:
    assert person.keys('"blue moon" rocket', "-n", "1000") == [claude_key(DENIED + SPREAD + 1)]


def test_candidates_of_one_session_need_no_order_among_themselves(person: Person) -> None:
    with Store(str(person.archive)) as record:
        file, *_ = Index(record, matches_project).files
        ((entry,),) = file.rows("SELECT id FROM entries LIMIT 1")
        twins = [SessionCandidate(file, entry, 1.0, lambda _: [], lambda: 0.5) for _ in range(130)]
        assert [match.score for match in rank_sessions(twins)]
