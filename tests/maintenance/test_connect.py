"""`retold connect`: what it writes into an agent's home, what it shows first, and what is left when it is removed: nothing."""

import json
import stat
import sys
import tomllib
from pathlib import Path

import pytest

from support.gemini_home import GeminiHome, gemini, user
from support.installed_script import InstalledPerson, file_tree
from support.person import is_root

AGENTS = ("gemini", "claude", "codex")
FILES = {
    "gemini": {
        ".gemini/extensions/retold/gemini-extension.json",
        ".gemini/extensions/retold/RETOLD.md",
        ".gemini/extensions/retold/commands/recall.toml",
        ".gemini/extensions/retold/skills/recall/SKILL.md",
        ".gemini/extensions/retold/hooks/hooks.json",
        ".gemini/policies/retold.toml",
    },
    "claude": {
        ".claude/skills/retold/.claude-plugin/plugin.json",
        ".claude/skills/retold/skills/recall/SKILL.md",
        ".claude/skills/retold/hooks/hooks.json",
    },
    "codex": {".codex/skills/recall/SKILL.md"},
}
SETTINGS = '{\n  // mine\n  "permissions": {"allow": ["Bash(ls)"], "deny": []},\n}\n'
CONFIG = '# mine\nmodel = "x" # the best\n\n[mcp_servers.other] # keep\ncommand = "other"\n\n[tui]\ntheme = "dark"\n'
BROKEN = {
    "claude": [
        b'{"a": 1',
        b"[1]",
        b"",
        b'{"permissions": []}',
        b'{"permissions": {"allow": {}}}',
        b'{"a": "\xff"}',
    ],
    "codex": [
        b'model = "x',
        b"[mcp_servers\n",
        b'model = "\xff"',
        b'mcp_servers = { other = { command = "x" } }',
        b"mcp_servers = 1",
        b'[mcp_servers.retold]\ncommand = "somebody-elses"\n',
    ],
}


@pytest.fixture
def ann(tmp_path: Path) -> InstalledPerson:
    person = InstalledPerson(tmp_path / "ann lee")
    made = GeminiHome(person.folder)
    made.lines("den", 1, 1, [user("u1", 1, "Where does the heron nest?"), gemini("g1", 2, "In the reeds.")])
    for name, text in ((".claude/settings.json", SETTINGS), (".codex/config.toml", CONFIG)):
        (person.folder / name).parent.mkdir()
        (person.folder / name).write_text(text, encoding="utf-8")
        (person.folder / name).chmod(0o640)
    return person


def settings(person: InstalledPerson, agent: str) -> Path:
    return person.folder / {"claude": ".claude/settings.json", "codex": ".codex/config.toml"}[agent]


def homes(person: InstalledPerson) -> dict[str, object]:
    """Return all that is not retold's own."""
    return {path: held for path, held in file_tree(person.folder).items() if not path.startswith("retold")}


