"""What a minus leaves out, signs and emoji as a query, and words that are written in other characters."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

import pytest

import retold
from retold.archive import store
from retold.archive.index.reader import Index, IndexFile, IndexHit
from retold.archive.queries.listing import Condition
from retold.archive.store import Store
from retold.projects.matching import matches_project
from retold.search.engine import ExcludedTerms, Search
from retold.search.filters import Filters
from retold.search.listing import FolderScope
from retold.search.pages import SearchRequest, find_in_session, find_page
from retold.search.query import parse_query
from retold.search.quick_find import quick_find
from retold.tui.data import ArchiveQueries, search_text
from support.conversation_files import Turn, claude, claude_key
from support.mcp_client import connect_person
from support.person import Person

T = TypeVar("T")
EARLY = "The search stopped early"
TALKS: dict[int, Sequence[Turn]] = {
    1: [Turn("apple and plum", "out", "done"), Turn("then a cherry", "out", "yes")],
    2: [Turn("apple and plum", "out", "done"), Turn("then a pear", "out", "yes")],
    3: [Turn("apple only", "the pear went by", "done")],
    4: [Turn("apple once more", "a sweet and ripe thing", "done")],
    5: [Turn("apple for a friend", "a thing, ripe and sweet", "done")],
    6: [Turn("apple of the pearTree", "out", "done")],
    7: [
        Turn(
            "release it \U0001f389\U0001f389now", "\u2713 all passed", "it is out \U0001f469\u200d\U0001f4bb"
        )
    ],
    8: [Turn("what does a -> b mean", "x != y", "it maps; see f() and `<=>`")],
    9: [Turn("\uff26\uff55\uff4c\uff4c width", "the \ufb01sh", "the HTTPServer2 and getHTTPServerName")],
    10: [Turn("\u30ac\u30e9\u30b9 caf\u00e9", "45 \u2103", "Widget\u2122")],
    11: [Turn("\u304b\u3099 cafe\u0301 \uff76\uff9e\uff97\uff7d", "\u0438\u0306\u043e\u0434", "x \u2192 y")],
}


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Person:
    person = Person(tmp_path_factory.mktemp("signs") / "ann")
    for number, turns in TALKS.items():
        claude(person.folder, number, turns)
    person.sync()
    return person


def numbers(person: Person, *query: str) -> set[int]:
    names = {claude_key(number): number for number in TALKS}
    return {names[key] for key in person.keys("-n", "100", "--", *query)}


@pytest.mark.parametrize("field", ["", "project:almanac", "agent:claude", "role:user", "is:live"])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("apple -pear", {1, 4, 5}),
        ("apple -pea*", {1, 4, 5}),
        ("apple -tree", {1, 2, 3, 4, 5}),
        ('apple -"sweet and ripe"', {1, 2, 3, 5, 6}),
        ('apple -"ripe and sweet" -pear', {1, 4}),
        ("plum -cherry", {2}),
        ("apple plum -cherry -pear", set()),
        ("release -\U0001f389", set()),
        ("apple -\U0001f389", {1, 2, 3, 4, 5, 6}),
        ("mean -!=", set()),
        ("apple -!=", {1, 2, 3, 4, 5, 6}),
    ],
)
def test_a_minus_leaves_out_every_conversation_that_holds_it(
    person: Person, field: str, query: str, expected: set[int]
) -> None:
    assert numbers(person, f"{field} {query}".strip()) == expected


@pytest.mark.parametrize(
    "unwanted",
    ["pear", "pea*", '"sweet and ripe"', '"ripe and sweet"', "tree", "\U0001f389", "!=", "caf\u00e9", "a"],
)
def test_a_minus_alone_with_a_field_leaves_out_what_the_word_finds(person: Person, unwanted: str) -> None:
    with_it, without = numbers(person, unwanted), numbers(person, f"project:almanac -{unwanted}")
    assert with_it
    assert with_it | without == set(TALKS)
    assert not with_it & without


def test_a_minus_means_the_same_in_a_question_in_plain_words(person: Person) -> None:
    done = person.run("search", "--json", "--any", "-n", "100", "apple -pear")
    names = {claude_key(number): number for number in TALKS}
    assert {names[one["key"]] for one in done.objects} == {1, 4, 5}
    done = person.run("search", "--json", "--any", "-n", "100", 'apple -"sweet and ripe"')
    assert {names[one["key"]] for one in done.objects} == {1, 2, 3, 5, 6}


def test_within_a_conversation_a_minus_leaves_out_messages(person: Person) -> None:
    with Store(str(person.archive)) as record:
        assert [hit.snippet for _, hit in find_in_session(record, claude_key(2), "a -plum")] == [
            "then a pear"
        ]
        assert [hit.snippet for _, hit in find_in_session(record, claude_key(8), "->")] == [
            "what does a -> b mean"
        ]


SIGNS = [
    ("\U0001f389", {7}),
    ("\U0001f389\U0001f389", {7}),
    ("\U0001f389\U0001f389\U0001f389", set()),
    ("\U0001f469\u200d\U0001f4bb", {7}),
    ("\U0001f4bb", {7}),
    ("\u2713", {7}),
    ("release \U0001f389", {7}),
    ("apple \U0001f389", set()),
    ("\U0001f680 OR \U0001f389", {7}),
    ('"\u2713 all passed"', {7}),
    ('"all \u2713 passed"', set()),
    ("->", {8}),
    ("!=", {8}),
    ("()", {8}),
    ("<=>", {8}),
    ("() <=>", {8}),
    ("() != ", set()),
    ("=== OR !=", {8}),
    ("`<", {8}),
    ("\u2192", {11}),
    ("project:almanac ->", {8}),
    ("role:user <=>", set()),
    ("role:user ->", {8}),
    ("agent:codex ->", set()),
    ("\u00a7\u00a7", set()),
]


@pytest.mark.parametrize(("query", "expected"), SIGNS)
def test_emoji_and_signs_find_what_holds_them(person: Person, query: str, expected: set[int]) -> None:
    assert numbers(person, query) == expected


@pytest.mark.parametrize("query", ["\U0001f389", "->", "\u2192", "\u2713"])
def test_a_hit_shows_the_sign(person: Person, query: str) -> None:
    (conversation,) = person.search("--", query)
    for hit in conversation["hits"]:
        shown = {hit["snippet"][start:end] for start, end in hit["match"]}
        assert shown == {query}


@pytest.mark.parametrize(("query", "expected"), [("\U0001f389", 7), ("->", 8), ("\u2713", 7)])
def test_every_surface_finds_signs(person: Person, query: str, expected: int) -> None:
    key, folder = claude_key(expected), str(person.archive)
    with retold.open(folder) as archive:
        assert [one.key for one in archive.search(query)] == [key]
    assert [one.key for one in search_text(ArchiveQueries(folder), FolderScope(""), query)] == [key]
    with Store(folder) as record:
        assert len(find_page(record, SearchRequest(query), 0, 5).items) == 1
        if len(query) > 1:
            assert [row.summary.key for row in quick_find(record, query).by_text] == [key]
    with connect_person(folder, is_all=True) as agent:
        assert key in agent.ask("search_history", query=query).text


def test_a_search_for_signs_ends_in_time_and_says_so(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retold.search.pages.TIME_LIMIT", -1.0)
    with Store(str(person.archive)) as record:
        stopped = find_page(record, SearchRequest("->"), 0, 5)
    assert (stopped.items, stopped.is_exact) == ((), False)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("full", {9}),
        ("\uff26\uff35\uff2c\uff2c", {9}),
        ("fish", {9}),
        ("\ufb01sh", {9}),
        ("\u30ac\u30e9\u30b9", {10, 11}),
        ("\uff76\uff9e\uff97\uff7d", {10, 11}),
        ("\u304c", {11}),
        ("\u304b\u3099", {11}),
        ("caf\u00e9", {10, 11}),
        ("cafe\u0301", {10, 11}),
        ("\u0439\u043e\u0434", {11}),
        ("\u2103", {10}),
        ("widget", {10}),
        ("widget\u2122", {10}),
        ("\uff41\uff50\uff50\uff4c\uff45", {1, 2, 3, 4, 5, 6}),
        ("httpserver", {9}),
        ("HTTPServer", {9}),
        ("httpserver2", {9}),
        ("httpservername", {9}),
        ("gethttp", {9}),
        ("ttpserver", set()),
        ("httpserve", set()),
    ],
)
def test_a_word_is_found_however_it_is_written(person: Person, query: str, expected: set[int]) -> None:
    found = person.search("-n", "100", "--", query)
    names = {claude_key(number): number for number in TALKS}
    assert {names[one["key"]] for one in found} == expected
    assert all(hit["match"] for one in found for hit in one["hits"])


def test_an_index_with_other_words_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    person = Person(tmp_path / "ann")
    claude(person.folder, 7, TALKS[7])
    for module in ("store", "index.writer"):
        monkeypatch.setattr(f"retold.archive.{module}.TOKENIZER_VERSION", 1)
    monkeypatch.setattr(
        "retold.archive.index.tokenizer.prepare_text", lambda text: text.encode("ascii", "replace").decode()
    )
    person.sync()
    assert person.keys("\U0001f389") == []
    assert person.keys("release") == [claude_key(7)]
    monkeypatch.undo()
    assert person.keys("release") == [claude_key(7)]
    done = person.run("sync")
    assert done.code == 0
    assert "is of another version: rebuilding the text index from the archive" in done.err
    assert person.keys("\U0001f389") == [claude_key(7)]
    assert person.run("sync").err.count("rebuilding") == 0
    assert store.TOKENIZER_VERSION > 1


def test_the_excluded_words_are_looked_up_before_the_files_are_asked(person: Person) -> None:
    asking, when_looked_up = [0], []

    class Watched(ExcludedTerms):
        def conditions(self) -> list[Condition]:
            when_looked_up.append(asking[0])
            return super().conditions()

    class WatchedIndex(Index):
        def ask_all(self, ask: Callable[[IndexFile], Iterable[T]]) -> list[T]:
            asking[0] += 1
            try:
                return super().ask_all(ask)
            finally:
                asking[0] -= 1

    query = parse_query("project:almanac -pear")
    with Store(str(person.archive)) as record, patch("retold.search.engine.ExcludedTerms", Watched):
        search = Search(record, query, Filters(query.fields), WatchedIndex(record, matches_project))
        assert list(search.find_matches())
    assert when_looked_up == [0]


@pytest.mark.parametrize(
    "query", ["salt pepper", "salt & pepper", "salt -> pepper", "& salt pepper", "salt & pepper -cumin"]
)
def test_a_sign_between_words_of_different_messages_changes_nothing(spices: Person, query: str) -> None:
    assert set(spices.keys(query)) == {claude_key(1), claude_key(2)}


def test_a_sign_beside_one_word_finds_what_the_word_finds(spices: Person) -> None:
    assert set(spices.keys("salt &")) == {claude_key(number) for number in (1, 2, 3)}


@pytest.fixture(scope="module")
def spices(tmp_path_factory: pytest.TempPathFactory) -> Person:
    person = Person(tmp_path_factory.mktemp("spices") / "ann")
    for number in (1, 2):
        claude(person.folder, number, [Turn("the salt", "out", "done"), Turn("the pepper", "out", "yes")])
    claude(person.folder, 3, [Turn("the salt", "out", "done")])
    claude(person.folder, 4, [Turn("the pepper & the oil", "out", "done")])
    person.sync()
    return person


@pytest.mark.parametrize("query", ['apple -"sweet and ripe"', "apple -!=", '"apple" -"sweet and ripe"'])
def test_the_best_score_is_1_whatever_is_left_out(person: Person, query: str) -> None:
    scores = [one["score"] for one in person.search("-n", "100", "--", query)]
    assert scores[0] == 1.0
    assert scores == sorted(scores, reverse=True)


def test_the_best_score_is_1_where_the_best_session_is_left_out(tmp_path: Path) -> None:
    person = Person(tmp_path / "ann")
    claude(person.folder, 1, [Turn("apple apple apple", "a sweet and ripe thing", "apple apple")])
    claude(person.folder, 2, [Turn(f"apple {'of many other things ' * 20}", "a thing, ripe and sweet", "ok")])
    person.sync()
    (found,) = person.search("--", 'apple -"sweet and ripe"')
    assert (found["key"], found["score"]) == (claude_key(2), 1.0)


def test_a_session_is_examined_for_excluded_text_once(tmp_path: Path) -> None:
    person = Person(tmp_path / "ann")
    claude(person.folder, 1, [Turn("apple plum", "apple plum, a sweet and ripe thing", "done")])
    claude(person.folder, 2, [Turn("apple plum", "apple plum, a thing, ripe and sweet", "done")])
    person.sync()
    examined = []

    class Watched(ExcludedTerms):
        def is_in(self, found: IndexHit) -> bool:
            examined.append(found.session)
            return super().is_in(found)

    query = parse_query('apple plum -"sweet and ripe"')
    with Store(str(person.archive)) as record, patch("retold.search.engine.ExcludedTerms", Watched):
        found = list(Search(record, query, Filters(query.fields)).find_matches())
    assert len(found) == 1
    assert len(examined) == len(set(examined)) == 2


def test_an_agent_is_told_that_a_search_for_signs_stopped_early(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect_person(str(person.archive), is_all=True) as agent:
        assert EARLY not in agent.ask("search_history", query="->").text
        assert EARLY not in agent.ask("search_history", query="=== ==").text
        monkeypatch.setattr("retold.mcp.tools.search_history.TIME_LIMIT", -1.0)
        stopped = agent.ask("search_history", query="->").text
    assert EARLY in stopped
    assert "Nothing was found" in stopped
