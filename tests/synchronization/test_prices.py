"""Prices: from the library or the user's own file, kept with the ledger, and applied anew when they change."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from retold.archive.store import Store
from retold.model.rates import encode_rates
from retold.synchronization import fingerprints, prices
from retold.synchronization import prices as prices_module
from retold.synchronization.fingerprints import price_source
from support.gemini_home import GeminiHome, gemini, user
from support.person import Person

PRICE = 100 * 1_250_000 + 15 * 10_000_000
"""What a request of `made_home.gemini` costs by the library: 100 tokens in, 10 out and 5 thought by gemini-2.5-pro."""
OWN = """
date = 2026-02-03
[models."gemini-2.5-pro"]
input = 2
output = 0.000001
[models."house-*"]
input = 1
cached = 0.5
output = 3
over = [{ tokens = 50, input = 4 }]
"""


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    home = GeminiHome(tmp_path / "ann")
    home.lines(
        "den", 1, 1, [user("u1", 1, "Hello"), gemini("g1", 2, "Hi."), gemini("g2", 3, "Again.")], kind="main"
    )
    house = {**gemini("g3", 4, "Hi."), "model": "house-7b"}
    home.lines("den", 2, 20, [user("u2", 3, "Hello"), house], kind="main")
    person = Person(home.folder)
    person.age()
    return person


def costs(ann: Person) -> dict[str, Any]:
    return {row["native_id"][7]: row["cost_usd"] for row in ann.rows().values()}


def ledger(ann: Person) -> list[tuple[Any, ...]]:
    with Store(str(ann.archive)) as record:
        return list(record.rows("SELECT model, picos FROM requests ORDER BY at"))


def facts(ann: Person) -> tuple[Any, Any]:
    with Store(str(ann.archive)) as record:
        return record.fact("priced by"), record.fact("priced on")


def test_each_request_is_priced_when_it_is_kept(ann: Person) -> None:
    ann.sync()
    assert ledger(ann) == [("gemini-2.5-pro", PRICE), ("gemini-2.5-pro", PRICE), ("house-7b", None)]
    assert costs(ann) == {"1": "0.00055", "2": None}
    source, date = facts(ann)
    assert source.startswith("genai-prices 0.")
    assert date >= "2026-10-26"


def test_what_is_shown_of_a_session_has_its_cost(ann: Person) -> None:
    ann.sync()
    key = next(key for key, row in ann.rows().items() if row["cost_usd"])
    assert ann.show(key)["cost_usd"] == "0.00055"


def test_own_prices_win_and_what_is_kept_is_priced_anew(ann: Person) -> None:
    ann.sync()
    (ann.archive / "prices.toml").write_text(OWN, encoding="utf-8")
    assert ann.sync()["read"] == 0
    own = 100 * 2_000_000 + 15
    assert ledger(ann) == [
        ("gemini-2.5-pro", own),
        ("gemini-2.5-pro", own),
        ("house-7b", 100 * 4_000_000 + 15 * 3_000_000),
    ]
    assert costs(ann) == {"1": "0.00040000003", "2": "0.000445"}
    source, date = facts(ann)
    assert source.startswith("prices.toml (")
    assert date == "2026-02-03"
    (ann.archive / "prices.toml").unlink()
    ann.sync()
    assert costs(ann) == {"1": "0.00055", "2": None}


def test_prices_of_large_prompts_may_be_written_in_any_order(tmp_path: Path) -> None:
    over = "over = [{ tokens = 200, input = 9 }, { tokens = 100, input = 5 }]"
    (tmp_path / "prices.toml").write_text(f'[models."a"]\ninput = 1\noutput = 2\n{over}\n', encoding="utf-8")
    rates = prices_module.PriceList(str(tmp_path)).rates("a")
    assert rates is not None
    costs = [rates.cost(None, (prompt, 0, 0, 0, 0, 0, prompt, 0)) for prompt in (100, 150, 250)]
    assert costs == [100 * 1_000_000, 150 * 5_000_000, 250 * 9_000_000]


def test_a_newer_library_prices_anew(ann: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    ann.sync()
    with Store(str(ann.archive), can_write=True) as record:
        record.connection.execute("UPDATE requests SET picos = 7")
    assert ann.sync()["read"] == 0
    assert {picos for _, picos in ledger(ann)} == {7}
    monkeypatch.setattr(fingerprints, "library_version", lambda: "99.0")
    ann.sync()
    assert [picos for _, picos in ledger(ann)] == [PRICE, PRICE, None]
    assert facts(ann)[0] == "genai-prices 99.0"
    assert costs(ann) == {"1": "0.00055", "2": None}


def test_what_is_known_is_not_looked_up_again(ann: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    ann.sync()
    monkeypatch.setattr(prices_module, "PriceList", None)
    GeminiHome.lines(
        _home(ann), "den", 3, 30, [user("u5", 31, "More"), gemini("g5", 32, "Yes.")], kind="main"
    )
    ann.sync()
    assert ledger(ann)[-1] == ("gemini-2.5-pro", PRICE)


def _home(ann: Person) -> GeminiHome:
    home = GeminiHome.__new__(GeminiHome)
    home.folder, home.gemini = ann.folder, ann.folder / ".gemini"
    return home


def test_a_version_that_is_known_is_not_imported(ann: Person) -> None:
    done = ann.spawn("sync", code="sys.modules['genai_prices'] = None")
    assert done.code == 0, done
    assert [picos for _, picos in ledger(ann)][:2] == [PRICE, PRICE]


def test_without_the_library_its_copy_has_the_prices_until_it_is_installed(
    ann: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without:
        without.setattr(fingerprints, "_PRICE_PACKAGE", "no_such_package")
        without.setitem(sys.modules, "genai_prices", None)
        ann.sync()
    assert ledger(ann) == [("gemini-2.5-pro", PRICE), ("gemini-2.5-pro", PRICE), ("house-7b", None)]
    source, date = facts(ann)
    assert source == f"genai-prices {fingerprints.known_version()} (copy)"
    ann.sync()
    assert facts(ann) == (price_source(str(ann.archive)), date) != (source, date)


def test_what_is_known_is_what_the_library_says() -> None:
    version = fingerprints.library_version()
    assert version == fingerprints.known_version()
    told = json.loads(Path(fingerprints.KNOWN_RATES_FILE).read_text(encoding="utf-8"))
    assert told["version"] == version
    assert prices.known_date(version) == prices_module.library_date()
    assert prices.known_date("0.0.1") is None
    assert len(told["rates"]) > 150
    for model in told["rates"]:
        known, asked = prices.known_rates(model, version), prices_module.library_rates(model)
        assert known is not None
        assert asked is not None
        assert encode_rates(known) == encode_rates(asked)
    for model in told["dated"]:
        for name in (f"{model}-20250929", f"{model}-20260317", f"{model}-2025", f"{model}-latest"):
            known, asked = prices.known_rates(name, version), prices_module.library_rates(name)
            assert known is None or (asked is not None and encode_rates(known) == encode_rates(asked)), name
    assert prices.known_rates("claude-sonnet-4-5-20250929", version) is not None


@pytest.mark.parametrize(
    ("old", "new", "is_known"),
    [
        ("", "", (True, True)),
        (
            "input_mtok=TieredPrices(base=Decimal('1.25')",
            "input_mtok=TieredPrices(base=Decimal('1.75')",
            (False, True),
        ),
        (
            "ClauseStartsWith(starts_with='gemini-2.5-pro')",
            "ClauseStartsWith(starts_with='gemini-2.5')",
            (False, True),
        ),
        ("ClauseEquals(equals='gemini-2.5-pro-tts')", "ClauseEquals(equals='gemini-2.5-pro')", (False, True)),
        ("name='Anthropic'", "name='Anthropic PBC'", (True, False)),
        ("    Provider(", "    Company(", (False, False)),
    ],
)
def test_another_version_has_the_known_prices_of_models_that_it_defines_the_same(
    old: str, new: str, is_known: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = prices_module._library_source()  # noqa: SLF001
    assert old in source
    caches = (prices_module.library_models, prices_module._changed_models)  # noqa: SLF001
    with monkeypatch.context() as newer:
        newer.setattr(prices_module, "_library_source", lambda: source.replace(old, new))
        for one in caches:
            one.cache_clear()
        models = ("gemini-2.5-pro", "claude-sonnet-4-5")
        assert tuple(prices.known_rates(model, "9.9") is not None for model in models) == is_known
    for one in caches:
        one.cache_clear()


def test_the_version_is_the_librarys_own(tmp_path: Path) -> None:
    from importlib.metadata import version  # noqa: PLC0415 - only here

    assert price_source(str(tmp_path)) == f"genai-prices {version('genai-prices')}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("models = 3", 'needs tables such as [models."gemini-2.5-pro"]'),
        ('[models."a"]\ninput = 1', "a: has no price for output"),
        ('[models."a"]\ninput = 1\noutput = "2"', "a: '2' is no price in dollars"),
        ('[models."a"]\ninput = 1\noutput = true', "a: True is no price in dollars"),
        ('[models."a"]\ninput = -1\noutput = 2', "a: -1 is no price in dollars"),
        ('[models."a"]\ninput = inf\noutput = 2', "is no price in dollars"),
        ('[models."a"]\ninput = 1e9\noutput = 2', "is no price in dollars"),
        ('[models."a"]\ninput = 0.0000001\noutput = 2', "has more than 6 places"),
        ('[models."a"]\ninput = 1\noutput = 2\nprice = 3', "a: price is none of input, cached"),
        ('[models."a"]\ninput = 1\noutput = 2\nover = 3', "over needs a list such as"),
        ("[[", "prices.toml: "),
    ],
)
def test_a_file_that_is_not_understood_is_told_and_nothing_is_changed(
    ann: Person, text: str, told: str
) -> None:
    ann.sync()
    before = ledger(ann)
    (ann.archive / "prices.toml").write_text(text, encoding="utf-8")
    done = ann.run("sync")
    assert done.code == 4
    assert told in done.err
    assert done.err.count("\n") == 1
    assert ledger(ann) == before
