"""Where `retold export --format parquet` writes, and where it does not: only what is its own is touched, whatever goes wrong."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retold.lake.dataset_files import DatasetFolder, NotADatasetError
from support.dataset_exports import DRAFT, dataset_rows, export_dataset, person_with_archive, table_objects
from support.gemini_home import GeminiHome, user
from support.person import Person, is_root


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    return person_with_archive(tmp_path / "ann")


@pytest.fixture
def lake(ann: Person, tmp_path: Path) -> Path:
    export_dataset(ann, tmp_path / "lake", "--all", "--no-redact")
    return tmp_path / "lake"


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ((), "name one with -o"),
        (("-o", "-"), "name one with -o"),
        (("-o", "{}/lake", "--messages", "1-2"), "whole sessions"),
        (("-o", "{}/lake", "--view", "active"), "whole sessions"),
        (("-o", "{}/lake", "--tools", "none"), "do not apply to it"),
        (("-o", "{}/lake", "--templates", "{}"), "do not apply to it"),
        (("-o", "{}/ann"), "other things in it"),
        (("-o", "{}/ann/.gemini/tmp/den/chats/session-2026-03-01T09-55-0000000f.json"), "a file, and"),
    ],
)
def test_what_is_no_place_for_it_is_refused(
    ann: Person, tmp_path: Path, options: tuple[str, ...], word: str
) -> None:
    given = [option.format(tmp_path) for option in options]
    done = ann.run("export", "--all", "--format", "parquet", *given)
    assert done.code == 2
    assert word in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "lake").exists()


def test_a_manifest_of_others_is_left_alone(ann: Person, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "retold.json").write_text('{"mine": 1}')
    done = ann.run("export", "--all", "--format", "parquet", "-o", str(tmp_path / "lake"))
    assert (done.code, (tmp_path / "lake" / "retold.json").read_text()) == (2, '{"mine": 1}')


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_everything_is_for_its_owner_alone(lake: Path, ann: Person) -> None:
    modes = {path.is_dir(): path.stat().st_mode & 0o777 for path in (lake, *lake.rglob("*"))}
    assert modes == {True: 0o700, False: 0o600}
    assert (ann.archive / "dataset.key").stat().st_mode & 0o777 == 0o600


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "kept").write_text("kept")
    yield folder
    assert {file.name: file.read_text() for file in folder.iterdir()} == {"kept": "kept"}


@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
def test_no_link_leads_out_of_it(ann: Person, lake: Path, elsewhere: Path) -> None:
    before = dataset_rows(lake)
    part = next(lake.glob("sessions/agent=gemini/*/part-0000.parquet"))
    part.unlink()
    part.symlink_to(elsewhere / "kept")
    export_dataset(ann, lake, "--all", "--no-redact")
    assert not part.is_symlink()
    assert dataset_rows(lake) == before
    folder = lake / "events"
    folder.rename(lake.parent / "away")
    folder.symlink_to(elsewhere)
    done = ann.run("export", "--all", "--format", "parquet", "-o", str(lake), "--no-redact")
    assert (done.code, done.err.count("\n")) == (2, 1)


def test_hostile_texts_stay_in_their_cells(tmp_path: Path) -> None:
    home, text = GeminiHome(tmp_path / "bob"), "a\x00b\n../..\u202e\ud800 '; DROP TABLE x; --"
    home.lines(
        "../den%3D=x".replace("/", "_"),
        1,
        1,
        [user("u1", 1, text)],
        kind="main",
        root="/home/bob/a=b%2F/..\n",
    )
    person = Person(tmp_path / "bob")
    person.sync()
    export_dataset(person, tmp_path / "lake", "--all", "--no-redact")
    (row,) = table_objects(tmp_path / "lake", "sessions")
    assert str(row["first_prompt"]).startswith("a\x00b\n../..")
    files = [file.relative_to(tmp_path / "lake").parts for file in (tmp_path / "lake").rglob("*.parquet")]
    assert {parts[1:] for parts in files} == {("agent=gemini", "month=2026-03", "part-0000.parquet")}


def test_two_at_a_time_are_refused(ann: Person, lake: Path) -> None:
    with DatasetFolder(str(lake)):
        done = ann.run("export", "--all", "--format", "parquet", "-o", str(lake))
    assert (done.code, "another retold" in done.err) == (4, True)


def test_a_full_disk_leaves_what_was_there(
    ann: Person, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = dataset_rows(lake)
    GeminiHome(tmp_path / "ann").lines("den", 3, 30, [user("u3", 31, "And otters?")], kind="main")
    ann.sync()

    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("retold.lake.dataset_files.sync_to_disk", full)
        done = ann.run("export", "--all", "--format", "parquet", "-o", str(lake), "--no-redact")
    assert (done.code, "No space left" in done.err) == (4, True)
    assert dataset_rows(lake) == before
    assert not [file for file in lake.rglob("*") if DRAFT.search(file.name)]
    export_dataset(ann, lake, "--all", "--no-redact")
    assert len(dataset_rows(lake)["sessions"]) == len(before["sessions"]) + 1


@pytest.mark.parametrize(
    "what", ["retold.lake.dataset_files.DatasetFolder.open_new", "retold.lake.dataset_files.ParquetWriter"]
)
def test_a_file_that_cannot_be_opened_is_told_as_what_it_is(
    ann: Person, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    before = dataset_rows(lake)
    GeminiHome(tmp_path / "ann").lines("den", 3, 30, [user("u3", 31, "And otters?")], kind="main")
    ann.sync()

    opened = DatasetFolder.open_new

    def refused(*given: Any, **_: object) -> Any:
        if "retold.json" in str(given[0]):
            return opened(given[0])
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(what, staticmethod(refused))
        done = ann.run("export", "--all", "--format", "parquet", "-o", str(lake), "--no-redact")
    assert (done.code, "Too many open files" in done.err) == (4, True)
    assert dataset_rows(lake) == before
    assert not [file for file in lake.rglob("*") if DRAFT.search(file.name)]


@pytest.mark.skipif(os.name == "nt", reason="there are no such numbers of files there")
def test_a_folder_that_is_not_ours_after_all_is_let_go(tmp_path: Path) -> None:
    folder = DatasetFolder(str(tmp_path / "lake"))
    (tmp_path / "lake" / "retold.json").write_text("{}")
    before = os.open(os.devnull, os.O_RDONLY)
    os.close(before)
    with pytest.raises(NotADatasetError), folder:
        pass
    after = os.open(os.devnull, os.O_RDONLY)
    os.close(after)
    assert after == before, "the lock is still held"


@pytest.mark.skipif(is_root or os.name == "nt", reason="root may write everywhere")
def test_a_folder_that_nobody_may_write_to_is_told(ann: Person, lake: Path) -> None:
    (lake / ".retold.lock").unlink()
    lake.chmod(0o500)
    done = ann.run("export", "--all", "--format", "parquet", "-o", str(lake))
    lake.chmod(0o700)
    assert done.code == 4
