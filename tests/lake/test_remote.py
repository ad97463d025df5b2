"""Homes that are reached by an address, or that others list for us, are read as those on the disk."""

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyarrow import fs

from retold.agents.protocol import AgentHome, Source
from retold.agents.registry import AGENTS
from retold.lake.arrow import schema_of
from retold.lake.batches import TableRequest, read_batches
from retold.lake.jobs import plan_jobs
from retold.lake.remote import (
    ListedDisk,
    ListedFile,
    RemoteDisk,
    RemoteEntry,
    find_folders,
    is_address,
    label_of,
    shown_path,
)
from retold.lake.spark.files import plan_shipments
from retold.model.problem import Problem
from support.conversation_files import FORMS, turns
from support.home_tables import tables_from_files, two_homes


@pytest.fixture
def homes(tmp_path: Path) -> Path:
    return two_homes(tmp_path)


def test_homes_by_an_address_are_told_as_those_on_the_disk(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = tables_from_files([("ann", homes / "ann"), ("bob", homes / "bob")])["messages"]
    monkeypatch.setattr("retold.lake.remote.is_address", lambda _: True)
    places = find_folders([f"file://{homes}/*"])
    assert [label for label, _ in places.folders] == ["ann", "bob"]
    plan = plan_jobs(places.folders, disk=places.disk, size_of=places.size_of)
    assert {job.size for job in plan.jobs} == {
        job.size for job in plan_jobs([("ann", homes / "ann"), ("bob", homes / "bob")]).jobs
    }
    jobs = pickle.loads(pickle.dumps(plan.jobs))  # noqa: S301 - our own
    rows = [
        row
        for batch in read_batches(TableRequest("messages", schema_of("messages")), jobs, plan.clues)
        for row in batch.to_pylist()
    ]
    assert sorted((row["session"], row["seq"], row["text"]) for row in rows) == sorted(
        (row["session"], row["seq"], row["text"]) for row in expected
    )


def test_what_is_listed_at_once_is_not_asked_for_again(homes: Path) -> None:
    disk = RemoteDisk(f"file://{homes}")
    disk.preload([f"file:{homes}", f"file:{homes}/nowhere"])
    (homes / "late").mkdir()
    assert [entry.name for entry in disk.entries(f"file:{homes}")] == ["ann", "bob"]
    assert not disk.is_folder(f"file:{homes}/late")
    assert RemoteDisk(f"file://{homes}").is_folder(f"file:{homes}/late")


def test_wrong_paths_raise_as_those_of_this_machine_do(homes: Path) -> None:
    disk = RemoteDisk(f"file://{homes}")
    with pytest.raises(FileNotFoundError):
        disk.open(f"file:{homes}/nowhere")
    with pytest.raises(FileNotFoundError):
        disk.entries(f"file:{homes}/nowhere")
    with pytest.raises(IsADirectoryError):
        disk.open(f"file:{homes}/ann")
    with pytest.raises(ValueError, match="null"):
        disk.open(f"file:{homes}/a\0b")
    assert not disk.is_file(f"file:{homes}/a\0b")
    assert not disk.is_link(f"file:{homes}/ann")
    assert disk.size_of(Source(Path("nowhere"), AgentHome(Path("h"), Path("h")))) == 0
    with pytest.raises(ValueError, match="anyfs"):
        RemoteDisk("anyfs://bucket/homes")


@pytest.mark.parametrize("at_once", [4, 11])
def test_a_file_can_be_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr("retold.lake.remote.WHOLE_FILE", at_once)
    (tmp_path / "a").write_bytes(b"heron otter")
    file = RemoteDisk(f"file://{tmp_path}").open(f"file:{tmp_path}/a")
    assert (file.size, file.read(5)) == (11, b"heron")
    file.seek(6)
    assert file.read(100) == b"otter"
    assert file.read(100) == b""
    file.seek(0)
    assert [file.read(3) for _ in range(4)] == [b"her", b"on ", b"ott", b"er"]
    assert file.status() == (11, (tmp_path / "a").stat().st_mtime_ns)
    file.close()


def test_what_is_an_address_and_how_it_is_shown() -> None:
    assert [is_address(one) for one in ("s3a://b/h", "gs://b", "file:///h", "/h", "h/*", "C:\\h")] == [
        True, True, False, False, False, False,
    ]  # fmt: skip
    assert shown_path("s3a://bucket/homes/ann/") == "s3a:/bucket/homes/ann"
    assert label_of(Path("/backup/ann/.gemini")) == "ann"
    assert label_of(Path("/")) is None
    with pytest.raises(ValueError, match="several file systems"):
        find_folders(["s3a://one/homes", "s3a://two/homes"])


HIDDEN = "HERON:0tter%2Fvole@"


@pytest.fixture
def asked(homes: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let a folder be reached by any address of S3; return the addresses by which it was."""
    given: list[str] = []

    def from_uri(address: str) -> tuple[fs.FileSystem, str]:
        given.append(address)
        return fs.SubTreeFileSystem(str(homes.parent), fs.LocalFileSystem()), address.rpartition("@")[2]

    arrow = SimpleNamespace(
        FileSystem=SimpleNamespace(from_uri=from_uri), FileSelector=fs.FileSelector, FileType=fs.FileType
    )
    monkeypatch.setattr("retold.lake.remote.fs", arrow)
    return given


def test_credentials_in_an_address_stand_in_no_table(homes: Path, asked: list[str]) -> None:
    chat = next((homes / "bob" / ".gemini").rglob("session-*"))
    (chat.parent / "session-2026-03-01T09-55-0000000f.json").write_text("no JSON")
    places = find_folders([f"s3://{HIDDEN}{homes.name}/*"])
    plan = plan_jobs(places.folders, disk=places.disk, size_of=places.size_of)
    for table in ("sessions", "problems"):
        found_there = read_batches(TableRequest(table, schema_of(table)), plan.jobs, plan.clues, plan.unread)
        rows = str([batch.to_pylist() for batch in found_there])
        assert f"s3:/{homes.name}/bob" in rows
        assert "HERON" not in rows
        assert "0tter" not in rows
    pickle.loads(pickle.dumps(places.disk))  # noqa: S301 - our own
    assert asked == [f"s3://{HIDDEN}{homes.name}"] * 2, "by these it is reached, here and elsewhere"


@pytest.mark.parametrize("path", ["nowhere", "nowhere*", "ann/nowhere/*"])
def test_credentials_in_an_address_stand_in_no_message(homes: Path, asked: list[str], path: str) -> None:
    with pytest.raises(ValueError, match=f"s3:/{homes.name}/") as raised:
        find_folders([f"s3://{HIDDEN}{homes.name}/{path}"])
    assert asked
    assert "0tter" not in str(raised.value)


def test_credentials_stand_in_no_message_of_others() -> None:
    with pytest.raises(ValueError, match="anyfs:/bucket") as raised:
        find_folders([f"anyfs://{HIDDEN}bucket/homes"])
    assert "0tter" not in str(raised.value)


@pytest.mark.usefixtures("asked")
def test_credentials_are_not_told_where_nobody_may_look(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(13, "nobody may look")

    monkeypatch.setattr("retold.lake.remote.RemoteDisk.preload", refused)
    monkeypatch.setattr("retold.lake.remote.find_labelled", lambda *_: [])
    with pytest.raises(ValueError, match="s3:/bucket/homes: nobody may look") as raised:
        find_folders([f"s3://{HIDDEN}bucket/homes"])
    assert "0tter" not in str(raised.value)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("s3://HERON:0tter@bucket/homes/ann@work", "s3:/bucket/homes/ann@work"),
        ("s3a://HERON:0t/ter@bucket/homes", "s3a:/bucket/homes"),
        ("hdfs://ann@host:8020/homes/ann@work", "hdfs:/host:8020/homes/ann@work"),
        ("hdfs://host:8020/homes/ann@work", "hdfs:/host:8020/homes/ann@work"),
        ("abfss://team:0tter@reeds.dfs.core.windows.net/h", "abfss:/team@reeds.dfs.core.windows.net/h"),
        ("abfss://team@reeds.dfs.core.windows.net/h", "abfss:/team@reeds.dfs.core.windows.net/h"),
        ("/homes/a:b/ann@work", "/homes/a:b/ann@work"),
    ],
)
def test_an_address_is_shown_without_whoever_asks(address: str, shown: str) -> None:
    assert shown_path(address) == shown


def test_globs_mean_folders_that_are_not_hidden(tmp_path: Path) -> None:
    for name in ("ann", "bob", ".cache"):
        (tmp_path / name / ".gemini").mkdir(parents=True)
    (tmp_path / "notes.txt").write_text("no home")
    assert [label for label, _ in find_folders([f"{tmp_path}/*"]).folders] == ["ann", "bob"]
    assert [label for label, _ in find_folders([f"{tmp_path}/*/.gem*", f"{tmp_path}/ann"]).folders] == [
        "ann",
        "bob",
        "ann",
    ]


@pytest.mark.skipif(os.name == "nt", reason="no name holds such marks there")
def test_marks_in_an_address_of_this_machine_are_part_of_names(tmp_path: Path) -> None:
    for name in ("term", "te?m", "te", "a#b", "a"):
        (tmp_path / name).mkdir()

    def meant(pattern: str) -> list[str]:
        return [folder.name for _, folder in find_folders([pattern]).folders]

    assert meant(f"file://{tmp_path}/te?m") == ["te?m", "term"]
    assert meant(f"file://{tmp_path}/te%3fm") == ["te?m"]
    assert meant(f"file:{tmp_path}/a#b") == meant((tmp_path / "a#b").as_uri()) == ["a#b"]


def test_paths_are_those_of_where_whoever_asks_stands(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(homes)
    assert [folder for _, folder in find_folders(["*"]).folders] == [homes / "ann", homes / "bob"]
    assert [folder for _, folder in find_folders(["../" + homes.name + "/ann"]).folders] == [homes / "ann"]


class Unscanned(dict[str, RemoteEntry]):
    """What a folder holds, for whoever knows what to look for."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("all of it is looked through")

    values = items = __iter__  # type: ignore[assignment]


def test_one_of_many_files_is_not_looked_for_among_all(homes: Path) -> None:
    disk, above = RemoteDisk(f"file://{homes}"), f"file:{homes}"
    (homes / "a").touch()
    disk.preload([above])
    disk._folders[above] = Unscanned(disk._folders[above])  # noqa: SLF001 - nowhere else can it be seen
    assert disk.is_file(f"{above}/a")
    assert disk.is_folder(f"{above}/ann")
    assert not disk.is_file(f"{above}/none")


def test_files_that_are_listed_make_folders_and_what_is_not_at_hand_is_wanted() -> None:
    disk = ListedDisk(
        {"s3a:/b/ann/x/one": ListedFile(3, 7_000_000, b"abc"), "s3a:/b/ann/x/two": ListedFile(5, 0)}
    )
    assert [entry.name for entry in disk.entries("s3a:/b/ann/x")] == ["one", "two"]
    assert disk.is_folder("s3a:/b/ann")
    assert disk.open("s3a:/b/ann/x/one").read(9) == b"abc"
    for missing in ("s3a:/b/ann/x/two", "s3a:/b/ann/.project_root"):
        with pytest.raises(FileNotFoundError):
            disk.open(missing)
    assert disk.missing == {"s3a:/b/ann/x/two", "s3a:/b/ann/.project_root"}
    with pytest.raises(IsADirectoryError):
        disk.open("s3a:/b/ann")
    with pytest.raises(FileNotFoundError):
        disk.entries("s3a:/b/eve")


def test_files_beside_a_session_go_where_it_goes(tmp_path: Path) -> None:
    native = "1234abcd-3b2d-4f68-9a01-5d2e8c4b6f13"
    chat = FORMS["gemini-lines"].write(tmp_path / "ann", int("1234abcd", 16), turns("heron"))
    moved = chat.parents[1] / "tool-outputs" / f"session-{native}" / "out.txt"
    transcript = FORMS["claude"].write(tmp_path / "ann", 7, turns("otter"))
    result = transcript.with_suffix("") / "tool-results" / "a.txt"
    for file in (moved, result, tmp_path / "ann" / ".gemini" / "settings.json"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    files = {
        str(path): ListedFile(path.stat().st_size, 0)
        for path in (tmp_path / "ann").rglob("*")
        if path.is_file()
    }
    sent = plan_shipments(plan_jobs([("ann", tmp_path / "ann")]).jobs, files, 1)
    assert sorted(sorted(one.paths) for one in sent) == sorted(
        [sorted([str(chat), str(moved)]), sorted([str(transcript), str(result)])]
    )


@pytest.mark.parametrize("form", sorted(FORMS))
def test_nothing_but_a_problem_comes_of_files_that_are_not_at_hand(form: str, tmp_path: Path) -> None:
    path = FORMS[form].write(tmp_path, 7, turns("heron"))
    disk = ListedDisk({str(path): ListedFile(1, 0)})
    home = AgentHome(tmp_path, tmp_path, disk=disk)
    assert isinstance(AGENTS[form.partition("-")[0]].read(Source(path, home)), Problem)
