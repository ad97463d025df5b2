"""The folder of a project: found as Gemini CLI itself finds it, whose own registry is asked."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from retold.agents.gemini.restore import find_slug, slugify
from retold.agents.protocol import AgentHome
from support.real_gemini import RealCli, install_oracle

ROOT = "/home/ann/My.Proj_01"
ASK = """
const {{ProjectRegistry}} = await import({module});
const registry = new ProjectRegistry({projects}, {folders});
await registry.initialize();
console.log(await registry.getShortId({root}));
"""


def registered(home: Path, projects: object) -> None:
    (home / "projects.json").write_text(json.dumps({"projects": projects}), encoding="utf-8")


def marked(home: Path, folder: str, root: str) -> None:
    (home / folder).mkdir(parents=True, exist_ok=True)
    (home / folder / ".project_root").write_text(root, encoding="utf-8")


def nothing(home: Path) -> None:
    """A home in which no project is known."""


def known(home: Path) -> None:
    registered(home, {ROOT: "den"})


def known_and_marked(home: Path) -> None:
    registered(home, {ROOT: "den"})
    marked(home, "tmp/den", ROOT)


def known_but_anothers(home: Path) -> None:
    registered(home, {ROOT: "my-proj-01"})
    marked(home, "tmp/my-proj-01", "/home/bob/My.Proj_01")


def only_marked(home: Path) -> None:
    marked(home, "tmp/burrow", f"{ROOT}\n")


def marked_in_the_history(home: Path) -> None:
    marked(home, "history/burrow", ROOT)


def name_taken_in_the_registry(home: Path) -> None:
    registered(home, {"/home/bob/my-proj-01": "my-proj-01", "/home/eve/my-proj-01": "my-proj-01-1"})


def name_taken_by_a_marker(home: Path) -> None:
    marked(home, "tmp/my-proj-01", "/home/bob/my-proj-01")
    marked(home, "history/my-proj-01-1", "/home/eve/my-proj-01")


def folder_without_a_marker(home: Path) -> None:
    (home / "tmp" / "my-proj-01" / "chats").mkdir(parents=True)


def invalid_registry(home: Path) -> None:
    registered(home, {ROOT: "Not A Slug"})


def broken_registry(home: Path) -> None:
    (home / "projects.json").write_text('{"projects": {', encoding="utf-8")


HOMES = (
    nothing, known, known_and_marked, known_but_anothers, only_marked, marked_in_the_history, name_taken_in_the_registry,
    name_taken_by_a_marker, folder_without_a_marker, invalid_registry, broken_registry,
)  # fmt: skip


@pytest.mark.parametrize("made", HOMES, ids=lambda made: made.__name__)
def test_a_project_has_the_folder_that_the_cli_finds(
    made: Callable[[Path], None], real_cli: RealCli, tmp_path: Path
) -> None:
    core = install_oracle(real_cli.shared, real_cli.cache).parent
    home = tmp_path / ".gemini"
    home.mkdir()
    made(home)
    ours = find_slug(AgentHome(home, home / "tmp"), ROOT)
    assert ours == _asked(core, home)  # last, because the CLI writes down what it finds


def _asked(core: Path, home: Path) -> str:
    module = (
        core
        / "node_modules"
        / "@google"
        / "gemini-cli-core"
        / "dist"
        / "src"
        / "config"
        / "projectRegistry.js"
    )
    script = ASK.format(
        module=json.dumps(module.as_uri()),
        projects=json.dumps(str(home / "projects.json")),
        folders=json.dumps([str(home / "tmp"), str(home / "history")]),
        root=json.dumps(ROOT),
    )
    command = ["node", "--input-type=module", "-e", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("My.Proj_01", "my-proj-01"),
        ("--a--b--", "a-b"),
        ("日本", "project"),
        ("", "project"),
        ("Ünder", "nder"),
    ],
)
def test_a_name_is_made_of_small_letters_digits_and_hyphens(name: str, slug: str) -> None:
    assert slugify(name) == slug