def written(person: InstalledPerson, path: str) -> str:
    return (person.folder / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("agent", AGENTS)
def test_every_change_is_shown_made_and_told(ann: InstalledPerson, agent: str) -> None:
    before = homes(ann)
    done = ann.run("connect", agent, "--yes")
    assert done.code == 0, done
    new = {path for path in homes(ann) if path not in before and (ann.folder / path).is_file()}
    assert new == FILES[agent]
    for path in new:
        assert f"+++ {ann.folder / path}\n" in done.out
        assert f"retold: written {ann.folder / path}\n" in done.err
        assert stat.S_IMODE((ann.folder / path).stat().st_mode) == 0o600
        text = written(ann, path)
        assert "retold connect" in text or "keep --hook" in text
        assert all(f"+{line}" in done.out.splitlines() for line in text.splitlines())
    assert f"undo it: `retold connect {agent} --remove`" in done.err
    notes = ann.archive / f"connect-{agent}.json"
    assert not any(path.stat().st_mode & 0o077 for path in (ann.archive, notes))


def test_without_an_archive_one_is_made(ann: InstalledPerson) -> None:
    done = ann.run("connect", "gemini", "--yes")
    assert "retold: no archive yet: reading what your agents have kept\n1 file found: 1 read" in done.err
    assert len(ann.rows()) == 1
    assert "no archive yet" not in ann.run("connect", "gemini", "--yes").err


@pytest.mark.parametrize("agent", AGENTS)
def test_the_server_is_started_from_anywhere_with_what_it_needs(ann: InstalledPerson, agent: str) -> None:
    assert ann.call("connect", agent, "--yes").code == 0
    server = {
        "gemini": lambda: json.loads(written(ann, ".gemini/extensions/retold/gemini-extension.json"))[
            "mcpServers"
        ],
        "claude": lambda: json.loads(written(ann, ".claude/skills/retold/.claude-plugin/plugin.json"))[
            "mcpServers"
        ],
        "codex": lambda: tomllib.loads(written(ann, ".codex/config.toml"))["mcp_servers"],
    }[agent]()["retold"]
    assert server == {"command": str(ann.retold), "args": ["mcp"], "env": {"RETOLD_HOME": str(ann.archive)}}
    assert " " in server["command"]
    assert ann.call("connect", agent, "--scope", "all", "--yes").code == 0
    assert '"--scope"' in "".join(
        written(ann, path) for path in homes(ann) if path.endswith(("json", "toml"))
    )


@pytest.mark.parametrize("agent", AGENTS)
def test_a_second_time_there_is_nothing_to_do(ann: InstalledPerson, agent: str) -> None:
    ann.run("connect", agent, "--yes")
    before, notes = homes(ann), (ann.archive / f"connect-{agent}.json").read_bytes()
    done = ann.run("connect", agent)
    assert (done.code, done.out) == (0, "")
    assert f"retold: nothing to do: {agent} is connected\n" in done.err
    assert homes(ann) == before
    assert (ann.archive / f"connect-{agent}.json").read_bytes() == notes


@pytest.mark.parametrize("agent", AGENTS)
def test_when_it_is_removed_no_trace_is_left(ann: InstalledPerson, agent: str) -> None:
    before = homes(ann)
    ann.run("connect", agent, "--yes")
    assert homes(ann) != before
    done = ann.run("connect", agent, "--remove", "--yes")
    assert done.code == 0, done
    assert homes(ann) == before
    assert not (ann.archive / f"connect-{agent}.json").exists()
    done = ann.run("connect", agent, "--remove")
    assert (done.code, done.out, done.err) == (0, "", f"retold: nothing to do: {agent} is not connected\n")


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_settings_that_were_not_there_are_gone_again(ann: InstalledPerson, agent: str) -> None:
    settings(ann, agent).unlink()
    before = homes(ann)
    ann.run("connect", agent, "--yes")
    assert settings(ann, agent).exists()
    settings(ann, agent).write_text(settings(ann, agent).read_text(encoding="utf-8") + "\n", encoding="utf-8")
    ann.run("connect", agent, "--remove", "--yes")
    assert homes(ann) == before


@pytest.mark.parametrize("agent", AGENTS)
def test_without_the_notes_it_is_removed_all_the_same(ann: InstalledPerson, agent: str) -> None:
    before = homes(ann)
    ann.run("connect", agent, "--yes")
    (ann.archive / f"connect-{agent}.json").write_text("{", encoding="utf-8")
    assert ann.run("connect", agent).err.startswith("retold: nothing to do")
    assert ann.run("connect", agent, "--remove", "--yes").code == 0
    left = set(homes(ann)) - set(before)
    assert left <= {
        ".gemini/extensions",
        ".gemini/policies",
        ".claude/skills",
        ".codex/skills",
    }  # may be anybody's
    assert {path: held for path, held in homes(ann).items() if path not in left} == before


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("what", [(), ("--remove",)])
def test_a_dry_run_shows_and_changes_nothing(ann: InstalledPerson, agent: str, what: tuple[str, ...]) -> None:
    if what:
        ann.run("connect", agent, "--yes")
    before = file_tree(ann.folder)
    done = ann.run("connect", agent, *what, "--dry-run")
    assert (done.code, done.err) == (0, "retold: nothing was changed\n")
    assert file_tree(ann.folder) == before
    assert ann.run("connect", agent, *what, "--yes").out == done.out


def test_where_nobody_can_be_asked_nothing_is_changed(ann: InstalledPerson) -> None:
    before = file_tree(ann.folder)
    done = ann.run("connect", "gemini")
    assert done.code == 1
    assert "--yes" in done.err
    assert file_tree(ann.folder) == before


@pytest.mark.parametrize(("said", "code"), [("y\n", 0), ("Yes\n", 0), ("n\n", 1), ("\n", 1), ("", 1)])
def test_whoever_can_be_asked_decides(
    ann: InstalledPerson, monkeypatch: pytest.MonkeyPatch, said: str, code: int
) -> None:
    class Terminal:
        isatty = staticmethod(lambda: True)
        readline = staticmethod(lambda: said)

    monkeypatch.setattr(sys, "stdin", Terminal)
    before = homes(ann)
    done = ann.run("connect", "gemini")
    assert "Make these changes? [y/N] " in done.err
    assert done.code == code
    assert (homes(ann) == before) == bool(code)


def test_an_agent_that_is_not_there_is_told(tmp_path: Path) -> None:
    person = InstalledPerson(tmp_path / "bob")
    done = person.run("connect", "gemini", "--yes")
    assert (done.code, done.out) == (1, "")
    assert "gemini is not installed" in done.err
    assert file_tree(person.folder) == {}
    assert person.run("connect", "nobody").code == 2


@pytest.mark.parametrize("agent", AGENTS)
def test_what_is_not_ours_is_refused_and_stays(ann: InstalledPerson, agent: str) -> None:
    theirs = ann.folder / min(FILES[agent])
    theirs.parent.mkdir(parents=True)
    theirs.write_text("{}", encoding="utf-8")
    before = homes(ann)
    done = ann.run("connect", agent, "--yes")
    assert (done.code, done.out) == (4, "")
    assert f"{theirs} is there already, and is not retold's; nothing was changed" in done.err
    assert homes(ann) == before
    assert ann.run("connect", agent, "--remove", "--yes").err.startswith("retold: nothing to do")
    assert homes(ann) == before


@pytest.mark.parametrize("agent", AGENTS)
def test_what_somebody_has_changed_in_ours_is_kept_beside(ann: InstalledPerson, agent: str) -> None:
    before = homes(ann)
    ann.run("connect", agent, "--yes")
    ours = ann.folder / max(FILES[agent])
    ours.write_text(ours.read_text(encoding="utf-8") + "# and mine\n", encoding="utf-8")
    done = ann.run("connect", agent, "--remove", "--yes")
    assert homes(ann) == before
    (backup,) = [path for path in (ann.archive / "backups").iterdir() if ours.name in path.name]
    assert backup.read_text(encoding="utf-8").endswith("# and mine\n")
    assert str(backup) in done.err


@pytest.mark.parametrize("agent", AGENTS)
def test_what_others_have_put_beside_ours_stays(ann: InstalledPerson, agent: str) -> None:
    ann.run("connect", agent, "--yes")
    theirs = (ann.folder / min(FILES[agent])).with_name("theirs.txt")
    theirs.write_text("theirs", encoding="utf-8")
    ann.run("connect", agent, "--remove", "--yes")
    assert theirs.read_text(encoding="utf-8") == "theirs"
    assert not any((ann.folder / path).exists() for path in FILES[agent])


@pytest.mark.parametrize("agent", AGENTS)
def test_a_call_of_another_retold_is_renewed_and_removed_to_the_byte(
    ann: InstalledPerson, agent: str
) -> None:
    before = homes(ann)
    ann.call("connect", agent, "--yes")
    done = ann.run("connect", agent, "--yes")  # from this process, which is not the script
    assert f"-{' ' * 6}" in done.out or "-command" in done.out
    texts = [held for path, (_, held) in file_tree(ann.folder).items() if not path.startswith("retold")]
    assert not [held for held in texts if isinstance(held, bytes) and str(ann.retold).encode() in held]
    ann.run("connect", agent, "--remove", "--yes")
    assert homes(ann) == before


@pytest.mark.parametrize(
    ("agent", "data"), [(agent, data) for agent, all_of in BROKEN.items() for data in all_of]
)
def test_broken_settings_are_refused_and_nothing_is_changed(
    ann: InstalledPerson, agent: str, data: bytes
) -> None:
    settings(ann, agent).write_bytes(data)
    before = file_tree(ann.folder)
    done = ann.run("connect", agent, "--yes")
    assert (done.code, done.out) == (4, "")
    assert str(settings(ann, agent)) in done.err
    assert done.err.endswith("nothing was changed\n")
    assert file_tree(ann.folder) == before


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_settings_that_broke_afterwards_are_left_with_all_else(ann: InstalledPerson, agent: str) -> None:
    ann.run("connect", agent, "--yes")
    whole = settings(ann, agent).read_bytes()
    settings(ann, agent).write_bytes(whole + b'"')
    before = file_tree(ann.folder)
    assert ann.run("connect", agent, "--remove", "--yes").code == 4
    assert file_tree(ann.folder) == before
    settings(ann, agent).write_bytes(b'"')  # broken, but not with us in it
    assert ann.run("connect", agent, "--remove", "--yes").code == 0
    assert settings(ann, agent).read_bytes() == b'"'


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_read_only_settings_are_refused(ann: InstalledPerson, agent: str) -> None:
    settings(ann, agent).chmod(0o444)
    before = homes(ann)
    done = ann.run("connect", agent, "--yes")
    assert done.code == 4
    assert "read-only; nothing was changed" in done.err
    assert homes(ann) == before


@pytest.mark.skipif(is_root, reason="root may write everywhere")
@pytest.mark.parametrize("agent", AGENTS)
def test_a_home_that_cannot_be_written_is_refused(ann: InstalledPerson, agent: str) -> None:
    before = homes(ann)
    (ann.folder / f".{agent}").chmod(0o500)
    done = ann.run("connect", agent, "--yes")
    (ann.folder / f".{agent}").chmod(0o755)
    assert done.code == 4
    assert set(homes(ann)) == set(before)


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_link_stays_and_what_it_leads_to_is_changed(ann: InstalledPerson, agent: str) -> None:
    dotfiles = ann.folder / "dotfiles"
    dotfiles.mkdir()
    settings(ann, agent).rename(dotfiles / "file")
    settings(ann, agent).symlink_to(Path("..") / "dotfiles" / "file")
    before = homes(ann)
    assert ann.run("connect", agent, "--yes").code == 0
    assert settings(ann, agent).is_symlink()
    assert "retold" in (dotfiles / "file").read_text(encoding="utf-8")
    assert ann.run("connect", agent).err.startswith("retold: nothing to do")
    ann.run("connect", agent, "--remove", "--yes")
    assert homes(ann) == before


def test_a_folder_of_extensions_that_is_a_link_stays_one(ann: InstalledPerson) -> None:
    (ann.folder / "elsewhere").mkdir()
    (ann.folder / ".gemini" / "extensions").symlink_to(ann.folder / "elsewhere")
    before = homes(ann)
    assert ann.run("connect", "gemini", "--yes").code == 0
    assert (ann.folder / "elsewhere" / "retold" / "RETOLD.md").is_file()
    ann.run("connect", "gemini", "--remove", "--yes")
    assert homes(ann) == before


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_settings_keep_what_is_theirs(ann: InstalledPerson, agent: str) -> None:
    ann.run("connect", agent, "--yes")
    text = settings(ann, agent).read_text(encoding="utf-8")
    if agent == "claude":
        assert text == SETTINGS.replace('["Bash(ls)"]', '["Bash(ls)", "mcp__plugin_retold_retold"]')
    else:
        assert text.startswith(CONFIG + "\n[mcp_servers.retold]\ncommand = ")
    assert stat.S_IMODE(settings(ann, agent).stat().st_mode) == 0o640
    (backup,) = (ann.archive / "backups").iterdir()
    assert backup.read_text(encoding="utf-8") == (SETTINGS if agent == "claude" else CONFIG)
    assert not backup.stat().st_mode & 0o077
    settings(ann, agent).write_text(text.replace("mine", "yours"), encoding="utf-8")
    ann.run("connect", agent, "--remove", "--yes")
    left = (SETTINGS if agent == "claude" else CONFIG).replace("mine", "yours")
    assert settings(ann, agent).read_text(encoding="utf-8") == left


@pytest.mark.parametrize(
    ("agent", "text"),
    [
        ("claude", "{}"),
        ("claude", '{"permissions": {"allow": []}}'),
        ("claude", '{\n  "permissions": { }\n}'),
        ("claude", "\ufeff{}\r\n"),
        ("codex", ""),
        ("codex", 'model = "x"'),
        ("codex", 'model = "x"\r\n\r\n[mcp_servers]\r\n'),
    ],
)
def test_settings_of_any_form_are_to_the_byte_as_before(ann: InstalledPerson, agent: str, text: str) -> None:
    settings(ann, agent).write_text(text, encoding="utf-8", newline="")
    before = homes(ann)
    assert ann.run("connect", agent, "--yes").code == 0
    assert homes(ann) != before
    assert ann.run("connect", agent, "--remove", "--yes").code == 0
    assert homes(ann) == before


def test_another_home_of_an_agent_is_left_alone(
    ann: InstalledPerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elsewhere(InstalledPerson):
        """The same person, whose Claude Code lives in another place today."""

        @property
        def env(self) -> dict[str, str]:
            return super().env | {"CLAUDE_CONFIG_DIR": str(self.folder / "other")}

    settings(ann, "claude").unlink()
    before = homes(ann)
    ann.run("connect", "claude", "--yes")
    first = homes(ann)
    other = ann.folder / "other"
    other.mkdir()
    monkeypatch.setattr(ann, "__class__", Elsewhere)
    assert ann.run("connect", "claude", "--yes").code == 0
    assert (other / "skills" / "retold" / "hooks" / "hooks.json").exists()
    assert first.items() <= homes(ann).items()
    assert ann.run("connect", "claude", "--remove", "--yes").code == 0
    assert list(other.iterdir()) == []
    assert first.items() <= homes(ann).items()
    monkeypatch.undo()
    other.rmdir()
    assert ann.run("connect", "claude", "--remove", "--yes").code == 0
    assert homes(ann) == before
    assert not (ann.archive / "connect-claude.json").exists()


def test_two_names_of_one_home_are_one_home(ann: InstalledPerson) -> None:
    (ann.folder / ".config").mkdir()
    (ann.folder / ".config" / "claude").symlink_to(ann.folder / ".claude")
    before = homes(ann)
    assert ann.call("connect", "claude", "--yes").code == 0
    assert ann.call("connect", "claude", "--remove", "--yes").code == 0
    assert homes(ann) == before


def test_what_somebody_put_in_place_of_a_file_of_ours_is_theirs(ann: InstalledPerson) -> None:
    policy = ann.folder / ".gemini/policies/retold.toml"
    assert ann.call("connect", "gemini", "--yes").code == 0
    policy.write_text('[[rule]]\nmcpName = "retold"\ndecision = "deny"\n', encoding="utf-8")
    done = ann.run("connect", "gemini", "--scope", "all", "--yes")
    assert (done.code, "is not retold's" in done.err) == (4, True)
    assert ann.call("connect", "gemini", "--remove", "--yes").code == 0
    assert "deny" in policy.read_text(encoding="utf-8")
