"""Prices of models: the user's own from a file, else those of the library `genai-prices`, which needs no network.

The library takes a fifth of a second and more to import, so the prices of a model are stored in the archive.
"""

from __future__ import annotations

import os
from functools import cache

from retold.archive.database import RetoldError
from retold.archive.ledger import PRICED_BY, PRICED_ON, delete_rates, load_rates, write_rates
from retold.archive.store import digest
from retold.model.rates import KINDS, Rates, decode_rates, encode_rates
from retold.synchronization.fingerprints import (
    KNOWN_RATES_FILE,
    OWN_PRICES,
    known_version,
    library_folder,
    library_version,
    price_source,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from decimal import Decimal
    from typing import Any, NoReturn

    from genai_prices.types import ModelInfo, ModelPrice

    from retold.archive.store import Store
    from retold.model.rates import Figures


_REQUIRED = ("input", "output")
_DECIMALS = 6
_DATE_LENGTH = len("20250929")
_LONGEST_NAME = 200
_LIBRARY_KEYS = {
    "input": "input_mtok",
    "cached": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
    "output": "output_mtok",
}
_PICOS_PER_DOLLAR_A_MILLION = 1_000_000


class OwnPrices:
    """The prices in the user's file."""

    __slots__ = ("date", "models", "path")

    def __init__(self, path: str, date: str | None, models: Mapping[str, Mapping[str, Any]]) -> None:
        self.path, self.date, self.models = path, date, models

    def rates(self, model: str) -> Rates | None:
        """Return the rates of a model: by its name, else by the longest prefix with an asterisk."""
        names = [
            name
            for name in self.models
            if name == model or (name.endswith("*") and model.startswith(name[:-1]))
        ]
        if not names:
            return None
        name = max(names, key=lambda one: (one == model, len(one)))
        return Rates(name, OWN_PRICES, [{"per_token": _per_token(self.models[name], f"{self.path}: {name}")}])


def read_own_prices(folder: str) -> OwnPrices | None:
    """Return the prices in the user's file; None if there is no file. Raises RetoldError for an invalid one."""
    path = os.path.join(folder, OWN_PRICES)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return None
    import tomllib
    from decimal import Decimal

    try:
        values = tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, ArithmeticError) as error:
        raise RetoldError(f"{path}: {error}") from error
    models = values.get("models", {})
    if not isinstance(models, dict) or not all(isinstance(model, dict) for model in models.values()):
        _refuse(path, 'needs tables such as [models."gemini-2.5-pro"]')
    date = values.get("date")
    own = OwnPrices(path, None if date is None else str(date), models)
    for name in models:
        own.rates(name)  # reports an error now, not when the model is used
    return own


def _per_token(model: Mapping[str, Any], where: str) -> dict[str, list[list[int]]]:
    """Return the prices of a token in each class, by the size of the prompt from which they hold."""
    if missing := [kind for kind in _REQUIRED if kind not in model]:
        _refuse(where, f"has no price for {' and '.join(missing)}")
    over = model.get("over", [])
    if not isinstance(over, list) or not all(
        isinstance(step, dict) and type(step.get("tokens")) is int for step in over
    ):
        _refuse(where, "over needs a list such as [{ tokens = 200_000, input = 2.5 }]")
    if unknown := sorted({*model, *(name for step in over for name in step)} - {*KINDS, "over", "tokens"}):
        _refuse(where, f"{unknown[0]} is none of {', '.join(KINDS)}, over")
    steps = sorted(over, key=lambda step: int(step["tokens"]))
    return {
        kind: [
            [0, _parse_picos(model[kind], where)],
            *([step["tokens"], _parse_picos(step[kind], where)] for step in steps if kind in step),
        ]
        for kind in KINDS
        if kind in model
    }


