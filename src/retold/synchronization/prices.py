"""Where prices come from: what the user has written down, else `genai-prices`, which others keep and nobody is asked for.

That library takes a fifth of a second and more to import, so what it says of a model is kept in the archive.
"""

from __future__ import annotations

import os
from functools import cache

from retold.archive.database import RetoldError
from retold.archive.ledger import PRICED_BY, PRICED_ON, drop_rates, keep_rates, kept_rates
from retold.model.rates import KINDS, Rates, rates_from, rates_text
from retold.synchronization.fingerprints import OWN, library_version, priced_by

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from decimal import Decimal
    from typing import Any, NoReturn

    from genai_prices.types import ModelInfo, ModelPrice

    from retold.archive.store import Store
    from retold.model.rates import Figures


_NEEDED = ("input", "output")
_PLACES = 6


class OwnPrices:
    """What that file says."""

    __slots__ = ("date", "models", "path")

    def __init__(self, path: str, date: str | None, models: Mapping[str, Mapping[str, Any]]) -> None:
        self.path, self.date, self.models = path, date, models

    def rates(self, model: str) -> Rates | None:
        """Return a model's prices: by its name, else by the longest beginning of it that has an asterisk behind it."""
        names = [
            name
            for name in self.models
            if name == model or (name.endswith("*") and model.startswith(name[:-1]))
        ]
        if not names:
            return None
        name = max(names, key=lambda one: (one == model, len(one)))
        return Rates(name, OWN, [{"per_token": _per_token(self.models[name], f"{self.path}: {name}")}])


def read_own_prices(folder: str) -> OwnPrices | None:
    """Return what a person has written down; None where nothing was. Raises Stopped for what is not understood."""
    path = os.path.join(folder, OWN)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return None
    import tomllib
    from decimal import Decimal

    try:
        told = tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, ArithmeticError) as error:
        raise RetoldError(f"{path}: {error}") from error
    models = told.get("models", {})
    if not isinstance(models, dict) or not all(isinstance(model, dict) for model in models.values()):
        _refuse(path, 'needs tables such as [models."gemini-2.5-pro"]')
    date = told.get("date")
    own = OwnPrices(path, None if date is None else str(date), models)
    for name in models:
        own.rates(name)  # so that what is wrong is told now, and not when the model is met
    return own


def _per_token(model: Mapping[str, Any], place: str) -> dict[str, list[list[int]]]:
    """Return prices of a token, from each size of prompt on."""
    if missing := [kind for kind in _NEEDED if kind not in model]:
        _refuse(place, f"has no price for {' and '.join(missing)}")
    over = model.get("over", [])
    if not isinstance(over, list) or not all(
        isinstance(step, dict) and type(step.get("tokens")) is int for step in over
    ):
        _refuse(place, "over needs a list such as [{ tokens = 200_000, input = 2.5 }]")
    if unknown := sorted({*model, *(name for step in over for name in step)} - {*KINDS, "over", "tokens"}):
        _refuse(place, f"{unknown[0]} is none of {', '.join(KINDS)}, over")
    steps = sorted(over, key=lambda step: int(step["tokens"]))
    return {
        kind: [
            [0, _picos(model[kind], place)],
            *([step["tokens"], _picos(step[kind], place)] for step in steps if kind in step),
        ]
        for kind in KINDS
        if kind in model
    }


def _picos(dollars: Decimal | float, place: str) -> int:
    """Return the price of a token, from that of a million."""
    from decimal import Decimal

    if type(dollars) is not int and not isinstance(dollars, Decimal):
        _refuse(place, f"{dollars!r} is no price in dollars")
    price = Decimal(dollars)
    if not price.is_finite() or not 0 <= price < 10**_PLACES:
        _refuse(place, f"{dollars} is no price in dollars")
    picos = price.scaleb(_PLACES)
    if picos != int(picos):
        _refuse(place, f"{dollars} has more than {_PLACES} places")
    return int(picos)


def _refuse(place: str, why: str) -> NoReturn:
    raise RetoldError(f"{place} {why}" if place.endswith(OWN) else f"{place}: {why}")


_DATE = len("20250929")
FILE = os.path.join(os.path.dirname(__file__), "known_rates.json")


def known_rates(model: str, version: str) -> Rates | None:
    """Return a model's prices, if they are known of that version; a name with a date behind it means the model of the name."""
    told = _known()
    if told["version"] != version:
        return None
    found = told["rates"].get(model)
    name, dash, date = model.rpartition("-")
    if found is None and dash and len(date) == _DATE and date.isdecimal() and name in told["dated"]:
        found = told["rates"][name]
    return None if found is None else Rates(found["model"], found["provider"], found["spans"])


def known_date(version: str) -> str | None:
    """Return the day of that version's prices, if it is known."""
    told = _known()
    return str(told["date"]) if told["version"] == version else None


@cache
def _known() -> dict[str, Any]:
    import json

    with open(FILE, encoding="utf-8") as file:
        told: dict[str, Any] = json.load(file)
    return told


_LONGEST_NAME = 200
_KEYS = {
    "input": "input_mtok",
    "cached": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
    "output": "output_mtok",
}
_PICOS_PER_DOLLAR_A_MILLION = 1_000_000


