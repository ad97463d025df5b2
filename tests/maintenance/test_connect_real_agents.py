"""The real Claude Code and Codex CLI, connected: what was said before comes back, and nothing is asked of anybody."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import available
from support import real_claude, real_codex
from support.fake_anthropic import RECALLING
from support.fake_openai import run_fake_openai
from support.installed_script import InstalledPerson, file_tree
from support.real_claude import NEWEST, install_claude, require_isolation
from support.real_codex import install_codex
from support.real_gemini import cache_folder

pytestmark = pytest.mark.real_cli
CODEX = "0.166.0"
SAID = "Where does the heron nest?"
ASKED = "RECALL heron nest"
UNASKED = ("exec", "--skip-git-repo-check")
"""As in any folder, with what Codex allows by itself."""


class Owner(InstalledPerson):
    """Somebody whose agents live elsewhere."""

    @property
    def env(self) -> dict[str, str]:
        lives = {"CLAUDE_CONFIG_DIR": self.folder / "config", "CODEX_HOME": self.folder / "home"}
        return super().env | {name: str(place) for name, place in lives.items()}


@pytest.fixture
def claude(tmp_path: Path) -> real_claude.ClaudeHome:
    with available():
        require_isolation()
        command = install_claude(cache_folder(os.environ), NEWEST)
        return real_claude.make_claude_home(command, NEWEST, tmp_path / "ann lee")


@pytest.fixture
def codex(tmp_path: Path) -> Iterator[real_codex.CodexHome]:
    with available():
        program = install_codex(cache_folder(os.environ), CODEX)
    with run_fake_openai() as fake:
        yield real_codex.make_codex_home(program, CODEX, tmp_path / "ann lee", fake)


def said(place: real_claude.ClaudeHome, words: str) -> str:
    """Return the answer to a prompt for which no permission is skipped."""
    done = place.run("--output-format", "json", "-p", words)
    assert done.returncode == 0, done
    return str(json.loads(done.stdout)["result"])


def test_claude_code_recalls_and_archives(claude: real_claude.ClaudeHome) -> None:
    owner = Owner(claude.folder)
    first = claude.ask(SAID)
    done = owner.call("connect", "claude", "--yes")
    assert done.code == 0, done
    assert said(claude, ASKED) == f"Told in claude:{first}."
    (found,) = [served for served in claude.served() if served.content[0].get("name") == RECALLING]
    assert RECALLING in [tool["name"] for tool in found.request["tools"]]
    for command in ("/recall", "/retold:recall"):
        assert f"claude:{first}" in said(claude, f"{command} {ASKED}")
    owner.settle()
    assert [row["first_prompt"] for row in owner.rows().values()].count(ASKED) == 1


def test_claude_code_finds_the_plugin_valid(claude: real_claude.ClaudeHome) -> None:
    assert Owner(claude.folder).call("connect", "claude", "--yes").code == 0
    done = claude.run("plugin", "validate", "--strict", str(claude.config / "skills" / "retold"))
    assert done.returncode == 0, done.stdout + done.stderr
    done = claude.run("mcp", "list")
    assert "plugin:retold:retold" in done.stdout
    assert "Connected" in done.stdout


def test_claude_code_forgets_it_when_it_is_removed(claude: real_claude.ClaudeHome) -> None:
    owner = Owner(claude.folder)
    before = file_tree(claude.config)
    assert owner.call("connect", "claude", "--yes").code == 0
    assert owner.call("connect", "claude", "--remove", "--yes").code == 0
    assert file_tree(claude.config) == before
    assert json.loads(claude.run("plugin", "list", "--json").stdout) == []


def asked_with_tools(codex: real_codex.CodexHome, words: str) -> str:
    """Return the answer; ask up to three times, because Codex may send its request before its servers of tools are up."""
    for _ in range(3):
        answer = codex.run(*UNASKED, words).stdout
        if "There is no tool to ask" not in answer:
            break
    return answer


def test_codex_recalls(codex: real_codex.CodexHome) -> None:
    owner, config = Owner(codex.folder), codex.home / "config.toml"
    lines = config.read_text(encoding="utf-8").splitlines(keepends=True)
    config.write_text(
        "".join(one for one in lines if not one.startswith(("approval", "sandbox"))), encoding="utf-8"
    )
    before = config.read_bytes()
    first = codex.ask(SAID)
    done = owner.call("connect", "codex", "--yes")
    assert done.code == 0, done
    assert "retold" in codex.run("mcp", "list").stdout
    for words in (ASKED, f"$recall {ASKED}"):
        answered = asked_with_tools(codex, words)
        assert f"Told in codex:{first}" in answered, answered
    assert "Find out what earlier conversations say" in json.dumps(codex.fake.requests[-1])
    assert owner.call("connect", "codex", "--remove", "--yes").code == 0
    assert config.read_bytes() == before
    assert not (codex.home / "skills" / "recall").exists()