def _parse_picos(dollars: Decimal | float, where: str) -> int:
    """Return the picodollars of a token, from the dollars of a million."""
    from decimal import Decimal

    if type(dollars) is not int and not isinstance(dollars, Decimal):
        _refuse(where, f"{dollars!r} is no price in dollars")
    price = Decimal(dollars)
    if not price.is_finite() or not 0 <= price < 10**_DECIMALS:
        _refuse(where, f"{dollars} is no price in dollars")
    picos = price.scaleb(_DECIMALS)
    if picos != int(picos):
        _refuse(where, f"{dollars} has more than {_DECIMALS} places")
    return int(picos)


def _refuse(where: str, why: str) -> NoReturn:
    raise RetoldError(f"{where} {why}" if where.endswith(OWN_PRICES) else f"{where}: {why}")


def known_rates(model: str, version: str) -> Rates | None:
    """Return the rates of a model, if they hold in a version of the library; a date at the end of a name is ignored."""
    known = _read_known_rates()
    found = known["rates"].get(model)
    name, dash, date = model.rpartition("-")
    has_date = dash and len(date) == _DATE_LENGTH and date.isdecimal()
    if found is None and has_date and name in known["dated"]:
        found = known["rates"][name]
    if found is None or (known["version"] != version and not _holds_still(model, found)):
        return None
    return Rates(found["model"], found["provider"], found["spans"])


def _holds_still(name: str, rates: Mapping[str, Any]) -> bool:
    """Return whether another version of the library defines a model as the known one, and no other model has its name now."""
    provider = f"{rates['provider']}/"
    own, changed = provider + rates["model"], _changed_models()
    if own not in library_models() or own in changed or provider in changed:
        return False
    others = [library_models()[key] for key in changed if key.startswith(provider)]
    return not any(part.lower() in name.lower() for text in others for part in _name_parts(text))


def _name_parts(model: str) -> Iterator[str]:
    """Yield texts of which a name contains one if the rule of a model in the library accepts it."""
    import re

    fields = re.split(r"\n {16}(?=[a-z])", model)
    for kind, part in re.findall(r"\b(\w+)='([^']*)'", "".join(fields[1:2])):
        beginning = re.match(r"\^?([\w-]*)", part)
        yield beginning[1] if kind == "regex" and beginning is not None else part


@cache
def _changed_models() -> AbstractSet[str]:
    """Return the models in the library that the price file does not have, or has otherwise, of the providers in it."""
    known = _read_known_rates()["models"]
    providers = {key.partition("/")[0] for key in known}
    current = {key: text for key, text in library_models().items() if key.partition("/")[0] in providers}
    return {key for key, text in current.items() if known.get(key) != model_digest(text)}