class PriceList:
    """All prices that there are."""

    def __init__(self, folder: str | None) -> None:
        """Take the folder in which the user's own prices may lie; without one, there are only everybody's."""
        self._own, self._version = None if folder is None else read_own_prices(folder), library_version()
        self._known: dict[str, Rates | None] = {}

    def rates(self, model: str) -> Rates | None:
        """Return a model's prices."""
        if model not in self._known:
            own = None if self._own is None else self._own.rates(model)
            self._known[model] = own or known_rates(model, self._version) or library_rates(model)
        return self._known[model]

    @property
    def date(self) -> str:
        """The day on which prices were last looked at: the user's, if they say one, else the library's."""
        own = None if self._own is None else self._own.date
        return own or known_date(self._version) or library_date()


class PriceBook:
    """The prices of a sync: those that are kept in the archive, or looked up and kept."""

    def __init__(self, record: Store, folder: str) -> None:
        self._record, self._folder = record, folder
        self.source = priced_by(folder)
        self.are_new = record.fact(PRICED_BY) != self.source
        """Whether what is kept was priced by others."""
        self._list: PriceList | None = None
        self._known: dict[str | None, Rates | None] = {None: None}
        if not self.are_new:
            kept = kept_rates(record).items()
            self._known |= {model: None if told is None else rates_from(told) for model, told in kept}

    def cost(self, model: str | None, at: int | None, figures: Figures) -> int | None:
        """Return what a request cost; None where no price is known."""
        if model not in self._known:
            self._known[model] = self._looked_up(str(model))
        rates = self._known[model]
        return None if rates is None else rates.cost(at, figures)

    def _looked_up(self, model: str) -> Rates | None:
        self._list = self._list or PriceList(self._folder)
        rates = self._list.rates(model)
        keep_rates(self._record, model, None if rates is None else rates_text(rates))
        return rates

    def begin(self) -> None:
        """Forget what other prices said."""
        if self.are_new:
            self._record.set_fact(PRICED_BY, None)
            drop_rates(self._record)

    def end(self) -> None:
        """Say that everything is priced by these."""
        if self.are_new:
            self._list = self._list or PriceList(self._folder)
            self._record.set_fact(PRICED_BY, self.source)
            self._record.set_fact(PRICED_ON, self._list.date)


def library_rates(model: str) -> Rates | None:
    """Return what the library says of a model."""
    if len(model) > _LONGEST_NAME or not model.isprintable():
        return None
    try:
        from genai_prices import Usage, calc_price
    except ImportError:  # sessions are kept, whatever is wrong with prices
        return None
    try:
        found = calc_price(Usage(input_tokens=0, output_tokens=0), model)
    except (LookupError, ValueError):
        return None
    spans = list(_spans(found.model))
    return Rates(found.model.id, found.provider.id, spans) if spans else None


def _spans(model: ModelInfo) -> Iterator[dict[str, Any]]:
    """Yield the prices of a model at each time; none if there is one that cannot be told as prices of tokens."""
    from genai_prices.types import ConditionalPrice

    prices = model.prices if isinstance(model.prices, list) else [ConditionalPrice(prices=model.prices)]
    for one in prices:
        per_token = {
            kind: steps for kind, key in _KEYS.items() if (steps := _steps(one.prices, key)) is not None
        }
        if "input" not in per_token or "output" not in per_token:
            continue
        yield {**_when(one.constraint), "per_token": per_token}


def _when(constraint: Any) -> dict[str, Any]:
    from calendar import timegm

    from genai_prices.types import StartDateConstraint, TimeOfDateConstraint

    if isinstance(constraint, StartDateConstraint):
        return {"since": timegm(constraint.start_date.timetuple())}
    if isinstance(constraint, TimeOfDateConstraint):
        day = [
            time.hour * 3600 + time.minute * 60 + time.second
            for time in (constraint.start_time, constraint.end_time)
        ]
        return {"daily": day}
    return {}


def _steps(prices: ModelPrice, key: str) -> list[list[int]] | None:
    """Return the price of a token by the size of the prompt."""
    from genai_prices.types import TieredPrices

    price = getattr(prices, key)
    if price is None:
        return None
    if not isinstance(price, TieredPrices):
        return [[0, _picos_per_token(price)]]
    return [
        [0, _picos_per_token(price.base)],
        *([tier.start, _picos_per_token(tier.price)] for tier in price.tiers),
    ]


def _picos_per_token(dollars: Any) -> int:
    return int(dollars * _PICOS_PER_DOLLAR_A_MILLION)


def library_date() -> str:
    """Return the newest day on which its keepers say to have looked at a price."""
    import re

    from genai_prices.data_snapshot import get_snapshot

    seen = re.compile(r"\b(?:verified|checked) on (\d{4}-\d\d-\d\d)")
    providers = get_snapshot().providers
    comments = [provider.price_comments for provider in providers]
    comments += [model.price_comments for provider in providers for model in provider.models]
    return max((day for comment in comments for day in seen.findall(comment or "")), default="?")
