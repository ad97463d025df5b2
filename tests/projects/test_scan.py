"""The search for roots behind hashes, and what is kept of it."""

import os
import stat
from pathlib import Path

import pytest

from retold.archive.database import DamagedError
from retold.archive.store import ARCHIVE_NAME, Store
from retold.projects.matching import matches_project, name_rank
from retold.projects.scan import find_roots
from retold.synchronization.user_changes import save_roots
from support.gemini_home import sha


def test_roots_are_found_in_development_folders(tmp_path: Path) -> None:
    root = tmp_path / "dev" / "sea" / "almanac"
    root.mkdir(parents=True)
    found, is_done = find_roots(tmp_path, [sha(str(root)), "0" * 64], lambda _: None)
    assert (found, is_done) == ({sha(str(root)): str(root)}, True)


def test_dependencies_version_control_and_links_are_left_out(tmp_path: Path) -> None:
    hidden = [tmp_path / "dev" / name / "almanac" for name in ("node_modules", ".git", "venv")]
    for folder in hidden:
        folder.mkdir(parents=True)
    (tmp_path / "dev" / "loop").symlink_to(tmp_path)
    found, is_done = find_roots(tmp_path, [sha(str(folder)) for folder in hidden], lambda _: None)
    assert (found, is_done) == ({}, True)


def test_the_walk_goes_four_folders_deep(tmp_path: Path) -> None:
    deep = tmp_path / "one" / "two" / "three" / "four"
    (deep / "five").mkdir(parents=True)
    found, _ = find_roots(tmp_path, [sha(str(deep)), sha(str(deep / "five"))], lambda _: None)
    assert list(found.values()) == [str(deep)]


def test_the_walk_ends_in_time(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"folder{number}").mkdir()
    told: list[int] = []
    assert find_roots(tmp_path, ["0" * 64], told.append, seconds=-1) == ({}, False)
    assert told == [0]


def kept(folder: Path) -> dict[str, str]:
    with Store(str(folder)) as record:
        return dict(record.rows("SELECT hash, root FROM roots"))


def test_what_was_found_is_kept_for_its_owner_only(tmp_path: Path) -> None:
    home = tmp_path / "retold"
    save_roots(str(home), {"a": "/one"})
    save_roots(str(home), {"b": "/two"})
    assert kept(home) == {"a": "/one", "b": "/two"}
    if os.name == "posix":
        assert {stat.S_IMODE(file.stat().st_mode) for file in home.iterdir()} == {0o600}
        assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_a_damaged_archive_is_told_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / ARCHIVE_NAME).write_text('{"a": ')
    with pytest.raises(DamagedError):
        save_roots(str(tmp_path), {"a": "/one"})
    assert (tmp_path / ARCHIVE_NAME).read_text() == '{"a": '


def test_a_filter_means_a_project_by_path_hash_or_name() -> None:
    root, project_hash = "/home/ann/dev/Almanac", "abcdef0123" * 6 + "abcd"
    assert all(
        matches_project(root, "almanac", project_hash, text)
        for text in (root, "abcdef01", project_hash, "ALMA", "nac")
    )
    assert not any(
        matches_project(root, "almanac", project_hash, text)
        for text in ("ann", "abcdef0", "/home/ann", "almanac-x")
    )
    assert matches_project(None, "x9", None, "x9")


def test_a_name_is_found_by_its_letters() -> None:
    assert [name_rank("almanac", text) for text in ("alm", "MAN", "amc", "cma")] == [0, 1, 2, None]
