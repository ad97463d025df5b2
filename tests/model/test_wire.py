"""The JSON form: times that sort, integers of any size, one line each."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retold.model.problem import problem
from retold.model.serialization import encode_problem, encode_tree, format_utc

moments = st.datetimes(timezones=st.just(UTC))


@pytest.mark.parametrize(
    ("at", "told"),
    [
        (datetime(2026, 3, 1, 9, 0, 0, tzinfo=UTC), "2026-03-01T09:00:00.000Z"),
        (datetime(2026, 3, 1, 9, 0, 0, 250_000, tzinfo=UTC), "2026-03-01T09:00:00.250Z"),
        (datetime(2026, 3, 1, 9, 0, 0, 250_001, tzinfo=UTC), "2026-03-01T09:00:00.250001Z"),
        (datetime(2026, 3, 1, 11, tzinfo=timezone(timedelta(hours=2))), "2026-03-01T09:00:00.000Z"),
    ],
)
def test_a_time_is_told_in_utc(at: datetime, told: str) -> None:
    assert format_utc(at) == told


@given(moments)
def test_a_time_survives_being_told(at: datetime) -> None:
    assert datetime.fromisoformat(format_utc(at)) == at


@settings(deadline=None)
@given(st.lists(moments.map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000))))
def test_texts_of_times_sort_as_the_times_do(found: list[datetime]) -> None:
    assert [format_utc(at) for at in sorted(found)] == sorted(format_utc(at) for at in found)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(json_values)
def test_whatever_json_can_hold_is_told_exactly_on_one_line(tree: object) -> None:
    line = encode_tree(tree)
    assert b"\n" not in line
    assert json.loads(line) == tree


def test_a_problem_is_told_with_its_severity_and_place() -> None:
    told = json.loads(encode_problem(problem("truncated-tail", "cut", "a.jsonl", 3)))
    assert told == {
        "code": "truncated-tail", "severity": "loss", "message": "cut", "path": "a.jsonl", "line": 3, "pointer": "",
    }  # fmt: skip
