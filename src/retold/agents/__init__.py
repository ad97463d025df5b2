"""The agents: one package for each, with the same modules in each. They do not know each other."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

TITLES = {"claude": "Claude Code", "codex": "Codex CLI", "gemini": "Gemini CLI"}
"""The agents by the names of their packages, with the names that their makers give them."""
NAMES = tuple(TITLES)
"""The names of the packages. Users write them, too."""


def load_lazily(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package: it imports each name from its module when the name is first used.

    A reader takes forty modules, a search for files takes a few.
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415

        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return load
