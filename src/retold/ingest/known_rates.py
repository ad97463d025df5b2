"""The prices of models that agents use, as one version of `genai-prices` says them: its import takes ten starts of Python.

The file is made from that version by `make docs`. Where another is installed, or a model is not in it, the library is asked.
"""

from __future__ import annotations

import os
from functools import cache

from retold.model.rates import Rates

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from typing import Any

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
