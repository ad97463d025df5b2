"""What requests cost: the same as the price library says, to the last place, and never a guess."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from genai_prices import Usage, calc_price
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given, settings
from hypothesis import strategies as st

from retold.model.rates import MOST_TOKENS, Rates, decode_rates, encode_rates
from retold.model.report import format_dollars, to_dollars
from retold.synchronization.prices import PriceList

PROVIDERS = ("google", "anthropic", "openai", "deepseek")


def is_found(model: str) -> bool:
    try:
        calc_price(Usage(input_tokens=0, output_tokens=0), model)
    except LookupError:
        return False
    return True


MODELS = sorted(
    {
        model.id
        for provider in get_snapshot().providers
        if provider.id in PROVIDERS
        for model in provider.models
        if is_found(model.id)
    }
)
AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
PLAIN = Rates("m", "us", [{"per_token": {"input": [[0, 2], [100, 4]], "output": [[0, 10]]}}])
TOKENS = st.one_of(st.integers(0, 2000), st.integers(150_000, 1_200_000))


def figures(**told: int | None) -> list[int | None]:
    names = ("input", "cached", "cache_write", "output", "reasoning", "tool", "total", "cache_write_1h")
    return [told.get(name) for name in names]


def micros(at: datetime) -> int:
    return int(at.timestamp()) * 1_000_000


@pytest.fixture(scope="module")
def prices(tmp_path_factory: pytest.TempPathFactory) -> PriceList:
    return PriceList(str(tmp_path_factory.mktemp("home")))


@settings(deadline=None, max_examples=400)
@given(
    model=st.sampled_from(MODELS),
    at=st.datetimes(datetime(2024, 1, 1), datetime(2027, 6, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - hypothesis adds the zone
    fresh=TOKENS,
    cached=TOKENS,
    written=TOKENS,
    for_an_hour=TOKENS,
    output=TOKENS,
    reasoning=TOKENS,
)
def test_a_request_costs_what_the_library_says(
    prices: PriceList, model: str, at: datetime, **told: int
) -> None:
    found = calc_price(Usage(input_tokens=0, output_tokens=0), model)
    priced = found.model.get_prices(at)
    rates = prices.rates(model)
    if rates is None:
        assert priced.input_mtok is None or priced.output_mtok is None
        return
    has = {
        key: getattr(priced, f"{key}_mtok") is not None
        for key in ("cache_read", "cache_write", "cache_write_1h")
    }
    cached = told["cached"] if has["cache_read"] else 0
    written = told["written"] if has["cache_write"] else 0
    for_an_hour = min(told["for_an_hour"], written) if has["cache_write_1h"] else 0
    given = told["fresh"] + cached + written
    usage: dict[str, Any] = {"input_tokens": given, "output_tokens": told["output"] + told["reasoning"]}
    usage |= {"cache_read_tokens": cached, "cache_write_tokens": written}
    if for_an_hour:
        usage["cache_write_1h_tokens"] = for_an_hour
    expected = calc_price(Usage(**usage), model, genai_request_timestamp=at).total_price
    cost = rates.cost(
        micros(at),
        figures(
            input=given,
            cached=cached,
            cache_write=written,
            cache_write_1h=for_an_hour,
            output=told["output"],
            reasoning=told["reasoning"],
        ),
    )
    assert cost is not None
    assert to_dollars(cost) == expected
    again = decode_rates(encode_rates(rates))
    assert again.cost(micros(at), figures(input=given, output=5)) == rates.cost(
        micros(at), figures(input=given, output=5)
    )


def test_the_prices_of_every_known_model_are_whole_numbers() -> None:
    """Or money could not be counted in them: a price with more than six places for a million tokens."""
    for provider in get_snapshot().providers:
        for model in provider.models:
            spans = model.prices if isinstance(model.prices, list) else [model]
            for span in spans:
                for name, price in vars(getattr(span, "prices")).items():  # noqa: B009 - of either kind
                    if name.endswith("_mtok") and provider.id in PROVIDERS and price is not None:
                        steps = (
                            [price]
                            if isinstance(price, Decimal)
                            else [price.base, *(t.price for t in price.tiers)]
                        )
                        assert all(step * 10**6 == int(step * 10**6) for step in steps), (model.id, name)


def test_what_a_prompt_that_is_large_costs_holds_for_all_of_it() -> None:
    assert PLAIN.cost(None, figures(input=100, output=1)) == 100 * 2 + 10
    assert PLAIN.cost(None, figures(input=101, output=1)) == 101 * 4 + 10
    assert PLAIN.cost(None, figures(input=60, tool=60, output=1)) == 120 * 4 + 10


def test_more_in_the_cache_than_the_prompt_has_is_not_paid_for() -> None:
    assert PLAIN.charges(None, figures(input=50, cached=40, cache_write=30, output=1)) == [
        ("cached", 40, 2),
        ("cache_write", 10, 2),
        ("output", 1, 10),
    ]


def test_what_has_no_price_of_its_own_costs_what_its_kin_cost() -> None:
    assert PLAIN.charges(None, figures(input=50, cached=10, cache_write=20, cache_write_1h=5, output=3)) == [
        ("input", 20, 2),
        ("cached", 10, 2),
        ("cache_write", 15, 2),
        ("cache_write_1h", 5, 2),
        ("output", 3, 10),
    ]


@pytest.mark.parametrize(
    "told",
    [
        {"output": 5},
        {"input": 5},
        {"input": None, "output": None, "total": 5},
        {"input": MOST_TOKENS + 1, "output": 5},
        {"input": 5, "output": 5, "cached": MOST_TOKENS + 1},
    ],
)
def test_what_is_not_known_or_not_to_be_believed_has_no_price(told: dict[str, int | None]) -> None:
    assert PLAIN.cost(None, figures(**told)) is None


def test_figures_that_contradict_each_other_cost_no_more_than_the_prompt() -> None:
    assert PLAIN.cost(None, figures(input=10, cached=50, cache_write=70, output=0)) == 10 * 2


def test_prices_hold_from_their_day_on_and_at_their_hours() -> None:
    old, new, night = ({"per_token": {"input": [[0, price]], "output": [[0, 0]]}} for price in (1, 2, 3))
    dated = Rates("m", "us", [old, {**new, "since": micros(AT) // 1_000_000}])
    assert dated.cost(micros(AT) - 1, figures(input=1, output=0)) == 1
    assert dated.cost(micros(AT), figures(input=1, output=0)) == 2
    assert dated.cost(None, figures(input=1, output=0)) == 2
    nightly = Rates("m", "us", [old, {**night, "daily": [22 * 3600, 6 * 3600]}])
    for hour, price in ((21, 1), (22, 3), (0, 3), (5, 3), (6, 1), (12, 1)):
        assert nightly.cost(micros(AT.replace(hour=hour, minute=0)), figures(input=1, output=0)) == price, (
            hour
        )


@pytest.mark.parametrize("name", ["", "made-up", "gemini-\x1b[31m", "gpt-5" + "x" * 300, "\ud800"])
def test_a_model_that_nobody_knows_has_no_price(prices: PriceList, name: str) -> None:
    assert prices.rates(name) is None


@pytest.mark.parametrize(
    ("picos", "text"),
    [
        (0, "0"),
        (1, "0.000000000001"),
        (157_250_000_000_000, "157.25"),
        (10**12, "1"),
        (10**13, "10"),
    ],
)
def test_money_as_text_has_all_its_digits_and_no_more(picos: int, text: str) -> None:
    assert format_dollars(picos) == text
    assert to_dollars(picos) == Decimal(text)
