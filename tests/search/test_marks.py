"""Where the words of a query stand, and the line that shows them."""

from itertools import pairwise

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retold.archive.index.tokenizer import prepare_text, tokenize
from retold.search.query import Query, QuerySyntaxError, match_expression, parse_query
from retold.search.results import densest_range, find_highlights, make_snippet, matches_query

TEXT = "The timeZone of a TIME zone, time_zone: getTimeZoneId() in Zürich or Zu\u0308rich; zoneless HTTPServer2 server2"


def marked(text: str, query: str) -> list[str]:
    return [text[start:end] for start, end in find_highlights(text, parse_query(query))]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("zone", ["Zone", "zone", "zone", "Zone"]),
        ("timezone", ["timeZone", "TimeZone"]),
        ("TIME", ["time", "TIME", "time", "Time"]),
        ('"time zone"', ["timeZone", "TIME zone", "time_zone", "TimeZone"]),
        ('"zone of a"', ["Zone of a"]),
        ("time_zone", ["timeZone", "TIME zone", "time_zone", "TimeZone"]),
        ("zurich", ["Zürich", "Zu\u0308rich"]),
        ("ZÜRICH", ["Zürich", "Zu\u0308rich"]),
        ("zur*", ["Zürich", "Zu\u0308rich"]),
        ("zo*", ["Zone", "zone", "zone", "ZoneId", "zoneless"]),
        ("ime", []),
        ("server", ["Server"]),
        ("server2", ["Server2", "server2"]),
        ("http", ["HTTP"]),
        ("zone time OR id", ["time", "Zone", "TIME", "zone", "time", "zone", "Time", "Zone", "Id"]),
        ("zurich -time", ["Zürich", "Zu\u0308rich"]),
        ("() zurich", ["Zürich", "Zu\u0308rich"]),
        ("()", ["()"]),
        ("project:x", []),
    ],
)
def test_what_is_marked(query: str, expected: list[str]) -> None:
    assert marked(TEXT, query) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("日", ["日", "日"]),
        ("日本", ["日本"]),
        ("本語", ["本語"]),
        ("本語python", ["本語Python"]),
        ('"日本 語"', []),
        ('"本語 python"', ["本語Python"]),
        ("python", ["Python"]),
        ("ที่", ["ที่"]),
    ],
)
def test_dense_scripts_are_marked_anywhere(query: str, expected: list[str]) -> None:
    assert marked("使用日本語Python、日。อยู่ที่บ้าน", query) == expected


def test_accents_belong_to_the_letter_before_them() -> None:
    assert find_highlights("e\u0301\u0302zone", parse_query("zone")) == []
    assert find_highlights("\u0301zone -\u0302zone", parse_query("zone")) == [(1, 5), (8, 12)]
    assert find_highlights("e" + "\u0301" * 5_000, parse_query("e")) == [(0, 5_001)]


def test_no_more_than_a_thousand() -> None:
    assert len(find_highlights("zone " * 5_000, parse_query("zone"))) == 1_000


def test_marks_that_overlap_are_one() -> None:
    assert marked("one two three", '"one two" "two three"') == ["one two three"]
    assert find_highlights("日日日", parse_query("日")) == [(0, 1), (1, 2), (2, 3)]


def test_a_name_that_is_found_late_is_not_missed() -> None:
    assert find_highlights("xaAa", parse_query("aa")) == [(2, 4)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"time zone" zurich', True),
        ('"zone time"', True),
        ('"zone a"', False),
        ("nowhere OR zurich", True),
        ("nowhere zurich", False),
        ('zurich -"zone of a"', False),
        ('zurich -"a zone of"', True),
        ("zurich ++", True),
        ("zurich -++", True),
        ("++", False),
        ("();", False),
        ("()", True),
    ],
)
def test_what_satisfies(query: str, *, expected: bool) -> None:
    assert matches_query(TEXT, parse_query(query)) is expected


PAGES = st.lists(
    st.sampled_from(
        ["time", "zone", "zones", "zürich", "e\u0301", "日", "本語", "-", "_", " ", ". ", "a", "9", "\u0e48"]
    ),
    max_size=12,
).map("".join)
ASKED = st.lists(
    st.sampled_from(
        ["zone", "tim*", "日", "本", "zurich", '"zone time"', "-a", "e", "OR", "日本", "zone9", '-"a 9"']
    ),
    max_size=3,
).map(" ".join)


def query_or_none(text: str) -> Query | None:
    try:
        return parse_query(text)
    except QuerySyntaxError:
        return None


