"""Letters are looked for by two processes, and it makes no difference."""

import json
from pathlib import Path

import pytest

from retold.archive.store import Store
from retold.search import text_scan
from retold.search.text_scan import Prefilter
from support.codex_home import line, meta_line, thread_id, turn, write
from support.gemini_home import GeminiHome, gemini, user
from support.person import Person

THREAD = thread_id(0, 1)
WORDS = ("tide", "Neap", "ebb", "tideway", "moon")


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path / "ann")
    made = GeminiHome(person.folder)
    for number, word in enumerate(WORDS, 1):
        made.json(
            "almanac", number, number, [user(f"u{number}", number, word), gemini(f"g{number}", number, "yes")]
        )
    person.sync()
    return person


@pytest.mark.parametrize(
    ("needle", "expected"),
    [("tide", [1, 4]), ("neap", [2]), ("Neap", [2]), ("nEAP", []), ("o", [5]), ("nothing like it", [])],
)
def test_two_processes_find_what_one_does(person: Person, needle: str, expected: list[int]) -> None:
    with Store(str(person.archive)) as record:
        asked = "SELECT originals.uid FROM originals JOIN sources ON sources.id = source WHERE NOT is_companion ORDER BY path"
        sessions = [[name] for (name,) in record.rows(asked)]
        alone = list(Prefilter(record, needle.encode()).filter_sessions(sessions))
        together = list(Prefilter(record, needle.encode()).filter_sessions(sessions, many=1))
    assert together == alone
    text_hits = [
        number
        for number, word in enumerate(WORDS, 1)
        if needle in (word.lower() if needle.islower() else word)
    ]
    assert text_hits == expected
    assert all(alone[number - 1] for number in expected)


def test_a_search_that_has_enough_ends_the_other_process(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_scan, "MANY", 1)
    found = person.search("--substring", "tide", "--limit", "1")
    assert len(found) == 1
    assert found[0]["hits"][0]["snippet"] == "tideway"


NESTED = 'printf "%s\\n" "a tide table"'


@pytest.mark.parametrize("letters", ["TIDE", '"a tide', '\\n" "a', 'printf "%s\\N"'])
def test_text_in_json_within_json_is_found(tmp_path: Path, letters: str) -> None:
    """Codex CLI writes arguments as a string of JSON, so that quotes and backslashes are escaped twice."""
    person = Person(tmp_path / "ann")
    call = {
        "type": "function_call",
        "name": "shell",
        "call_id": "c1",
        "arguments": json.dumps({"command": NESTED}),
    }
    rollout = [meta_line(THREAD, 0), *turn(1, "Print it.", "Done.", 1), line(3, "response_item", call)]
    write(person.folder / ".codex", THREAD, rollout)
    person.sync()
    (found,) = person.search("--substring", letters.lower())
    (hit,) = found["hits"]
    assert NESTED in hit["snippet"]
