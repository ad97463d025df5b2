"""A file that was rewritten in place: the text that it holds now stands, and the earlier one is superseded."""

import json
import os
from pathlib import Path

import pytest

from support.gemini_home import GeminiHome, gemini, user
from support.person import Person


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("bittern", [("heron", "superseded"), ("bittern", "live")]),
        ("heron and more", [("heron and more", "live")]),
    ],
)
def test_of_two_contents_of_a_file_the_last_stands(
    tmp_path: Path, now: str, expected: list[tuple[str, str]]
) -> None:
    person = Person(tmp_path / "home", tmp_path / "archive")
    home = GeminiHome(person.folder)
    home.lines("almanac", 1, 1, [user("u", 1, "hello"), gemini("g", 2, "heron")])
    person.sync()
    file = home.lines("almanac", 1, 1, [user("u", 1, "hello"), gemini("g", 2, now)])
    os.utime(file, (1_900_000_000, 1_900_000_000))
    person.sync()
    (row,) = person.run("search", "heron", "--json").objects
    (shown,) = person.run("show", row["key"], "--json").objects
    answers = [entry for entry in shown["timeline"] if entry.get("role") == "assistant"]
    assert [(entry["parts"][0]["text"], entry["fate"]) for entry in answers] == expected
    assert shown["usage"]["requests"] == 1
    (active,) = person.run("show", row["key"], "--json", "--view", "active").objects
    assert ("bittern" in expected[-1][0]) == ("heron" not in json.dumps(active["timeline"]))
