"""All regular expressions of the package, and how each is used."""

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, NamedTuple

import msgspec

import retold
from retold.archive.index.tokenizer import LazyPattern
from support.pattern_steps import Mode

_CALLS = frozenset(("compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"))
_AT_ONE_PLACE = frozenset(("match", "fullmatch"))
_ARGUMENTS_WITH_END = 3
_UNSEEN = frozenset(("pattern", "flags", "groups"))


class SourcePattern(NamedTuple):
    """A regular expression, where it stands, and how it is used."""

    name: str
    pattern: re.Pattern[Any]
    mode: Mode


class BuiltPattern(NamedTuple):
    """A call that makes a pattern while the program runs: only its caller knows what from."""

    module: str
    function: str


@contextmanager
def recorded_patterns() -> Iterator[list[re.Pattern[Any]]]:
    """Record every pattern that is compiled inside, also one that `re` would remember."""
    compiler: Any = import_module("re._compiler")
    original = compiler.compile
    recorded: list[re.Pattern[Any]] = []

    def compile_and_record(pattern: Any, flags: int = 0) -> re.Pattern[Any]:
        compiled: re.Pattern[Any] = original(pattern, flags)
        recorded.append(compiled)
        return compiled

    re.purge()
    compiler.compile = compile_and_record
    try:
        yield recorded
    finally:
        compiler.compile = original


class _Use(NamedTuple):
    method: str
    arguments: int


def modules() -> list[ModuleType]:
    """Return all modules of the package."""
    names = [
        found.name for found in walk_packages(retold.__path__, "retold.") if found.name != "retold.__main__"
    ]
    return [retold, *map(import_module, names)]


def collect() -> tuple[list[SourcePattern], set[BuiltPattern]]:
    """Return the patterns that modules hold or write into calls, and the calls that build one."""
    trees = {module.__name__: (module, _tree(module)) for module in modules()}
    uses = _uses(trees)
    found: dict[SourcePattern, None] = {}
    built: set[BuiltPattern] = set()
    for name, (module, tree) in trees.items():
        held = list(_held(module))
        compiled = sum(1 for call, function in _calls(tree) if function is None and call.attr == "compile")
        assert len(held) >= compiled, f"{name} compiles {compiled} patterns and holds {len(held)}"
        for variable, pattern in held:
            found[SourcePattern(f"{name}.{variable}", pattern, _mode(uses.get((name, variable))))] = None
        for call, function in _calls(tree):
            if function is None:
                continue
            text = _constant(call.argument, module)
            if text is None:
                built.add(BuiltPattern(name, function))
            else:
                found[SourcePattern(f"{name}.{function}", re.compile(text), _mode([_Use(call.attr, 1)]))] = (
                    None
                )
    return sorted(found, key=lambda one: one.name), built


def _mode(uses: list[_Use] | None) -> Mode:
    """Return the most expensive way in which a pattern is used; an unknown use counts as a search."""
    if uses is None or not all(_is_at_one_place(use) for use in uses):
        return "search"
    return "fullmatch" if all(use.method == "fullmatch" for use in uses) else "match"


def _is_at_one_place(use: _Use) -> bool:
    """Whether a use tries one position; one with an end may be repeated, because the end bounds its work."""
    return use.method in _AT_ONE_PLACE and use.arguments in (1, _ARGUMENTS_WITH_END)


def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))


def _held(module: ModuleType) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Yield the patterns that a module holds, also inside its constants."""
    for name, value in vars(module).items():
        if not name.startswith("__"):
            yield from ((name, pattern) for pattern in _inside(value, 4))


def _inside(value: Any, depth: int) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, LazyPattern):
        yield value.compile()
    elif depth and isinstance(value, dict):
        for held in (*value.keys(), *value.values()):
            yield from _inside(held, depth - 1)
    elif depth and isinstance(value, list | tuple | set | frozenset):
        for held in value:
            yield from _inside(held, depth - 1)
    elif depth and isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            yield from _inside(getattr(value, field), depth - 1)


class _Call(NamedTuple):
    attr: str
    argument: ast.expr


def _calls(tree: ast.Module) -> Iterator[tuple[_Call, str | None]]:
    """Yield the calls of `re`, each with the function that it stands in."""

    def walk(node: ast.AST, function: str | None) -> Iterator[tuple[_Call, str | None]]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=attr), args=[first, *_]) if (
                attr in _CALLS
            ):
                yield _Call(attr, first), function
        for child in ast.iter_child_nodes(node):
            yield from walk(child, function)

    yield from walk(tree, None)


def _constant(node: ast.expr, module: ModuleType) -> str | bytes | None:
    """Return the pattern that a call names, if it is a constant."""
    match node:
        case ast.Constant(value=str() | bytes() as text):
            return text
        case ast.Name(id=name):
            held = getattr(module, name, None)
            return (
                held.pattern
                if isinstance(held, re.Pattern)
                else held
                if isinstance(held, str | bytes)
                else None
            )
    return None


def _uses(trees: dict[str, tuple[ModuleType, ast.Module]]) -> dict[tuple[str, str], list[_Use]]:
    """Return how each pattern of a module is used, under the name of the module and its own."""
    uses: dict[tuple[str, str], list[_Use]] = {}
    for name, (_, tree) in trees.items():
        homes = {
            alias.asname or alias.name: (node.module, alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }
        called: set[int] = set()
        for node in ast.walk(tree):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id=variable) as held, attr=method), args=args
                ):
                    called.add(id(held))
                    if method in _CALLS:
                        uses.setdefault(homes.get(variable, (name, variable)), []).append(
                            _Use(
                                method,
                                len(args)
                                if method in (*_AT_ONE_PLACE, "search", "finditer", "findall")
                                else 1,
                            )
                        )
                case ast.Attribute(value=ast.Name() as held, attr=method) if method in _UNSEEN:
                    called.add(id(held))
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in called:
                uses.setdefault(homes.get(node.id, (name, node.id)), []).append(_Use("search", 1))
    return uses
