"""Pictures of numbers: well-formed whatever they are told, and showing what they are given."""

from datetime import date, timedelta
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from retold.export.svg import (
    Datum,
    draw_calendar,
    draw_columns,
    draw_hours,
    draw_length,
    draw_shares,
    draw_sparkline,
)

SPACE = "{http://www.w3.org/2000/svg}"
HOSTILE = "\"><script>hit()</script>' onload='hit()\x1b[31m\x00\u202e&amp;]]>"
DAY = date(2026, 3, 29)


def parsed(picture: Markup) -> ET.Element:
    return ET.fromstring(str(picture))  # noqa: S314 - our own


def rects(picture: Markup, kind: str) -> list[ET.Element]:
    return [one for one in parsed(picture).iter(f"{SPACE}rect") if kind in (one.get("class") or "").split()]


def links(picture: Markup) -> list[ET.Element]:
    return list(parsed(picture).iter(f"{SPACE}a"))


def day(value: int | None, number: int = 0) -> tuple[date, Datum]:
    when = DAY - timedelta(days=number)
    return when, Datum(value, f"{when}: {value}", f"/spend?since={when}")


def test_a_day_has_its_place_its_words_and_its_link() -> None:
    picture = draw_calendar(dict([day(7)]), DAY - timedelta(days=6), DAY, "year", "Cost by day")
    (link,) = links(picture)
    assert link.get("href") == f"/spend?since={DAY}"
    assert link.get("aria-label") == link.findtext(f"{SPACE}title") == f"{DAY}: 7"
    (cell,) = rects(picture, "heat-4")
    assert cell.get("y") == str(18 + 6 * 14), "a Sunday is the last of its week"
    assert len(rects(picture, "heat-0")) == 6
    root = parsed(picture)
    assert root.get("role") == "group"
    assert root.findtext(f"{SPACE}title") == "Cost by day"
    assert (
        root.findtext(f"{SPACE}desc")
        == "2026-03-23 to 2026-03-29: work on 1 of 7 days; the most on 2026-03-29: 7"
    )


def test_one_place_of_a_picture_stands_in_the_way_of_tab() -> None:
    for picture in (
        draw_calendar(dict(day(n + 1, n) for n in range(40)), DAY - timedelta(days=40), DAY, "year", "Days"),
        draw_columns([Datum(n, f"{n}", f"/{n}") for n in range(40)], "time", "Days"),
    ):
        assert [link.get("tabindex") for link in links(picture)].count("0") == 1


def test_ten_years_are_shown_as_the_last_of_them() -> None:
    data = dict(day(1, number) for number in range(3650))
    picture = draw_calendar(data, DAY - timedelta(days=3650), DAY, "year", "Days")
    assert len(links(picture)) == 53 * 7
    assert max(float(one.get("x", 0)) for one in rects(picture, "heat-4")) < float(
        parsed(picture).get("width", 0)
    )


def test_a_day_without_a_known_amount_is_not_one_without_work() -> None:
    picture = draw_calendar(dict([day(None)]), DAY, DAY, "year", "Days")
    assert len(rects(picture, "heat-unknown")) == 1
    assert not rects(picture, "heat-0")


@pytest.mark.parametrize("since", [DAY, date.min, DAY - timedelta(days=400)])
def test_an_empty_calendar_says_so(since: date) -> None:
    picture = draw_calendar({}, since, DAY, "year", "Days")
    assert "nothing on any day" in (parsed(picture).findtext(f"{SPACE}desc") or "")
    assert parsed(picture).get("role") == "img", "nothing in it can be reached"


def test_the_first_and_the_last_day_that_there_are_have_calendars() -> None:
    for when in (date.min, date.max):
        parsed(draw_calendar({when: Datum(1, "one")}, when, when, "year", "Days"))


@given(st.lists(st.integers(0, 10**18), min_size=1, max_size=60))
def test_columns_are_as_high_as_their_numbers(values: list[int]) -> None:
    picture = draw_columns([Datum(value, str(value)) for value in values], "time", "Cost")
    heights = [float(one.get("height", 0)) for one in rects(picture, "column")]
    assert len(heights) == len(values)
    for value, height in zip(values, heights, strict=True):
        assert (height > 0) == (value > 0)
        assert height == pytest.approx(max(1.5, 100 * value / max(values)) if value else 0, abs=0.001)


def test_no_columns_are_still_a_picture() -> None:
    assert parsed(draw_columns([], "time", "Cost")).findtext(f"{SPACE}desc") == "nothing"


def test_hours_stand_by_weekday() -> None:
    picture = draw_hours({(0, 9): 4, (6, 23): 1}, "hours", "Requests", lambda amount: f"{amount} requests")
    (most,) = rects(picture, "heat-4")
    assert (most.get("x"), most.get("y")) == (str(32 + 9 * 18), "16")
    assert parsed(picture).findtext(f"{SPACE}desc") == "the most on Monday 09:00: 4 requests"
    titles = [one.text for one in parsed(picture).iter(f"{SPACE}title")]
    assert "Sunday 23:00: 1 requests" in titles
    assert len(titles) == 1 + 7 * 24
    assert parsed(draw_hours({}, "hours", "Requests", str)).findtext(f"{SPACE}desc") == "nothing at any hour"


def test_shares_fill_the_whole() -> None:
    parts = rects(draw_shares({"gemini": 3, "claude": 1, "codex": 0}), "part")
    assert [one.get("class") for one in parts] == ["part gemini", "part claude"]
    assert [(one.get("x"), one.get("width")) for one in parts] == [("0", "75"), ("75", "25")]
    assert not rects(draw_shares({}), "part")


def test_a_length_is_never_longer_than_the_largest() -> None:
    assert [rects(draw_length(value, 10), "column")[0].get("width") for value in (None, 0, 5, 10, 20)] == [
        "0",
        "0",
        "50",
        "100",
        "100",
    ]
    assert rects(draw_length(1, 10**9), "column")[0].get("width") == "0.5", "seen, however little"


def test_a_sparkline_tells_nothing_from_little() -> None:
    picture = draw_sparkline([0, 1, 1000], "work in three weeks")
    assert len(rects(picture, "nothing")) == 1
    assert [one.get("height") for one in rects(picture, "column")] == ["2", "20"]
    assert parsed(picture).get("aria-label") == "work in three weeks"
    parsed(draw_sparkline([], "nothing"))


def test_names_out_of_transcripts_stay_names() -> None:
    datum = Datum(1, HOSTILE, f"/spend?model={HOSTILE}".replace("\x00", ""))
    for picture in (
        draw_calendar({DAY: Datum(1, HOSTILE, "/x?y=" + '"><b')}, DAY, DAY, "year", HOSTILE),
        draw_columns([Datum(datum.value, datum.label, '"><script>')], "time", HOSTILE),
        draw_hours({(0, 0): 1}, "hours", HOSTILE, lambda _: HOSTILE),
        draw_shares({HOSTILE.replace("\x1b", "").replace("\x00", ""): 1}),
        draw_sparkline([1], HOSTILE),
    ):
        root = parsed(picture)
        assert not [one for one in root.iter() if one.tag.endswith("script")]
        assert not [
            name for one in root.iter() for name in one.attrib if name.startswith("on") or name == "style"
        ]
        assert "\x1b" not in picture
