"""Whatever a session holds: nothing raises, twice is once, and what was found stays out."""

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retold.redaction import Redactor
from retold.redaction.detector import UnfoldedText, find_secrets, lower_ascii
from support.labelled_secrets import samples
from support.secret_session import session_filled_with

_LINES = sorted({line for sample in samples("seen") for line in sample.text.splitlines()})
_CRUMBS = (
    "@", "://", ":", "=", "password", "token: ", "/home/", "\\n", "\\", '"', "'", "Bearer ", "%40", "\\u0041", "==", "[redacted:",
    "[redacted:email:1]", "user-1", "-----BEGIN PRIVATE KEY-----", "a" * 20, "\ud800", "Ā", "İ", "cookie: a=", "-p",
)  # fmt: skip


def line(place: int) -> str:
    return _LINES[place]


lines = st.integers(0, len(_LINES) - 1).map(line)
text = st.lists(lines | st.sampled_from(_CRUMBS) | st.text(max_size=12), max_size=6).map("".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | text,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("password", "key", "x")) | text, inner, max_size=3)
    ),
    max_leaves=8,
)
slow = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def cycling(items: list[Any], otherwise: Any) -> Callable[[], Any]:
    place = iter(range(10**9))
    return lambda: items[next(place) % len(items)] if items else otherwise


@slow
@given(st.lists(text, min_size=1, max_size=6), st.lists(values, max_size=3))
def test_no_session_raises_and_twice_is_once(told: list[str], held: list[Any]) -> None:
    session = session_filled_with(cycling(told, ""), cycling(held, None))
    once = Redactor().redact(session)
    assert Redactor().redact(once) == once or has_nan(held)


def has_nan(held: Any) -> bool:
    if isinstance(held, dict):
        return any(map(has_nan, held.values()))
    return any(map(has_nan, held)) if isinstance(held, list) else held != held  # noqa: PLR0124 - that is NaN


@slow
@given(text)
def test_the_places_of_findings_are_in_order_apart_and_in_the_text(told: str) -> None:
    found = find_secrets(told)
    ends = [0, *(finding.end for finding in found)]
    assert all(end <= finding.start < finding.end for end, finding in zip(ends, found, strict=False))
    assert ends[-1] <= len(told)


@slow
@given(st.integers(0, len(samples("seen")) - 1), text, text)
def test_what_was_found_in_a_text_is_in_no_other(place: int, before: str, after: str) -> None:
    redactor, sample = Redactor(), samples("seen")[place]
    redactor.redact_text(sample.text)
    told = redactor.redact_text(f"{before} {sample.text} {after}\n")
    for label in sample.labels:
        if len(label.value) >= 12 and label.kind != "home":
            assert label.value not in told


@given(st.text())
def test_letters_in_lower_case_stand_where_the_others_stood(told: str) -> None:
    assert len(lower_ascii(told)) == len(told)
    assert lower_ascii(told).lower() == told.lower() or not told.isascii()


@given(text)
def test_what_is_unfolded_knows_where_it_stood(told: str) -> None:
    plain = UnfoldedText(told)
    places = [plain.position(place) for place in range(len(plain.text) + 1)]
    assert places == sorted(places)
    assert places[-1] == len(told)
