"""The front door: what `retold` offers, and how little it costs to open it."""

import ast
import contextlib
import importlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import retold
from retold.cli.main import COMMANDS, PLAIN, _parse_plain, _parse_with_argparse
from support.gemini_home import GeminiHome, gemini, user
from support.synced_archive import sync_archive

# What a start would notice: each of these costs a good part of a start of Python, some of them several.
COUNTED = {"argparse", "dataclasses", "importlib.metadata", "inspect", "msgspec", "pathlib", "rich", "typing"}


def started(code: str, **more: str) -> set[str]:
    """Return the modules that this code imports in a fresh process, where nothing measures coverage."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    told = f"import sys\nbefore = set(sys.modules)\n{code}\nprint(sorted(set(sys.modules) - before), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", told],
        env={**env, **more},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    imported: list[str] = ast.literal_eval(done.stderr.splitlines()[-1])
    return set(imported)


def command(*arguments: str, **env: str) -> set[str]:
    code = f"""
from retold.cli.main import main
try:
    code = main({list(arguments)!r})
except SystemExit as end:
    code = end.code
assert not code, code
"""
    return started(code, **env)


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment with an archive in which everything is that there is."""
    made = GeminiHome(tmp_path_factory.mktemp("public") / "ann")
    made.json("almanac", 1, 1, [user("u1", 1, "How high is the tide?"), gemini("g1", 2, "Two feet.")])
    for path in (made.folder, *made.folder.rglob("*")):
        os.utime(path, (1_772_355_900, 1_772_355_900))  # what has just been written may change unseen
    env = {"HOME": str(made.folder), "RETOLD_HOME": str(made.folder.with_name("retold"))}
    sync_archive(env["RETOLD_HOME"], env)
    return env


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.split(".")[0] == "retold"}


def test_all_is_sorted_and_without_repetition() -> None:
    assert retold.__all__ == sorted(set(retold.__all__))


def test_all_has_every_public_name() -> None:
    assert set(retold.__all__) == {*retold._HOMES, "__version__"}  # noqa: SLF001 - the table behind the door
    assert dir(retold) == retold.__all__


@pytest.mark.parametrize("name", retold.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    found = getattr(importlib.import_module("retold"), name)
    assert isinstance(found, str) if name == "__version__" else found.__name__ == name


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_like_it"):
        retold.nothing_like_it  # noqa: B018


def test_importing_retold_imports_nothing_else() -> None:
    imported = started("import retold")
    assert ours(imported) == {"retold"}
    assert not imported & COUNTED


def test_version_imports_the_command_and_nothing_heavy() -> None:
    imported = command("--version")
    assert ours(imported) == {"retold", "retold.cli", "retold.cli.main"}
    assert not imported & COUNTED


def test_help_imports_argparse_and_nothing_heavy() -> None:
    imported = command("--help")
    assert ours(imported) == {"retold", "retold.cli", "retold.cli.console", "retold.cli.main"}
    assert imported & COUNTED == {"argparse"}


@pytest.mark.parametrize(
    "arguments", [(), ("sync",), ("list",), ("list", "--json"), ("projects",)], ids=" ".join
)
def test_where_nothing_is_new_nothing_heavy_is_imported(
    archived: dict[str, str], arguments: tuple[str, ...]
) -> None:
    imported = command(*arguments, **archived)
    assert "retold.archive.store" in imported
    assert not {name for name in ours(imported) if name.startswith(("retold.agents.", "retold.model."))}
    assert imported & COUNTED <= {"argparse"}


@pytest.mark.parametrize(
    "arguments", [(), ("--by", "day", "--json"), ("--by", "model"), ("--explain",)], ids=" ".join
)
def test_a_report_is_told_without_what_reading_and_prices_take(
    archived: dict[str, str], arguments: tuple[str, ...]
) -> None:
    imported = command("stats", *arguments, **archived)
    assert "retold.archive.queries.reports" in imported
    assert not {name for name in ours(imported) if name.startswith("retold.agents.")}
    assert imported & {*COUNTED, "genai_prices", "pydantic"} <= {"argparse"}


def test_a_sync_of_little_imports_nothing_for_processes(tmp_path: Path) -> None:
    made = GeminiHome(tmp_path / "ann")
    made.json("almanac", 1, 1, [user("u1", 1, "How high is the tide?"), gemini("g1", 2, "Two feet.")])
    imported = command("sync", HOME=str(made.folder), RETOLD_HOME=str(tmp_path / "retold"))
    assert "retold.synchronization.run" in imported
    assert not imported & {"multiprocessing", "pickle", "retold.synchronization.worker_pool"}


@pytest.mark.parametrize(
    "arguments",
    [("sync",), ("list",), ("stats",), ("search", "tide"), ("sql", "SELECT count(*) FROM sessions")],
    ids=lambda arguments: arguments[0],
)
def test_words_alone_are_read_without_a_pattern_or_a_parser(
    archived: dict[str, str], arguments: tuple[str, ...]
) -> None:
    patterns = {"enum", "functools", "json", "re", "warnings", "zstandard"}
    imported = command(*arguments, **archived)
    assert not imported & {*COUNTED, *(patterns if arguments[0] != "sync" else ())}
    assert "zstandard.backend_c" in imported or arguments[0] != "search"


PARSED = [
    (),
    ("tide",),
    ("how", "high"),
    ("--json", "tide"),
    ("how", "high", "--json"),
    ("--", "-tide"),
    ("--json", "--", "--json", "-x"),
    ("",),
    ("how -high",),
]
"""Arguments behind the name of a command; argparse refuses some of them, for some commands."""
LEFT_TO_ARGPARSE = [
    ("--js", "tide"), ("how", "--json", "high"), ("-n", "2", "tide"), ("tide", "-n2"), ("--", "a", "--", "b"), ("--help",), ("-5",), ("-",),
]  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("typed", PARSED, ids=repr)
def test_plain_words_mean_the_same_to_argparse(name: str, typed: tuple[str, ...]) -> None:
    found = _parse_plain(name, typed)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            expected = vars(_parse_with_argparse(name, typed)[1])
    except SystemExit:
        assert found is None
        return
    assert found is not None
    for option, value in expected.items():
        # A blank keeps argparse from taking an excluded word for an option.
        meant = [word.removeprefix(" ") for word in value] if isinstance(value, list) else value
        assert (getattr(found, option) or None) == (meant or None), option


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("typed", LEFT_TO_ARGPARSE, ids=repr)
def test_other_arguments_are_left_to_argparse(name: str, typed: tuple[str, ...]) -> None:
    assert _parse_plain(name, typed) is None


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_reads_no_model(name: str) -> None:
    imported = command(name, "--help")
    assert not {module for module in ours(imported) if module.startswith("retold.agents.")}
