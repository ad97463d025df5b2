"""Names found though they are typed in haste."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retold.search.quick_find import fold_text, score_fields, split_words

TITLE = "Why does the migration of the moon table skip a day?"
WORDS = st.text(st.sampled_from("abcdefgh"), min_size=5, max_size=12)


def fit(typed: str, *fields: str) -> tuple[int, int] | None:
    return score_fields(split_words(typed), [fold_text(field) for field in fields])


@pytest.mark.parametrize(
    "typed",
    [
        "migration", "MIGRATION", "migr", "moon table", "table moon", "gration",
        "migraton", "migrattion", "migrqtion", "mirgation", "migratino", "mgrtn",
    ],
)  # fmt: skip
def test_a_word_is_found_whole_in_part_with_a_slip_and_by_some_letters(typed: str) -> None:
    assert fit(typed, TITLE) is not None


@pytest.mark.parametrize("typed", ["caf\u00e9", "cafe\u0301", "\uff43\uff41\uff46\u00e9"])
def test_a_word_is_found_in_every_form_of_unicode(typed: str) -> None:
    assert all(fit(typed, f"the {name} of the moon") for name in ("CAF\u00c9", "cafe\u0301"))


@pytest.mark.parametrize("typed", ["walrus", "moon walrus", "migxxtion", "xigration", "zzz", "noom"])
def test_what_is_not_there_is_not_found(typed: str) -> None:
    assert fit(typed, TITLE) is None


def test_the_better_something_fits_the_higher_it_stands() -> None:
    ways = ["moon", "oon", "mooon", "motable"]
    found = [fit(way, "a moon of the table", "") for way in ways[:3]]
    assert all(found)
    assert found == sorted(found, reverse=True, key=lambda one: one or (0, 0))
    assert len(set(found)) == 3


def test_a_word_in_the_title_weighs_more_than_one_in_the_prompt() -> None:
    title, prompt = fit("moon", "moon", "x", "x"), fit("moon", "x", "x", "moon")
    assert title is not None
    assert prompt is not None
    assert title > prompt


def test_letters_alone_do_not_find_long_texts() -> None:
    assert fit("mgrtn", "x", "y", "migration") is None
    assert fit("migraton", "x", "y", "migration") is not None


def test_initials_find_a_name() -> None:
    assert fit("mt", "The moon table") is not None


def test_signs_of_patterns_are_only_signs() -> None:
    assert fit("a.*b[", "nothing like it") is None
    assert fit("(.*)+$", "(.*)+$ as it stands") is not None
    assert fit("c++ +*", "c++ x") is None


@given(WORDS, st.integers(1, 11), st.sampled_from("abcdefgh"))
def test_any_single_slip_behind_the_first_letter_is_forgiven(word: str, place: int, letter: str) -> None:
    place = min(place, len(word) - 1)
    slips = {
        word[:place] + word[place + 1 :],
        word[:place] + letter + word[place:],
        word[:place] + letter + word[place + 1 :],
    }
    if place + 1 < len(word):
        slips.add(word[:place] + word[place + 1] + word[place] + word[place + 2 :])
    for slip in slips:
        if len(slip) >= 4:
            assert fit(slip, f"see {word} there") is not None, slip


@given(st.text(max_size=60), st.lists(st.text(max_size=500), max_size=4))
def test_nothing_that_is_typed_or_told_makes_it_fail(typed: str, fields: list[str]) -> None:
    found = fit(typed, *fields)
    assert found is None or found[0] > 0


def test_strict_means_as_it_was_typed() -> None:
    assert score_fields(["moon"], ["moon table"], strict=True) is not None
    assert score_fields(["mooon"], ["moon table"], strict=True) is None


def test_of_an_endless_text_only_the_beginning_counts() -> None:
    assert fit("moon", "x " * 300 + "moon") is None
    assert len(split_words("word " * 100)) == 8