@settings(max_examples=500)
@given(PAGES, ASKED)
def test_the_text_and_the_index_agree(page: str, text: str) -> None:
    query = query_or_none(text)
    asked = match_expression(query, has_positions=True) if query else None
    if query is None or asked is None:
        return
    db = apsw.Connection(":memory:")
    db.execute("CREATE VIRTUAL TABLE page USING fts5(text, tokenize='unicode61 remove_diacritics 2')")
    db.execute("INSERT INTO page VALUES (?)", (prepare_text(page),))
    is_hit = bool(db.execute("SELECT 1 FROM page WHERE page MATCH ?", (asked,)).fetchall())
    assert matches_query(page, query) == is_hit, tokenize(page)


@settings(max_examples=300)
@given(st.text(), st.text(max_size=12))
def test_marks_stand_in_the_text(text: str, asked: str) -> None:
    query = query_or_none(asked)
    if query is None:
        return
    found = find_highlights(text, query)
    assert found == sorted(found)
    assert all(0 <= start < end <= len(text) for start, end in found)
    assert all(left[1] <= right[0] for left, right in pairwise(found))
    assert bool(found) or not query.clauses or not matches_query(text, query) or not query.terms


@pytest.mark.parametrize(
    ("text", "found", "expected"),
    [
        ("", [], ""),
        ("  a \n\n b\tc ", [], "a b c"),
        ("one two three four five", [], "one two three four…"),
        ("one two three four five six", [(14, 18)], "…two three four five…"),
        ("one two three four five six", [(24, 27)], "…three four five six"),
        ("a  b" * 10, [(0, 1)], "a ba ba ba ba ba ba…"),
        ("x" * 30 + "Zone" + "y" * 30, [(30, 34)], "…xxxxxxxxZoneyyyyyyyy…"),
        ("x " + "y" * 30, [(2, 32)], "…yyyyyyyyyyyyyyyyyyyy…"),
        ("one two three four five six", [(0, 27)], "one two three four…"),
    ],
)
def test_a_snippet_is_one_line(text: str, found: list[tuple[int, int]], expected: str) -> None:
    assert make_snippet(text, found, 20)[0] == expected


@pytest.mark.parametrize(("width", "expected"), [(17, (0, 17)), (16, (0, 5))])
def test_marks_that_fill_the_width_are_shown_together(width: int, expected: tuple[int, int]) -> None:
    assert densest_range("heron 12345 otter", [(0, 5), (12, 17)], width) == expected


def test_a_snippet_shows_many_different_words() -> None:
    text = "zone zone zone " + "filler " * 40 + "time and zone " + "filler " * 40
    line, found = make_snippet(text, find_highlights(text, parse_query("time zone")), 40)
    assert [line[start:end] for start, end in found] == ["time", "zone"]
    assert line == "…filler filler time and zone filler…"


def test_a_snippet_of_many_spaces_takes_no_longer() -> None:
    assert make_snippet("zone" + " " * 300_000, [(0, 4)]) == ("zone", [(0, 4)])
    assert make_snippet(" " * 300_000, []) == ("", [])


def test_a_snippet_needs_no_more_room_than_it_shows() -> None:
    text = "zone" + " " * 1_000 + "next"
    assert make_snippet(text, [(0, 4)]) == ("zone next", [(0, 4)])
    assert make_snippet(text, [(1_004, 1_008)]) == ("zone next", [(5, 9)])


@settings(max_examples=500)
@given(
    st.text(alphabet="ab Z\n\t日é\u0301_🤔", max_size=120),
    st.sampled_from(["a", "b a", "ab*", '"a b"', "日", "z b", "_", "e"]),
    st.integers(1, 40),
)
def test_a_snippet_marks_what_the_text_marks(text: str, asked: str, width: int) -> None:
    found = find_highlights(text, parse_query(asked))
    line, ranges = make_snippet(text, found, width)
    assert "\n" not in line
    assert len(line.strip("…")) <= width
    assert ranges == sorted(ranges)
    assert bool(ranges) == bool(found)
    whole = [" ".join(text[start:end].split()) for start, end in found]
    for number, (start, end) in enumerate(ranges):
        inner = line[start:end]
        assert inner
        is_outer = number in (0, len(ranges) - 1)
        assert inner in whole or (is_outer and any(inner in mark for mark in whole))
    shown = line.removeprefix("…").removesuffix("…")
    assert shown in " ".join(text.split())
