"""Files that are too large to be held in memory are read, kept and found like others."""

from pathlib import Path

import pytest

from retold.archive import regions
from retold.ingest import snapshot
from support.gemini_home import GeminiHome, gemini, user
from support.person import Person


def test_a_large_file_is_kept_and_found_like_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []
    for name, largest in (("small", snapshot.LARGEST), ("large", 64)):
        monkeypatch.setattr(snapshot, "LARGEST", largest)
        monkeypatch.setattr(regions, "LARGEST", largest)
        person = Person(tmp_path / name)
        made = GeminiHome(person.folder)
        made.lines("almanac", 1, 1, [user("u1", 1, "tide table"), gemini("g1", 1, "neap")])
        person.sync()
        (found,) = person.search("neap")
        assert found["hits"][0]["snippet"] == "neap"
        assert person.keys("--substring", "ide tab") == [found["key"]]
        shown.append(person.show(found["key"])["timeline"])
    assert shown[0] == shown[1]
    assert len(shown[0]) == 2
