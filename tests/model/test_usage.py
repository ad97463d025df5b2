"""Sums of tokens: each request once, the unknown stays unknown; and guesses at them."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from retold.model.builder import estimate_usage
from retold.model.session import Message, Text, ToolCall, Totals, Usage, sum_usage

FIGURES = ("input", "cached", "cache_write", "output", "reasoning", "tool", "total")
usages = st.builds(
    Usage, st.sampled_from("abc"), *[st.none() | st.integers(0, 2**70)] * len(FIGURES), st.booleans()
)


def usage(request: str, **figures: Any) -> Usage:
    return msgspec.convert({"request": request, **dict.fromkeys(FIGURES), **figures}, Usage)


def test_nothing_is_unknown_and_not_zero() -> None:
    assert sum_usage([]) == Totals(None, None, None, None, None, None, None, 0, estimated=False)


def test_a_figure_that_some_recorded_is_summed_over_those() -> None:
    found = sum_usage([usage("a", input=3, output=0), usage("b", input=4)])
    assert (found.input, found.output, found.cached, found.requests) == (7, 0, None, 2)


def test_a_request_counts_once_and_as_it_was_last() -> None:
    assert sum_usage([usage("a", input=3), usage("a", input=5)]) == sum_usage([usage("a", input=5)])


@given(st.lists(usages))
def test_sums_are_those_of_the_last_of_each_request(found: list[Usage]) -> None:
    once = list({each.request: each for each in found}.values())
    summed = sum_usage(found)
    for name in FIGURES:
        known = [getattr(each, name) for each in once if getattr(each, name) is not None]
        assert getattr(summed, name) == (sum(known) if known else None)
    assert summed.requests == len(once)
    assert summed.estimated == any(each.estimated for each in once)


@given(st.lists(usages))
def test_summing_twice_what_was_summed_changes_nothing(found: list[Usage]) -> None:
    assert sum_usage([*found, *found]) == sum_usage(found)
    assert msgspec.convert(msgspec.to_builtins(sum_usage(found)), Totals) == sum_usage(found)


def test_a_guess_counts_four_bytes_a_token_of_all_that_was_said_asked_for_and_given_back() -> None:
    def message(name: str, role: Any, *parts: Any) -> Message:
        return Message(name, role, None, "live", None, None, None, parts)

    call = ToolCall(
        "c", "glob", "other", "Other", {}, "error", None, "r" * 40, "e" * 80, None, None
    )  # with the two signs of its arguments, 126 bytes
    asked = message("u", "user", Text("ä" * 200))
    answers = [message("a", "assistant", call), message("b", "assistant", Text("Done."))]
    guesses = [entry.usage for entry in estimate_usage([asked, *answers], "s") if isinstance(entry, Message)]
    assert guesses == [
        None,
        Usage("s/a", 100, None, 0, 32, None, None, 132, estimated=True),
        Usage("s/b", 132, None, 0, 2, None, None, 134, estimated=True),
    ]
