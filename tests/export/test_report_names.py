"""Names out of transcripts, made fit for one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retold.cli.console import escape_for_terminal
from retold.export.text.formatting import (
    clean_name,
    project_names,
    shorten,
    shorten_path,
    text_width,
    wrap_words,
)
from support.sample_reports import HOSTILE


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_one_line_that_a_terminal_does_not_obey(name: str) -> None:
    told = clean_name(name)
    assert told
    assert escape_for_terminal(told) == told
    assert len(told.splitlines()) == 1
    assert len(told) <= 400
    told.encode()


@given(st.text(), st.integers(1, 60))
def test_a_name_fits_where_it_is_put(name: str, width: int) -> None:
    assert text_width(shorten(clean_name(name), width)) <= width
    assert text_width(shorten_path(clean_name(name), width)) <= width


def test_names_keep_their_letters() -> None:
    assert clean_name("Crème brûlée") == "Crème brûlée"
    assert clean_name("cafe\u0301") == "cafe\u0301"
    assert clean_name("天気予報 %s {x}") == "天気予報 %s {x}"


def test_of_a_path_the_end_is_kept() -> None:
    assert shorten_path("src/letterbox/parser.py", 12) == "…x/parser.py"
    assert shorten_path("parser.py", 12) == "parser.py"
    assert shorten_path("src/天気.py", 9) == "…/天気.py"


def test_a_project_has_its_last_name_and_as_much_of_its_path_as_tells_it_apart() -> None:
    roots = [
        "/a/one/x",
        "/b/one/x",
        "/c/two/x",
        "/home/ann/kite",
        "C:\\dev\\owl",
        "C:\\old\\owl",
        "9fb7" * 16,
        "",
        "/",
    ]
    assert list(project_names(roots).values()) == [
        "a/one/x",
        "b/one/x",
        "two/x",
        "kite",
        "dev/owl",
        "old/owl",
        "9fb79fb7",
        "",
        "/",
    ]


def test_paths_of_any_depth_come_to_an_end() -> None:
    deep = ["/" * 10_000, "/a" * 10_000, "/b" + "/a" * 9_999]
    assert set(project_names(deep)) == set(deep)


@given(st.lists(st.text()), st.integers(3, 60), st.sampled_from([" ", " · "]))
def test_flowing_words_fit_and_none_is_left_out(words: list[str], width: int, joint: str) -> None:
    told = [clean_name(word) for word in words]
    lines = list(wrap_words(told, width, joint, "  "))
    assert all(text_width(line) <= width for line in lines)
    if all(text_width(word) + 2 <= width for word in told):
        assert joint.join(line.removeprefix("  ") for line in lines) == joint.join(told)
