"""One folder per agent, each a module with the same files; strangers to each other."""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType
    from typing import Any

TITLES = {"claude": "Claude Code", "codex": "Codex CLI", "gemini": "Gemini CLI"}
"""The agents we know, by the names of their folders, and what their makers call them."""
NAMES = tuple(TITLES)
"""The names of their folders, and how people call them."""


def import_when_asked(package: str, homes: Mapping[str, str]) -> None:
    """Let each function of an agent be imported, from the module that is its home, when it is first asked for.

    To read takes forty modules, to look for files a few. The functions belong to a class of the package's own,
    for a module that bears the name of its function would take its place in the package when it is imported.
    """
    import sys  # noqa: PLC0415 - start-up is a feature
    from types import ModuleType  # noqa: PLC0415

    functions = {name: _imported(f"{package}.{home}", name) for name, home in homes.items()}
    sys.modules[package].__class__ = type("AgentModule", (ModuleType,), functions)


def _imported(home: str, name: str) -> property:
    """Return a function of a module as something that a package has; whoever puts another in its place is heard."""
    found: list[Any] = []

    def function(_: ModuleType) -> Any:
        if not found:
            from importlib import import_module  # noqa: PLC0415

            found.append(getattr(import_module(home), name))
        return found[0]

    def put(_: ModuleType, value: Any) -> None:
        if callable(value):  # and no module, as an import puts it here
            found[:] = [value]

    return property(function, put)
