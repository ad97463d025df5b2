"""The seam to the file system: what the real disk answers, and that all that reads asks the disk it was given."""

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from retold.agents.protocol import AgentHome, Source
from retold.model.problem import Problem
from retold.reading.disk import DISK, Disk, FileBytes, LocalDisk, list_folder, read_bytes, time_from_ns
from retold.reading.jsonl import LineFile, open_lines
from support.disks import MemoryDisk, RecordingDisk, watch_paths


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file, a folder, and links to both."""
    (tmp_path / "file").write_bytes(b"one\ntwo\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "a link").symlink_to(tmp_path / "file")
    (tmp_path / "to folder").symlink_to(tmp_path / "folder")
    return tmp_path


def test_an_open_file_is_read_from_anywhere_and_tells_how_it_changes(folder: Path) -> None:
    path = folder / "file"
    os.utime(path, ns=(5, 5))
    file = DISK.open(str(path))
    assert (file.size, file.modified_ns) == file.status() == (8, 5)
    assert [file.read(5), file.read(5), file.read(5)] == [b"one\nt", b"wo\n", b""]
    file.seek(4)
    assert file.read(3) == b"two"
    with path.open("ab") as end:
        end.write(b"three\n")
    os.utime(path, ns=(7, 7))
    assert (file.size, file.modified_ns, file.status()) == (8, 5, (14, 7))
    file.close()


def test_the_identity_of_a_file_changes_with_its_content_and_its_inode(folder: Path) -> None:
    def identity(path: Path) -> str:
        file = DISK.open(str(path))
        file.close()
        return file.identity

    path, before = folder / "file", identity(folder / "file")
    status = path.stat()
    assert identity(path) == before == f"{status.st_ctime_ns} {status.st_ino}"
    shutil.copy2(path, folder / "copy")
    os.replace(folder / "copy", path)
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    assert identity(path) != before


def test_what_is_no_regular_file_is_not_opened(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    for name in ("folder", "to folder", "pipe"):
        with pytest.raises(IsADirectoryError):
            DISK.open(str(folder / name))
    with pytest.raises(FileNotFoundError):
        DISK.open(str(folder / "none"))
    with pytest.raises(ValueError, match="null"):
        DISK.open(str(folder / "\0"))


def kinds(disk: Disk, folder: Path) -> list[tuple[str, str, bool, bool]]:
    return [
        (entry.name, entry.path, entry.is_file(follow_symlinks=False), entry.is_dir(follow_symlinks=False))
        for entry in disk.entries(str(folder))
    ]


def test_a_folder_is_listed_by_name_and_no_link_is_taken_for_what_it_leads_to(folder: Path) -> None:
    assert kinds(DISK, folder) == [
        ("a link", str(folder / "a link"), False, False),
        ("file", str(folder / "file"), True, False),
        ("folder", str(folder / "folder"), False, True),
        ("to folder", str(folder / "to folder"), False, False),
    ]
    with pytest.raises(NotADirectoryError):
        DISK.entries(str(folder / "file"))


def looks(disk: Disk, path: Path) -> tuple[bool, bool, bool]:
    return disk.is_file(str(path)), disk.is_folder(str(path)), disk.is_link(str(path))


def test_a_look_follows_links_and_tells_them(folder: Path) -> None:
    assert looks(DISK, folder / "file") == (True, False, False)
    assert looks(DISK, folder / "folder") == (False, True, False)
    assert looks(DISK, folder / "a link") == (True, False, True)
    assert looks(DISK, folder / "to folder") == (False, True, True)
    assert looks(DISK, folder / "none") == looks(DISK, folder / "\0") == (False, False, False)


def test_there_is_one_real_disk() -> None:
    assert LocalDisk() == DISK
    assert hash(LocalDisk()) == hash(DISK)


def test_a_source_is_read_where_its_home_is(folder: Path) -> None:
    memory = MemoryDisk.of(folder)
    assert Source(folder / "file").disk is DISK
    assert Source(folder / "file", AgentHome(folder, folder)).disk is DISK
    assert Source(folder / "file", AgentHome(folder, folder, disk=memory)).disk is memory


def test_files_lines_and_folders_are_read_from_the_disk_that_is_given(folder: Path) -> None:
    memory = MemoryDisk.of(folder)
    disk = RecordingDisk(memory)
    expected = read_bytes(folder / "file")
    for path in (folder / "file", folder / "a link", folder / "to folder"):
        path.unlink()
    with watch_paths(folder) as touched:
        assert read_bytes(folder / "file", disk) == expected
        lines = open_lines(folder / "file", disk=disk)
        assert isinstance(lines, LineFile)
        with lines:
            assert [bytes(raw) for _, raw, _ in lines.pieces()] == [b"one", b"two"]
        assert list(list_folder(folder, disk)) == memory.entries(str(folder))
        assert list(list_folder(folder / "none", disk)) == []
        refused = read_bytes(folder / "folder", disk)
        assert isinstance(refused, Problem)
        assert refused.code == "not-a-file"
    assert touched == set()
    assert disk.asked == {
        ("open", str(folder / "file")),
        ("open", str(folder / "folder")),
        ("entries", str(folder)),
        ("entries", str(folder / "none")),
    }


def test_what_nobody_may_list_is_told(folder: Path) -> None:
    class Refusing(RecordingDisk):
        def entries(self, folder: str) -> list[os.DirEntry[str]]:
            raise PermissionError(13, "Permission denied", folder)

    (told,) = list_folder(folder, Refusing(DISK))
    assert isinstance(told, Problem)
    assert (told.code, told.message) == ("unreadable-file", "Permission denied")


@pytest.mark.parametrize(
    ("modified_ns", "expected"),
    [
        (1_772_355_900_123_999_999, datetime(2026, 3, 1, 9, 5, 0, 123_000, UTC)),
        (-1, datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC)),
        (10**30, datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_times_are_told_to_the_millisecond(modified_ns: int, expected: datetime) -> None:
    assert time_from_ns(modified_ns) == expected


def test_the_time_of_a_file_is_that_of_the_disk(folder: Path) -> None:
    os.utime(folder / "file", ns=(0, 1_772_355_900_123_456_789))
    file = read_bytes(folder / "file")
    assert isinstance(file, FileBytes)
    assert file.modified_at == datetime(2026, 3, 1, 9, 5, 0, 123_000, UTC)
