"""What is gone from its home is so for everybody who asks: the doctor, the page and the terminal browser."""

from datetime import UTC, datetime
from pathlib import Path

from retold.archive.store import Store
from retold.demo.home import make_home
from retold.search.filters import Filters
from retold.search.pages import PageBounds, load_list_page
from retold.search.quick_find import load_cards
from support.person import Person

OWN_FILES = (
    ".gemini/tmp/*/chats/session-*.jsonl",
    ".claude/projects/*/*.jsonl",
    ".codex/sessions/*/*/*/*.jsonl",
)


def test_a_session_whose_files_are_gone_is_lost_for_everybody(tmp_path: Path) -> None:
    home = make_home(tmp_path / "demo", datetime.now(UTC)).folder / "home"
    ann = Person(home)
    ann.sync()
    for pattern in OWN_FILES:
        min(home.glob(pattern)).unlink()
    ann.sync()
    with Store(str(ann.archive)) as record:
        told = {one.card.key for one in load_cards(record, Filters()) if one.card.is_lost}
        shown = {
            row.summary.key
            for row in load_list_page(record, {}, PageBounds(0, 500)).rows
            if row.summary.is_gone
        }
    found = {one["session"] for one in ann.run("doctor", "--json").objects if one["finding"] == "lost"}
    assert {key.partition(":")[0] for key in found} == {"gemini", "claude", "codex"}
    assert told == shown == found
