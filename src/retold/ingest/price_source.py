"""Which prices there are, without a look at them: what a sync asks first."""

from __future__ import annotations

import os

from retold.archive.store import digest

OWN = "prices.toml"
"""The file of the user's own prices, in retold's folder."""
_PACKAGE = "genai_prices"


def priced_by(folder: str) -> str:
    """Return what tells prices from others, without a look at them."""
    library = f"genai-prices {library_version()}"
    try:
        with open(os.path.join(folder, OWN), "rb") as file:
            return f"{OWN} ({digest(file.read()).hex()[:8]}) and {library}"
    except FileNotFoundError:
        return library


def library_version() -> str:
    """Return the version of the library; `importlib.metadata` would take four starts of Python to say it."""
    from importlib.machinery import PathFinder

    found = PathFinder.find_spec(_PACKAGE)
    site = os.path.dirname(os.path.dirname(found.origin or "")) if found is not None else ""
    begin, end = f"{_PACKAGE}-", ".dist-info"
    names = os.listdir(site) if site else []
    return next(
        (name[len(begin) : -len(end)] for name in names if name.startswith(begin) and name.endswith(end)),
        "?",
    )
