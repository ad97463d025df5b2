"""The page about one archive for a team: every command in it runs, in its order, and does what it says."""

import re
import shlex
from pathlib import Path

import pytest

from support.conversation_files import FORMS, turns
from support.person import Person

PAGE = Path(__file__).resolve().parents[2] / "docs" / "team.md"
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands() -> list[list[str]]:
    lines = [
        line for block in _BLOCK.findall(PAGE.read_text(encoding="utf-8")) for line in block.splitlines()
    ]
    return [shlex.split(line) for line in lines]


def test_the_commands_of_the_page_run_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate(("ann", "laptop", "mounted", "away")):
        FORMS["claude"].write(tmp_path / name, number, turns(f"tide of {name}, by its time zone"))
    Person(tmp_path / "away", tmp_path / "ben").sync()
    ann = Person(tmp_path / "ann")
    monkeypatch.chdir(tmp_path)
    places = {"/backup/laptop": str(tmp_path / "laptop"), "/mnt/ben": str(tmp_path / "mounted")}
    done = []
    for program, *words in commands():
        assert program == "retold"
        for old, new in places.items():
            words = [word.replace(old, new) for word in words]  # noqa: PLW2901 - where they are here
        done.append(ann.run(*words))
    assert [one.code for one in done] == [0] * 6
    assert len(ann.run("list", "--json").objects) == 4
    assert {one["key"] for one in ann.run("list", "--home", "ben", "--json").objects} == {
        FORMS["claude"].key(2),
        FORMS["claude"].key(3),
    }
    assert "1 new" in done[1].err
    assert "1 new" in done[2].err
