"""Optional packages: the extra of retold that installs a missing one, and the line to type for it."""

from __future__ import annotations

import os
import sys

EXTRAS = {
    "html": ("HTML", ("jinja2", "markdown_it", "markupsafe", "nh3", "pygments")),
    "mcp": ("the tools for agents", ("mcp", "mcp_types", "anyio", "pydantic")),
    "parquet": ("Parquet", ("pyarrow",)),
    "spark": ("Spark", ("pyspark", "py4j")),
    "tui": ("the terminal browser", ("textual", "rich")),
    "watch": ("watching folders", ("watchfiles",)),
    "web": ("the page", ("starlette", "uvicorn")),
}
"""What each extra is for, and the modules that it installs. `prices` is not here: retold has prices of its own."""
_INSTALLERS = {"pipx_metadata.json": "pipx install --force", "uv-receipt.toml": "uv tool install"}
"""The files by which the installers of programs mark their environments, and their commands."""


def explain_missing(error: ImportError) -> str | None:
    """Return what needs the missing package and how to install it; None if no extra has it."""
    missing = (error.name or "").partition(".")[0]
    extra = next((extra for extra, (_, modules) in EXTRAS.items() if missing in modules), None)
    return None if extra is None else describe_extra(extra)


def describe_extra(extra: str) -> str:
    """Return what an extra is for and the line that installs it."""
    return f"{EXTRAS[extra][0]} needs more packages: {install_line(extra)}"


def install_line(extra: str) -> str:
    """Return the line that installs an extra, for the program that installed retold."""
    found = (line for file, line in _INSTALLERS.items() if os.path.exists(os.path.join(sys.prefix, file)))
    return f"{next(found, 'pip install')} 'retold[{extra}]'"


def require(extra: str) -> None:
    """Raise ModuleNotFoundError if a package of an extra is missing; no package is imported."""
    from importlib.util import find_spec

    for name in EXTRAS[extra][1]:
        if find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
