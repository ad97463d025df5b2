"""`prices.toml` in retold's own folder: prices that a person knows better, in dollars for a million tokens.

date = 2026-11-01
[models."gemini-2.5-*"]
input = 1.25
cached = 0.125
output = 10
over = [{ tokens = 200_000, input = 2.5, cached = 0.25, output = 15 }]
"""

from __future__ import annotations

import os

from retold.archive.database import RetoldError
from retold.ingest.price_source import OWN
from retold.model.rates import KINDS, Rates

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal
    from typing import Any, NoReturn

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
