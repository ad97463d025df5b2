"""The layout of the code: names that exist, class names that are unique, modules of a fitting size, plain docstrings."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "retold"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
MODULES = sorted(SOURCE.rglob("*.py"))
PARALLEL = (
    "agents/",
    "cli/commands/",
    "demo/",
    "export/formats/",
    "maintenance/timers/",
    "mcp/tools/",
    "web/pages/",
)
"""Rooms whose modules are alike on purpose: a class name may recur within one of them."""
SMALLEST, LARGEST = 40, 700
_LINK = re.compile(r"\[`([\w/.]+\.py)`\]\(\.\./src/retold/([\w/.]+\.py)\)((?:,? `\w+`)*)")
_WORDS = re.compile(
    r"\b(whoever|anew|of ours|that which|what is told|are told of|is told of|nobody knows|lets itself)\b",
    re.IGNORECASE,
)
"""Words that make riddles."""


def name_of(module: Path) -> str:
    return module.relative_to(SOURCE).as_posix()


@cache
def tree_of(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


def texts_in(module: Path) -> Iterator[str]:
    """Yield every docstring, message and other string of a module."""
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def names_in(module: Path) -> set[str]:
    """Return the names that a module defines or imports."""
    names = set()
    for node in tree_of(module).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names.update(
                    part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)
                )
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return names


def named_places() -> list[tuple[str, str]]:
    """Return the modules and names on the page of the architecture."""
    found: list[tuple[str, str]] = []
    for shown, linked, names in _LINK.findall(ARCHITECTURE.read_text(encoding="utf-8")):
        assert shown == linked
        found.extend((linked, name) for name in re.findall(r"\w+", names) or [""])
    return found


def test_the_architecture_names_many_places() -> None:
    assert len(named_places()) > 60


@pytest.mark.parametrize(("module", "name"), named_places())
def test_what_the_architecture_names_exists(module: str, name: str) -> None:
    assert not name or name in names_in(SOURCE / module)


def test_every_room_is_on_the_page_of_the_architecture() -> None:
    page = ARCHITECTURE.read_text(encoding="utf-8")
    rooms = {
        path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert [
        room for room in sorted(rooms - {"__init__", "__main__"}) if not re.search(rf"\b{room}\b", page)
    ] == []


def test_a_class_name_is_unique() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for module in MODULES:
        for node in ast.walk(tree_of(module)):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(name_of(module))
    repeated = {
        name: found
        for name, found in homes.items()
        if len(found) > 1 and not any(all(one.startswith(room) for one in found) for room in PARALLEL)
    }
    assert repeated == {}


def test_modules_are_neither_large_nor_tiny() -> None:
    sizes = {name_of(module): module.read_text(encoding="utf-8").count("\n") for module in MODULES}
    assert {name: size for name, size in sizes.items() if size > LARGEST} == {}
    tiny = {name: size for name, size in sizes.items() if size < SMALLEST and not name.startswith(PARALLEL)}
    assert {
        name: size for name, size in tiny.items() if not name.endswith(("__init__.py", "__main__.py"))
    } == {}


def test_docstrings_of_modules_say_what_they_are_about() -> None:
    openings = {name_of(module): ast.get_docstring(tree_of(module)) or "" for module in MODULES}
    assert [name for name, text in openings.items() if not text] == []
    assert [name for name, text in openings.items() if re.match(r"(What|How|Where|Which|Who)\b", text)] == []


@pytest.mark.parametrize("room", sorted({name_of(module).partition("/")[0] for module in MODULES} - {"demo"}))
def test_docstrings_and_messages_hold_no_riddles(room: str) -> None:
    texts = [
        (name_of(module), text)
        for module in MODULES
        if name_of(module).partition("/")[0] == room
        for text in texts_in(module)
    ]
    texts += [
        (name_of(page), page.read_text(encoding="utf-8"))
        for folder in [SOURCE / room]
        for page in folder.rglob("*.html")
    ]
    assert [(name, found[0]) for name, text in texts if (found := _WORDS.search(text))] == []
