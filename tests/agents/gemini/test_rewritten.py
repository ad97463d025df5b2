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


def asked(path: str, output: str = "given") -> dict[str, object]:
    """Return an answer that calls one tool under one id."""
    result = [{"functionResponse": {"id": "c", "name": "read_file", "response": {"output": output}}}]
    call = {
        "id": "c",
        "name": "read_file",
        "args": {"file_path": path},
        "status": "success",
        "result": result,
    }
    return {**gemini("g", 2, "I look."), "toolCalls": [call]}


@pytest.mark.parametrize("ending", ["json", "lines"])
@pytest.mark.parametrize("is_rewritten", [False, True])
def test_every_argument_that_a_call_ever_had_is_shown_and_found(
    tmp_path: Path, ending: str, *, is_rewritten: bool
) -> None:
    person = Person(tmp_path / "home", tmp_path / "archive")
    home = GeminiHome(person.folder)
    write = getattr(home, ending)
    versions = [asked("/heron"), asked("/otter"), asked("/plover", "masked"), asked("/plover")]
    written = [[version] for version in versions] if is_rewritten else [versions]
    for number, records in enumerate(written):
        file = write("almanac", 1, 1, [user("u", 1, "hello"), *records])
        os.utime(file, (1_900_000_000 + number, 1_900_000_000 + number))
        person.sync()
    (key,) = {person.keys(word)[0] for word in ("heron", "otter", "plover", "masked")}
    answers = [entry for entry in person.show(key)["timeline"] if entry.get("role") == "assistant"]
    told = sorted(
        (part["arguments"]["file_path"], entry["fate"]) for entry in answers for part in entry["parts"][1:]
    )
    assert told == [("/heron", "superseded"), ("/otter", "superseded"), ("/plover", "live")]
