"""`RETOLD_HOME` with bytes that are no text: everything works there, or says why it cannot."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from retold.search.scan_job import ScanJob, ScanResult
from retold.search.scan_pool import ScanPool
from retold.synchronization import update
from support.conversation_files import FORMS, turns
from support.person import Person

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems take no such names")
FORM = FORMS["claude"]


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path / "ann", tmp_path / os.fsdecode(b"kept \xff\xe1?here%20#"))
    FORM.write(person.folder, 1, turns("ferry"))
    FORM.write(person.folder, 2, turns("lock"))
    person.age()
    person.sync()
    return person


def test_everything_is_kept_and_found(person: Person) -> None:
    assert set(person.rows()) == {FORM.key(1), FORM.key(2)}
    assert person.keys("ferry") == person.keys("--substring", "erry") == [FORM.key(1)]
    assert person.show(FORM.key(1))["first_prompt"] == "asked ferry"
    assert person.sync()["read"] == 0
    assert person.sync("--reindex")["problems"] == 0
    assert person.run("doctor", "--full").code == 0
    assert person.run("stats").code == 0
    assert person.run("sql", "SELECT count(*) FROM sessions").out.split()[-1] == "2"
    assert person.run("name", FORM.key(1), "a title").code == 0
    assert person.run("forget", "-y", FORM.key(1)).code == 0
    assert set(person.rows()) == {FORM.key(2)}
    assert {path.name for path in person.files()} >= {"archive.db", "text-0.db", "text-1.db"}
    assert person.spawn("list").code == 0


def test_the_process_that_scans_opens_it_too(person: Person) -> None:
    async def is_gone() -> bool:
        return False

    async def scan() -> ScanResult:
        return await ScanPool(str(person.archive)).run(ScanJob("erry", False, {}, 5), is_gone)  # noqa: FBT003 - is_regex

    found = asyncio.run(scan())
    assert (len(found.items), found.end) == (1, "done")


def test_keep_says_that_no_settings_can_hold_it(person: Person) -> None:
    done = person.run("keep", "--install")
    assert done.code == 4
    assert "nothing was changed" in done.err


def test_conversations_in_a_home_that_is_no_text_are_kept_and_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person(tmp_path / os.fsdecode(b"ann \xff"), tmp_path / "kept")
    FORM.write(person.folder, 1, turns("ferry"))
    person.age()
    assert person.sync()["read"] == 1
    assert person.keys("ferry") == [FORM.key(1)]
    assert person.spawn("list").code == 0
    assert person.run("doctor").code == 0
    monkeypatch.setattr(update, "sync_or_rebuild", None)  # a sync that finds nothing new does not call it
    assert person.sync()["unchanged"] == 1
