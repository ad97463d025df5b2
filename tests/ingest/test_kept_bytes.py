"""The originals in the archive: every content that a file had when it was synced, byte for byte."""

import os
from pathlib import Path

import pytest

from retold.archive.record import Record
from support.conversation_files import FORMS, Turn
from support.person import Person


def originals(person: Person) -> dict[bytes, bool]:
    """Return the content of every original, and whether it is the latest of its file."""
    with Record(str(person.archive)) as record:
        rows = list(record.rows("SELECT id, is_latest FROM originals"))
        return {record.originals.data(number): bool(is_latest) for number, is_latest in rows}


def long_talk(*prompts: str) -> list[Turn]:
    return [Turn(prompt, f"{prompt} " * 60_000, f"answer to {prompt}") for prompt in prompts]


@pytest.mark.parametrize("form", ["claude", "codex", "gemini-lines"])
def test_a_file_that_was_edited_and_grew_is_no_mixture_of_both(tmp_path: Path, form: str) -> None:
    person = Person(tmp_path / "ann")
    file = FORMS[form].write(person.folder, 1, long_talk("heron", "otter", "bittern", "plover"))
    before = file.read_bytes()
    person.sync()
    grown = FORMS[form].write(person.folder, 1, long_talk("heron", "otter", "bittern", "plover", "dunlin"))
    after = grown.read_bytes()
    assert after.startswith(before[: len(before) // 2])
    for place in range(30_000, len(before), 9_973):  # the same length: at any place, sampled or not
        found = after.find(b"otter otter", place)
        if found >= 0:
            break
    edited = after[:found] + b"otter OTTER" + after[found + 11 :]
    grown.write_bytes(edited)
    person.sync()
    assert originals(person) == {before: False, edited: True}


def test_a_file_that_only_grew_is_kept_once(tmp_path: Path) -> None:
    person = Person(tmp_path / "ann")
    FORMS["claude"].write(person.folder, 1, long_talk("heron", "otter"))
    person.sync()
    file = FORMS["claude"].write(person.folder, 1, long_talk("heron", "otter", "dunlin"))
    person.sync()
    assert originals(person) == {file.read_bytes(): True}


@pytest.mark.parametrize("is_replaced", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_rewrite_of_the_same_size_and_time_is_seen(tmp_path: Path, form: str, *, is_replaced: bool) -> None:
    person = Person(tmp_path / "ann")
    file = FORMS[form].write(person.folder, 1, long_talk("heron", "otter"))
    person.age()
    person.sync()
    before, status = file.read_bytes(), file.stat()
    after = before.replace(b"answer to heron", b"answer to egret")  # far from the end
    new = file.with_suffix(".new") if is_replaced else file
    new.write_bytes(after)
    os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))
    new.replace(file)
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    assert person.sync()["read"] == 1
    assert originals(person) == {before: False, after: True}
    assert person.keys("egret") == [FORMS[form].key(1)]
    assert person.sync()["read"] == 0


def test_a_change_of_permissions_costs_one_read_and_keeps_nothing_twice(tmp_path: Path) -> None:
    person = Person(tmp_path / "ann")
    file = FORMS["claude"].write(person.folder, 1, long_talk("heron"))
    person.age()
    person.sync()
    file.chmod(0o600 if file.stat().st_mode & 0o077 else 0o640)
    assert [person.sync()["read"] for _ in range(2)] == [1, 0]
    assert originals(person) == {file.read_bytes(): True}
