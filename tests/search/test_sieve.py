"""Letters are looked for by two processes, and it makes no difference."""

from pathlib import Path

import pytest

from retold.archive.store import Store
from retold.search import text_scan
from retold.search.text_scan import Prefilter
from support.gemini_home import GeminiHome, gemini, user
from support.person import Person

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
