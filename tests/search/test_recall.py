"""Recall: what a question in plain words finds, in which order, and what is shown of it."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retold.archive.queries.listing import folder_condition, key_condition
from retold.archive.store import Store
from retold.search import recall
from retold.search.query import QuerySyntaxError, parse_question
from retold.search.recall import MOST_WORDS, extract_keywords, word_forms
from retold.search.results import SearchResult
from support.conversation_files import FORMS, Turn
from support.gemini_home import DAY, GeminiHome, user
from support.person import Person
from support.recall import recalled
from support.synced_archive import sync_archive


class Kept:
    """Talks in an archive, asked in plain words."""

    def __init__(self, folder: Path, *talks: Sequence[Turn]) -> None:
        for number, talk in enumerate(talks, 1):
            FORMS["claude"].write(folder / "home", number, talk)
        self.folder = str(folder / "retold")
        sync_archive(self.folder, {"HOME": str(folder / "home")})

    def recalled(self, question: str, limit: int = 5) -> list[SearchResult]:
        with Store(self.folder) as record:
            return recalled(record, question, [], limit)

    def numbers(self, question: str) -> list[int]:
        """Return the numbers of the talks that are found, in their order."""
        return [int(one.key.partition(":")[2][:8], 16) for one in self.recalled(question)]


def talk(*said: str) -> list[Turn]:
    return [Turn(text, "ok", "Done.") for text in said]


NOISE = [
    talk(f"polish the {thing} please") for thing in ("door", "window", "floor", "table", "spoon", "kettle")
]


# What is telling ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("how did we fix the flaky date test?", ["fix", "flaky", "date", "test"]),
        ("Why didn't it work? What's with Anna's cache", ["work", "Anna", "cache"]),
        ('where did "connection reset by peer" come from', ["connection reset by peer", "come"]),
        ("zon* OR offset in app/slots.py:38", ["zon", "app slots py 38", "app", "slots", "py", "38"]),
        ("parseDate broke", ["parseDate", "parse", "Date", "broke"]),
        ("移動平均", ["移動", "動平", "平均"]),
        ("错误 413", ["错误", "413"]),
        ("cache cache CACHE -cache project:x", ["cache"]),
        ("how did we do that?", []),
    ],
)
def test_words_that_only_ask_are_dropped(question: str, words: list[str]) -> None:
    assert [word.forms[0][0][0].text for word in extract_keywords(parse_question(question))] == words


def test_no_more_words_are_looked_for_than_others_can_wait_for() -> None:
    assert (
        len(extract_keywords(parse_question(" ".join(f"word{number}" for number in range(10_000)))))
        == MOST_WORDS
    )


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("tests", "test"), ("test", "tests"), ("failing", "failed"), ("retries", "retry"), ("stopped", "stopping"),
        ("slowly", "slow"), ("migrations", "migrate"), ("broke", "broken"), ("Caching", "cache"), ("db", "database"),
    ],
)  # fmt: skip
def test_a_word_is_found_in_other_forms(word: str, other: str) -> None:
    assert other in word_forms(word)


@pytest.mark.parametrize("word", ["413", "der", "Straße", "移動", "utf8", "a"])
def test_what_is_no_english_word_has_no_other_forms(word: str) -> None:
    assert word_forms(word) == []


@pytest.mark.parametrize(
    "question",
    [
        "terraform - what now",
        'a 5" disk',
        "** bold **",
        "this OR",
        "in file: which",
        '"" nothing',
        "tool: project: x",
    ],
)
def test_punctuation_is_no_mistake(question: str) -> None:
    assert parse_question(question).terms


@pytest.mark.parametrize("question", ["", "  ", "-", "-word", "is:bogus word", "after:never word"])
def test_what_means_nothing_is_told(question: str) -> None:
    with pytest.raises(QuerySyntaxError):
        parse_question(question)


# What is found ------------------------------------------------------------------------------------------------------


def test_not_all_words_need_to_be_there(tmp_path: Path) -> None:
    kept = Kept(tmp_path, *NOISE, talk("the parser fails on dates before 1970"))
    assert kept.numbers("how was the flaky date parser repaired?") == [7]


def test_words_in_one_message_come_before_words_far_apart(tmp_path: Path) -> None:
    far = talk("heron " * 3, *["something else"] * 9, "egret " * 3)
    near = talk("a heron and an egret stand in the long and quiet river, where nobody ever goes")
    assert Kept(tmp_path, *NOISE, far, near).numbers("heron egret") == [8, 7]


def test_a_rare_word_tells_more_than_a_common_one(tmp_path: Path) -> None:
    kept = Kept(
        tmp_path,
        *NOISE,
        talk("polish it, polish, polish it well"),
        talk("use the lathe for the old oak table"),
    )
    assert kept.numbers("polish lathe")[0] == 8


def test_what_a_person_said_tells_more_than_what_went_by(tmp_path: Path) -> None:
    shown = [Turn("look at it", "heron egret", "Done.")]
    said = [Turn("what of heron and egret", "ok", "Done.")]
    answered = [Turn("look again", "ok", "It was heron and egret.")]
    assert Kept(tmp_path, shown, answered, said, *NOISE).numbers("heron egret") == [3, 2, 1]


@pytest.mark.parametrize("newer", [1, 2])
def test_between_equals_the_newer_comes_first(tmp_path: Path, newer: int) -> None:
    for number in (1, 2):
        file = FORMS["claude"].write(tmp_path / "home", number, talk(f"heron number {number}"))
        if number == newer:
            today = datetime.now(UTC).date().isoformat()
            file.write_text(file.read_text(encoding="utf-8").replace(DAY, today), encoding="utf-8")
    assert Kept(tmp_path).numbers("heron")[0] == newer


def test_fields_phrases_and_what_must_not_occur_still_hold(tmp_path: Path) -> None:
    kept = Kept(tmp_path, talk("heron egret"), talk("egret heron"), talk("heron stork"), *NOISE)
    assert kept.numbers('how is "heron egret" done')[0] == 1
    assert set(kept.numbers("what about heron -stork")) == {1, 2}
    assert kept.numbers("heron agent:gemini") == []
    assert kept.numbers("heron role:assistant") == []
    assert set(kept.numbers("heron role:user after:2020-01-01")) == {1, 2, 3}


def test_conditions_hold_whatever_is_asked(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "home")
    for number, project in enumerate(("alpha", "beta"), 1):
        home.mark(project, f"/home/ann/dev/{project}")
        told = [user(f"m{number}", 1, f"the heron of {project}")]
        home.json(project, number, 1, told, root=f"/home/ann/dev/{project}")
    folder = str(tmp_path / "retold")
    sync_archive(folder, {"HOME": str(tmp_path / "home")})
    with Store(folder) as record:
        everywhere = recalled(record, "heron", [], 5)
        roots = {one.project["root"] for one in everywhere}
        assert roots == {"/home/ann/dev/alpha", "/home/ann/dev/beta"}
        for root in roots:
            for question in ("where is the heron", f"heron OR x project:{root}", "how did we do it"):
                assert {
                    one.project["root"] for one in recalled(record, question, [folder_condition(root)], 5)
                } == {root}
        assert recalled(record, "heron", [folder_condition("/nowhere")], 5) == []


def test_a_question_that_tells_nothing_finds_the_newest(tmp_path: Path) -> None:
    assert len(Kept(tmp_path, *NOISE).recalled("what did we do?", 4)) == 4


def test_words_that_nobody_said_find_nothing(tmp_path: Path) -> None:
    assert Kept(tmp_path, *NOISE).numbers("how about the zeppelin") == []


@pytest.mark.parametrize("most", [{"said": 0, "output": 0}, {"said": 3, "output": 0}])
def test_words_that_are_everywhere_lead_to_what_has_most_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: dict[str, int]
) -> None:
    talks = [
        talk(f"polish the {one} and the {other}") for one in ("door", "floor") for other in ("spoon", "fork")
    ]
    kept = Kept(tmp_path, *NOISE, *talks)
    monkeypatch.setattr(recall, "SELECTIVE", most)
    assert kept.numbers("how did we polish floors with a fork?")[0] == 10


def test_what_only_ever_went_by_is_found_however_common_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    went_by = [[Turn(f"run {number}", "E4711: no heron", "Done.")] for number in range(9)]
    kept = Kept(tmp_path, *NOISE, *went_by)
    monkeypatch.setattr(recall, "SELECTIVE", {"said": 1_000, "output": 2})
    assert kept.numbers("what is E4711 about?")


def test_what_leads_elsewhere_does_not_hide_what_is_common_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Kept(tmp_path, *NOISE, talk("the heron"))
    for name, value in (("SELECTIVE", {"said": 2, "output": 2}), ("LOW_RATIO", 1), ("NEGLIGIBLE_RATIO", 1)):
        monkeypatch.setattr(recall, name, value)
    assert kept.numbers("polish heron")[0] == 7
    with Store(kept.folder) as record:
        elsewhere = key_condition(FORMS["claude"].key(7)).negated()
        assert len(recalled(record, "polish heron", [elsewhere], 9)) == len(NOISE)


@given(
    st.text(max_size=60)
    | st.lists(
        st.sampled_from(["heron", '"', "-", "*", "OR", "NEAR(", "is:", "^", "{", "col:", "'", "\0"])
    ).map(" ".join)
)
def test_no_question_breaks_it(kept_once: Kept, question: str) -> None:
    try:
        found = kept_once.recalled(question)
    except QuerySyntaxError:
        return
    for one in found:
        for hit in one.hits:
            assert all(0 <= start < end <= len(hit.snippet) for start, end in hit.matches)


@pytest.fixture(scope="module")
def kept_once(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return Kept(tmp_path_factory.mktemp("recall"), *NOISE, talk("the heron is back"))


def test_a_very_long_question_is_answered_at_once(kept_once: Kept) -> None:
    began = time.perf_counter()
    kept_once.recalled("heron " + " ".join(f"w{number}x" for number in range(50_000)))
    assert kept_once.recalled("-- ** " * 50_000 + '"heron')
    assert time.perf_counter() - began < 20


# What is shown ------------------------------------------------------------------------------------------------------


def test_a_hit_shows_the_words_in_the_form_they_have(tmp_path: Path) -> None:
    (found,) = Kept(tmp_path, *NOISE, talk("two herons were fishing")).recalled("heron fished", 1)
    (hit,) = found.hits
    assert [hit.snippet[start:end] for start, end in hit.matches] == ["herons", "fishing"]


def test_further_hits_show_what_the_first_does_not_hold(tmp_path: Path) -> None:
    (found,) = Kept(tmp_path, talk("the heron stands", "it flies", "an egret comes"), *NOISE).recalled(
        "heron egret", 1
    )
    assert {hit.snippet for hit in found.hits} == {"the heron stands", "an egret comes"}
    assert found.score == 1.0


# On the command line ------------------------------------------------------------------------------------------------


def test_search_any_finds_what_comes_closest(tmp_path: Path) -> None:
    person = Person(tmp_path)
    for number, said in enumerate([*NOISE, talk("the parser fails on old dates")], 1):
        FORMS["claude"].write(tmp_path, number, said)
    person.age()
    person.sync()
    question = "how did we repair the date parser?"
    assert person.keys(question) == []
    assert person.keys("--any", question) == [FORMS["claude"].key(7)]
    assert person.keys("--any", "parser", "--agent", "gemini") == []
    plain = person.run("search", "--any", "the parser - why?")
    assert (plain.code, plain.err) == (0, "")
    assert "you: the parser fails on old dates" in plain.out
    for wrong in (("--any", "is:bogus"), ("--any", "--regex", "parser")):
        assert person.run("search", *wrong).code == 2
