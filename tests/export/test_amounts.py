"""Money, shares and times."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retold.export.text.amounts import format_count, format_duration, format_money, format_rate, format_share
from retold.model.report import PICOS, format_dollars, to_dollars

CENT = PICOS // 100


@pytest.mark.parametrize(
    ("picos", "told"),
    [
        (None, "-"),
        (0, "$0.00"),
        (157_250_000_000_000, "$157.25"),
        (1_234_567 * PICOS + CENT // 2, "$1,234,567.01"),
        (CENT, "$0.01"),
        (CENT - 1, "$0.0100"),
        (CENT // 2, "$0.0050"),
        (PICOS // 10_000, "$0.0001"),
        (PICOS // 10_000 - 1, "<$0.0001"),
        (1, "<$0.0001"),
        (999_995_000_000, "$1.00"),
        (1_994_999_999_999, "$1.99"),
    ],
)
def test_money_is_told_to_the_cent_and_never_as_nothing(picos: int | None, told: str) -> None:
    assert format_money(picos) == told


@pytest.mark.parametrize(
    ("picos", "places", "told"),
    [
        (157_250_000_000_000, 0, "157.25"),
        (12_000_000_000, 5, "0.01200"),
        (12_345_600_000, 5, "0.0123456"),
        (3 * PICOS, 0, "3"),
        (0, 0, "0"),
        (0, 5, "0.00000"),
        (1, 0, "0.000000000001"),
    ],
)
def test_exact_money_has_no_exponent_and_no_zeros_at_its_end(picos: int, places: int, told: str) -> None:
    assert format_dollars(picos, places) == told


@given(st.integers(0, 10**40), st.integers(0, 12))
def test_exact_money_is_exact(picos: int, places: int) -> None:
    assert Decimal(format_dollars(picos, places)) == to_dollars(picos)


def test_prices_are_told_for_a_million_tokens() -> None:
    assert [format_rate(1_250_000), format_rate(125_000), format_rate(10_000_000), format_rate(0)] == [
        "$1.25/M",
        "$0.125/M",
        "$10/M",
        "$0/M",
    ]


@pytest.mark.parametrize(
    ("part", "whole", "told"),
    [
        (None, 9, "-"),
        (1, 0, "-"),
        (1, None, "-"),
        (0, 9, "0%"),
        (1, 1000, "<1%"),
        (1, 3, "33%"),
        (999, 1000, ">99%"),
        (9, 9, "100%"),
        (12, 9, "133%"),
    ],
)
def test_a_share_is_nothing_or_all_only_if_it_is(part: int | None, whole: int | None, told: str) -> None:
    assert format_share(part, whole) == told


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (None, "-"),
        (0, "0s"),
        (0.0004, "<1ms"),
        (0.026, "26ms"),
        (0.84, "0.8s"),
        (9.94, "9.9s"),
        (45, "45s"),
        (59.6, "1m"),
        (60, "1m"),
        (3569, "59m"),
        (3599, "1h 00m"),
        (148_320, "41h 12m"),
        (10**8, "27,777h 47m"),
    ],
)
def test_a_time_is_told_in_two_units_at_most(seconds: float | None, told: str) -> None:
    assert format_duration(seconds) == told


def test_counts_have_their_thousands_set_apart() -> None:
    assert [format_count(None), format_count(0), format_count(17_000)] == ["-", "0", "17,000"]