@cache
def _library_source() -> str:
    """Return the source text of the library's prices; reading it takes a fiftieth of importing it."""
    try:
        with open(os.path.join(library_folder(), "data.py"), encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""


@cache
def library_models() -> Mapping[str, str]:
    """Return the source text of each model in the library, by provider and id, and of each provider, by its id."""
    models: dict[str, str] = {}
    for provider in _library_source().split("\n    Provider(\n")[1:]:
        head, *texts = provider.split("\n            ModelInfo(\n")
        name, *names = (part.partition("id='")[2].partition("'")[0] for part in (head, *texts))
        models[f"{name}/"] = head
        models |= {f"{name}/{model}": text for model, text in zip(names, texts, strict=True)}
    return models


def model_digest(text: str) -> str:
    """Return a digest of the source text of a model."""
    return digest(text.rstrip(" ],)\n").encode()).hex()[
        :12
    ]  # the last model of a provider ends with more brackets


def known_date(version: str) -> str | None:
    """Return the date of the prices, if the file has that version of the library."""
    known = _read_known_rates()
    return str(known["date"]) if known["version"] == version else None


@cache
def _read_known_rates() -> dict[str, Any]:
    import json

    with open(KNOWN_RATES_FILE, encoding="utf-8") as file:
        known: dict[str, Any] = json.load(file)
    return known


class PriceList:
    """The prices of all models, from the user's file and the library."""

    def __init__(self, folder: str | None) -> None:
        """Take the folder of the user's file; None if only the library counts."""
        self._own = None if folder is None else read_own_prices(folder)
        self._version = library_version() or known_version()
        self._known: dict[str, Rates | None] = {}

    def rates(self, model: str) -> Rates | None:
        """Return the rates of a model; None if its price is unknown."""
        if model not in self._known:
            own = None if self._own is None else self._own.rates(model)
            self._known[model] = own or known_rates(model, self._version) or library_rates(model)
        return self._known[model]

    @property
    def date(self) -> str:
        """The date of the user's prices, if the file has one, else of the library's."""
        own = None if self._own is None else self._own.date
        return own or known_date(self._version) or library_date()


class PriceBook:
    """The prices of a sync: those in the archive, or looked up and stored there."""

    def __init__(self, store: Store, folder: str) -> None:
        self._store, self._folder = store, folder
        self.source = price_source(folder)
        self.have_changed = store.fact(PRICED_BY) != self.source
        """Whether another source than that of the last sync has the prices."""
        has_requests = store.row("SELECT 1 FROM requests LIMIT 1") is not None
        self.must_reprice = self.have_changed and has_requests
        """Whether the archive has requests that were priced from another source."""
        self._list: PriceList | None = None
        self._known: dict[str | None, Rates | None] = {None: None}
        if not self.have_changed:
            stored = load_rates(store).items()
            self._known |= {model: None if text is None else decode_rates(text) for model, text in stored}

    def cost(self, model: str | None, at: int | None, figures: Figures) -> int | None:
        """Return the cost of a request in picodollars; None if the price is unknown."""
        if model not in self._known:
            self._known[model] = self._look_up(str(model))
        rates = self._known[model]
        return None if rates is None else rates.cost(at, figures)

    def _look_up(self, model: str) -> Rates | None:
        self._list = self._list or PriceList(self._folder)
        rates = self._list.rates(model)
        write_rates(self._store, model, None if rates is None else encode_rates(rates))
        return rates

    def begin(self) -> None:
        """Delete the stored prices if the source has changed."""
        if self.have_changed:
            self._store.set_fact(PRICED_BY, None)
            delete_rates(self._store)

    def end(self) -> None:
        """Record that every request is priced from this source."""
        if self.have_changed:
            self._list = self._list or PriceList(self._folder)
            self._store.set_fact(PRICED_BY, self.source)
            self._store.set_fact(PRICED_ON, self._list.date)


def library_rates(model: str) -> Rates | None:
    """Return the rates of a model in the library; None if it has none."""
    if len(model) > _LONGEST_NAME or not model.isprintable():
        return None
    try:
        from genai_prices import Usage, calc_price
    except ImportError:  # sessions are archived without prices
        return None
    try:
        found = calc_price(Usage(input_tokens=0, output_tokens=0), model)
    except (LookupError, ValueError):
        return None
    spans = list(_spans(found.model))
    return Rates(found.model.id, found.provider.id, spans) if spans else None


def _spans(model: ModelInfo) -> Iterator[dict[str, Any]]:
    """Yield the prices of a model with the time in which they hold; those that are not by token are left out."""
    from genai_prices.types import ConditionalPrice

    prices = model.prices if isinstance(model.prices, list) else [ConditionalPrice(prices=model.prices)]
    for one in prices:
        per_token = {
            kind: steps
            for kind, key in _LIBRARY_KEYS.items()
            if (steps := _steps(one.prices, key)) is not None
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
    """Return the picodollars of a token by the size of the prompt."""
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
    """Return the newest date at which a price was checked, by the comments in the library."""
    import re

    # It begins with plain letters, because these are found at the speed of C.
    seen = r"ed on (?:(?<=\bverified on )|(?<=\bchecked on ))(\d{4}-\d\d-\d\d)"
    return max(re.findall(seen, _library_source()), default="?")
