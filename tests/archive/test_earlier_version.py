"""An archive that an earlier version made opens, migrates and keeps everything.

The fixture was made by retold at commit 21a6401, which had two migration steps: sessions of three agents, one whose file was
deleted, one with a second original, one with a title, two with tags, and one that was forgotten. `expected.json` is what that
version showed. `forgotten/` holds the file of the forgotten session.
"""

import hashlib
import json
import os
import tarfile
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import apsw
import pytest

from retold.archive.examination import examine
from retold.archive.schema import STEPS
from retold.archive.store import Store
from support.merged_archives import import_into
from support.person import Json, Person

FIXTURE = Path(__file__).parents[1] / "fixtures" / "archive_21a6401.tar.xz"
LOST = "claude:02fa6f7a-ea3f-4005-b515-5dbd421221d8"
TITLED = "gemini:session-2026-10-27T09-50-df85a048"
FORGOTTEN = "01a1e4ed"


class Ann(Person):
    """The owner of the archive, whose home is not on this machine."""

    home = "/home/ann/home"

    @property
    def env(self) -> dict[str, str]:
        folders = {"GEMINI_CLI_HOME": "", "CLAUDE_CONFIG_DIR": "/.claude", "CODEX_HOME": "/.codex"}
        return super().env | {name: f"{self.home}{folder}" for name, folder in folders.items()}


@pytest.fixture
def ann(tmp_path: Path) -> Ann:
    with tarfile.open(FIXTURE) as packed:
        packed.extractall(tmp_path / "ann", filter="data")
    return Ann(tmp_path / "ann")


@pytest.fixture
def expected(ann: Ann) -> dict[str, Json]:
    found: dict[str, Json] = json.loads((ann.folder / "expected.json").read_text(encoding="utf-8"))
    return found


def digests(folder: Path) -> dict[str, list[str]]:
    """Return the digest of every original, by the path of its file."""
    found = defaultdict(list)
    with Store(str(folder)) as record:
        asked = "SELECT path, originals.id FROM sources JOIN originals ON source = sources.id ORDER BY path, originals.id"
        for path, number in list(record.rows(asked)):
            found[path].append(hashlib.sha256(record.originals.read(number)).hexdigest())
    return dict(found)


def texts(session: Json) -> list[str]:
    """Return what was said in a session."""
    parts = (part for entry in session["timeline"] for part in entry.get("parts", ()))
    return [part["text"] for part in parts if part["type"] == "text"]


def assert_all_is_there(ann: Ann, expected: dict[str, Json]) -> None:
    """Compare every session with what the earlier version showed."""
    with Store(str(ann.archive)) as record:
        keys = {key for (key,) in record.rows("SELECT key FROM sessions")}
    assert keys == set(expected["sessions"])
    for key, before in expected["sessions"].items():
        now = ann.show(key)
        # That version put messages that only the earlier original has behind all others.
        assert sorted(texts(now)) == sorted(before["texts"])
        assert {name: now[name] for name in ("title", "tags", "counts", "cost_usd")} == {
            name: before[name] for name in ("title", "tags", "counts", "cost_usd")
        }
        assert (now["usage"]["total"], now["usage"]["requests"]) == (before["total"], before["requests"])
    assert digests(ann.archive) == expected["originals"]


def test_the_archive_is_of_the_earlier_version(ann: Ann) -> None:
    connection = apsw.Connection(str(ann.archive / "archive.db"))
    assert connection.pragma("user_version") == 2 < len(STEPS)


def test_everything_is_there_when_it_is_opened(ann: Ann, expected: dict[str, Json]) -> None:
    assert_all_is_there(ann, expected)
    with Store(str(ann.archive)) as record:
        assert list(examine(record, is_full=True)) == []


def test_lists_searches_and_sums_work(ann: Ann, expected: dict[str, Json]) -> None:
    listed = {key: one for key, one in ann.rows().items() if one["kind"] != "subagent"}
    assert {key: one["title"] for key, one in listed.items()} == {
        key: expected["sessions"][key]["title"] for key in listed
    }
    found = ann.run("search", "--json", "Fractions like 1½ cups")  # makes the index again
    assert LOST in [one["key"] for one in found.objects]
    assert ann.keys("tag:parser") == ["claude:6971bdac-7a80-412f-993f-9b1d1658add4"]
    days = ann.run("stats", "--by", "day", "--json").objects
    sessions = expected["sessions"].values()
    assert sum(day["usage"]["total"] or 0 for day in days) == sum(one["total"] or 0 for one in sessions)
    assert sum(Decimal(day["cost_usd"] or 0) for day in days) == sum(
        Decimal(one["cost_usd"] or 0) for one in sessions
    )


def test_a_sync_loses_nothing(ann: Ann, expected: dict[str, Json]) -> None:
    """The home is gone: the sync reads every session again, from the originals."""
    (done,) = ann.run("sync", "--json").objects
    assert (done["new_sessions"], done["problems"]) == (0, 0)
    assert_all_is_there(ann, expected)
    ann.sync("--reindex")
    assert_all_is_there(ann, expected)
    assert {one["state"] for one in ann.show(LOST)["sources"]} == {"gone"}
    assert ann.show(TITLED)["title"] == "German measures: pinch, knife tip, dash"


def test_the_forgotten_session_stays_forgotten(ann: Ann, expected: dict[str, Json]) -> None:
    """Its file is still there."""
    ann.home = str(ann.folder / "forgotten")
    (path,) = Path(ann.home).rglob("*.jsonl")
    os.utime(path, (1_794_000_000, 1_794_000_000))
    assert ann.run("sync", "--json").objects[0]["new_sessions"] == 0
    assert ann.run("show", FORGOTTEN).code != 0
    assert_all_is_there(ann, expected)


def test_it_can_be_imported_as_it_is(ann: Ann, expected: dict[str, Json], tmp_path: Path) -> None:
    before = (ann.archive / "archive.db").read_bytes()
    ben = Person(tmp_path / "ben")
    done = import_into(ben.archive, ann.archive)
    assert (done.titles, done.tags) == (1, 3)
    assert ben.rows()[TITLED]["title"] == "German measures: pinch, knife tip, dash"
    assert texts(ben.run("show", "--json", LOST).objects[0]) == expected["sessions"][LOST]["texts"]
    assert (ann.archive / "archive.db").read_bytes() == before
