"""Numbers as lengths and heights."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retold.export.text.amounts import EIGHTHS, HEIGHTS, draw_bar, draw_sparkline

NUMBERS = st.integers(0, 10**30)


@pytest.mark.parametrize(
    ("value", "largest", "width", "drawn"),
    [
        (8, 8, 4, "████"),
        (4, 8, 4, "██"),
        (1, 8, 4, "▌"),
        (1, 8, 1, "▏"),
        (7, 8, 1, "▉"),
        (5, 8, 3, "█▉"),
        (0, 8, 4, ""),
        (None, 8, 4, ""),
        (-3, 8, 4, ""),
        (3, 0, 4, ""),
        (3, 8, 0, ""),
        (9, 8, 4, "████"),
    ],
)
def test_a_bar_is_as_long_as_its_value_to_the_eighth(
    value: int | None, largest: int, width: int, drawn: str
) -> None:
    assert draw_bar(value, largest, width) == drawn


def test_next_to_nothing_is_still_seen() -> None:
    assert draw_bar(1, 10**30, 20) == "▏"


@given(st.lists(NUMBERS, min_size=1), st.integers(1, 40))
def test_bars_keep_the_order_of_their_values_and_fill_the_width(values: list[int], width: int) -> None:
    largest = max(values)
    drawn = [draw_bar(value, largest, width) for value in sorted(values)]
    lengths = [sum(map(EIGHTHS.index, one)) for one in drawn]
    assert lengths == sorted(lengths)
    assert lengths[-1] == (8 * width if largest else 0)
    assert all((length > 0) == (value > 0) for length, value in zip(lengths, sorted(values), strict=True))


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ([], ""),
        ([0, 0, 0], "▁▁▁"),
        ([5], "█"),
        ([0, 1, 10**20], "▁▂█"),
        ([0, 1, 2, 3, 4, 5, 6, 7], HEIGHTS),
        ([7, None, 0], "█?▁"),
        ([None], "?"),
    ],
)
def test_a_line_goes_up_and_down(values: list[int | None], drawn: str) -> None:
    assert draw_sparkline(values) == drawn


@given(st.lists(NUMBERS))
def test_only_nothing_is_as_low_as_nothing(values: list[int]) -> None:
    drawn = draw_sparkline(values)
    assert [character == HEIGHTS[0] for character in drawn] == [value == 0 for value in values]
