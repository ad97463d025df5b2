#!/usr/bin/env python3
"""Report the number of modules, their size and their imports, and fail if a limit is exceeded.

The limits keep modules deep: decision 43 says why.
"""

import ast
import sys
from collections.abc import Container, Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
MOST_MODULES = 300
MOST_EDGES_PER_1000_LINES = 32
TRIVIAL = 5
"""Modules of so many lines, such as an `__init__.py` with a docstring, are not counted."""


def main() -> int:
    """Print one line; return 1 if a limit is exceeded."""
    texts = {_dotted_name(path): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    sizes = [size for text in texts.values() if (size := text.count("\n")) > TRIVIAL]
    edges = {(name, target) for name, text in texts.items() for target in _imports(text, texts.keys())}
    density = 1000 * len(edges) / sum(sizes)
    print(  # noqa: T201 - its purpose
        f"{len(sizes)} modules (at most {MOST_MODULES}), {sum(sizes)} lines, {sum(sizes) // len(sizes)} a module, "
        f"{density:.1f} imports per 1,000 lines (at most {MOST_EDGES_PER_1000_LINES})"
    )
    return int(len(sizes) > MOST_MODULES or density > MOST_EDGES_PER_1000_LINES)


def _dotted_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def _imports(text: str, modules: Container[str]) -> Iterator[str]:
    """Yield the modules of this package that a module imports, also within functions."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("retold"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in modules else node.module for name in names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("retold"))


if __name__ == "__main__":
    sys.exit(main())
