"""Which version of an agent is installed: told by its package, without running it."""

import json
from pathlib import Path

import pytest

from retold.agents import gemini
from retold.agents.gemini.restore import Release, parse_release
from retold.maintenance.restore import find_installed_version, find_program


def install(folder: Path, name: str, version: object) -> dict[str, str]:
    """Put a package and its program where npm puts them; return an environment in which it is found."""
    package = folder / "lib" / "node_modules" / "@google" / "gemini-cli"
    (package / "bundle").mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": name, "version": version}), encoding="utf-8")
    script = package / "bundle" / "gemini.js"
    script.write_text("#!/usr/bin/env node\n", encoding="utf-8")
    script.chmod(0o755)
    (folder / "bin").mkdir()
    (folder / "bin" / "gemini").symlink_to(script)
    return {"PATH": str(folder / "bin")}


def test_the_version_stands_in_the_package_of_the_program(tmp_path: Path) -> None:
    env = install(tmp_path, gemini.PACKAGE, "0.38.2")
    assert find_program(gemini, env) == str(tmp_path / "bin" / "gemini")
    assert find_installed_version(gemini, env) == "0.38.2"


@pytest.mark.parametrize(("name", "version"), [("another", "0.38.2"), (gemini.PACKAGE, 7)])
def test_what_is_no_such_package_says_nothing(tmp_path: Path, name: str, version: object) -> None:
    assert find_installed_version(gemini, install(tmp_path, name, version)) is None


def test_without_the_program_there_is_no_version(tmp_path: Path) -> None:
    assert find_installed_version(gemini, {"PATH": str(tmp_path)}) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [("0.61.0", Release(0, 61)), ("v0.38.2", Release(0, 38, 2)), ("0.20", Release(0, 20)), ("new", None)],
)
def test_a_version_is_read_as_people_write_it(text: str, found: Release | None) -> None:
    assert parse_release(text) == found


def test_versions_differ_in_where_and_how_they_write() -> None:
    assert [release.has_slugs for release in (Release(0, 28, 2), Release(0, 29))] == [False, True]
    assert [release.has_lines for release in (Release(0, 38, 9), Release(0, 39))] == [False, True]
