"""What is shown of a text is cleaned before it is cut out: half of a secret is none that anybody knows."""

import re
from pathlib import Path

import pytest

from retold.archive.store import Store
from retold.redaction.redactor import Redactor
from retold.search.engine import Search
from retold.search.filters import Filters
from retold.search.query import parse_query
from retold.search.results import CONTEXT, find_highlights, make_safe_snippet
from support.conversation_files import FORMS, Turn
from support.recall import recalled
from support.synced_archive import sync_archive

SECRET = "ghp_" + "a1B2c3D4e5F6" * 3
QUERY = parse_query("heron")


def without_secret(text: str) -> str:
    return text.replace(SECRET, "[gone]")


def line(text: str) -> str:
    """Return what is shown of a text, where it is cleaned."""
    found, places = make_safe_snippet(text, find_highlights(text, QUERY), QUERY, without_secret)
    assert all(found[start:end] == "heron" for start, end in places)
    return found


@pytest.mark.parametrize("gap", range(60, 100, 3))
def test_no_half_of_a_secret_is_shown(gap: int) -> None:
    # At the edge of a line of 160 characters, wherever that is.
    text = f"{SECRET} {'x' * (gap - 2)} heron {'y' * (gap - 2)} {SECRET}"
    assert not set(re.findall(r"\w+", line(text))) & {SECRET[:length] for length in range(4, 41)}
    assert "a1B2c3" not in line(text)
    assert "heron" in line(text)


@pytest.mark.parametrize("offset", range(-45, 46, 3))
def test_a_secret_that_is_cut_where_cleaning_begins_is_not_shown(offset: int) -> None:
    filler = "word " * ((CONTEXT + offset) // 5) + "w" * ((CONTEXT + offset) % 5)
    for text in (f"{'z ' * 9_000}{SECRET} {filler} heron", f"heron {filler} {SECRET}{' z' * 9_000}"):
        assert "a1B2c3" not in line(text)
        assert "heron" in line(text)


@pytest.mark.parametrize("offset", range(-45, 46, 3))
def test_where_nothing_is_left_to_mark_the_edge_is_not_shown_either(offset: int) -> None:
    filler = "word " * ((CONTEXT + offset) // 5) + "w" * ((CONTEXT + offset) % 5)
    text = f"{'z ' * 9_000}{SECRET} {filler} heron {filler} {SECRET}{' z' * 9_000}"
    found, places = make_safe_snippet(
        text, find_highlights(text, QUERY), QUERY, lambda told: without_secret(told).replace("heron", "-")
    )
    assert not places
    assert not any(SECRET[start : start + 6] in found for start in range(len(SECRET) - 5))


def test_what_stands_before_a_place_may_all_go() -> None:
    # What is taken out near the edge brings the place nearer to it.
    assert (
        line(f"{'z ' * 9_000}{f'{SECRET} ' * 99} heron {f'{SECRET} ' * 99}{'z ' * 9_000}").count("heron") == 1
    )


def test_a_word_that_was_part_of_a_secret_is_not_shown() -> None:
    text = "keep this: heron-4711 and nothing else"
    found, places = make_safe_snippet(
        text, find_highlights(text, QUERY), QUERY, lambda told: told.replace("heron-4711", "[gone]")
    )
    assert (found, places) == ("keep this: [gone] and nothing else", [])


def test_only_what_is_near_is_cleaned() -> None:
    seen: list[str] = []

    def clean(text: str) -> str:
        seen.append(text)
        return text

    text = f"{'z ' * 1_000_000}heron{' z' * 1_000_000}"
    make_safe_snippet(text, find_highlights(text, QUERY), QUERY, clean)
    assert [len(one) for one in seen] == [2 * CONTEXT + len("heron")]


def test_searches_and_recall_show_what_was_cleaned(tmp_path: Path) -> None:
    filler = "the quick brown fox jumps over the lazy dog " * 300
    talk = [
        Turn(f"{filler} token {SECRET} of the heron {filler}", f"heron {SECRET}", f"The heron has {SECRET}."),
    ]
    FORMS["claude"].write(tmp_path / "home", 1, talk)
    sync_archive(tmp_path / "retold", {"HOME": str(tmp_path / "home")})
    with Store(str(tmp_path / "retold")) as record:
        for clean, is_there in ((None, True), (Redactor().redact_text, False)):
            searched = list(Search(record, QUERY, Filters(), clean=clean).find(5))
            asked = recalled(record, "where was the heron", [], 5, clean=clean)
            for found in (searched, asked):
                snippets = [hit.snippet for one in found for hit in one.hits]
                assert snippets
                assert all("heron" in snippet for snippet in snippets)
                assert any("a1B2c3" in snippet for snippet in snippets) is is_there
