"""The story in the README, line by line, with the real Gemini CLI."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.person import Person
from support.real_gemini import RealCli, free_port

README = Path(__file__).resolve().parents[2] / "README.md"
VERSION, ID = "0.61.0", "3f6c21aa-1111-4222-8333-944445555666"
EXPECTED = {
    'gemini -p "Why is the tide table an hour off?"': "Fake answer to",
    "retold keep --install": "SessionEnd",
    "retold doctor": "",
    "mv ~/.gemini/tmp ~/gone": "",
    "gemini --list-sessions": "No previous sessions found",
    'retold search "tide table"': "Why is the tide table an hour off?",
    "retold restore 3f6c21aa": "session-",
    "gemini --list-sessions ": f"[r_{ID}]",
    "retold resume 3f6c21aa --run": "Fake answer to",
    "retold show 3f6c21aa": "and in May?",
}
"""What each line says; the second list is told apart by a blank."""


def lines() -> list[str]:
    """Return the lines of the story, without what is said about them."""
    block = re.search(
        r"<!-- run by tests/maintenance/test_story.py -->\n\n```sh\n(.*?)```",
        README.read_text(encoding="utf-8"),
        re.DOTALL,
    )
    assert block is not None
    return [line.partition("  #")[0].strip() for line in block[1].splitlines()]


@pytest.fixture
def bin_folder(real_cli: RealCli, tmp_path: Path, person: Person, project: Path) -> Path:
    """Programs as a person has them on PATH; Gemini CLI has a session id that we know, and is asked something."""
    folder = tmp_path / "bin"
    folder.mkdir()
    settings = [
        f"export {name}={shlex.quote(value)}"
        for name, value in real_cli.settings(VERSION, person.folder, project).items()
    ]
    run = shlex.join(["bash", str(real_cli.shared / "real-cli" / "run"), VERSION, str(free_port())])
    model = "-m gemini-2.5-flash --yolo"
    script = f"""#!/bin/sh
{chr(10).join(settings)}
case "$*" in
*--list-sessions*) exec {run} "$@" ;;
*--resume*) exec {run} {model} "$@" -p "and in May?" ;;
*) exec {run} {model} --session-id {ID} "$@" ;;
esac
"""
    _program(folder / "gemini", script)
    _program(folder / "retold", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m retold "$@"\n')
    return folder


def _program(file: Path, script: str) -> None:
    file.write_text(script, encoding="utf-8")
    file.chmod(0o755)


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path / "ann")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = (tmp_path / "almanac").resolve()
    folder.mkdir()
    return folder


def test_the_story_in_the_readme(person: Person, project: Path, bin_folder: Path) -> None:
    told = lines()
    assert len(told) == len(EXPECTED)
    env = person.env | {"PATH": f"{bin_folder}:{person.env['PATH']}"}
    for line, (expected_line, expected) in zip(told, EXPECTED.items(), strict=True):
        assert line == expected_line.strip()
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=project,
            env=env,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        codes = (0, 1) if line == "retold doctor" else (0,)
        assert done.returncode in codes, (line, done.stdout, done.stderr)
        assert expected in done.stdout + done.stderr, (line, done.stdout, done.stderr)
    rows = [row for row in person.rows().values() if row["agent"] == "gemini"]
    assert [row["counts"]["prompts"] for row in rows] == [2]
