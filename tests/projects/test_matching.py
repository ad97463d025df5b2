"""Projects by what a person types: a path in any form, a hash, or a part of the name."""

from pathlib import Path

import pytest

from retold.model.session import root_hash
from retold.projects.matching import matches_project, name_rank
from support.gemini_home import GeminiHome, gemini, sha, user
from support.person import Person


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "dev" / "almanac"
    (folder / "src").mkdir(parents=True)
    (tmp_path / "dev" / "link").symlink_to(folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


@pytest.mark.parametrize(
    "typed", [".", "./", "./.", "../almanac", "src/..", "~/dev/almanac", "../link", "/{}/", "/{}"]
)
def test_a_path_in_any_form_means_its_folder(folder: Path, typed: str) -> None:
    typed = typed.format(str(folder).lstrip("/"))
    assert matches_project(str(folder), None, None, typed)
    assert matches_project(None, "a-slug", root_hash(str(folder)), typed)
    assert not matches_project(f"{folder}s", None, None, typed)
    assert not matches_project(None, "a-slug", root_hash(f"{folder}s"), typed)


def test_a_part_of_a_name_is_no_path() -> None:
    assert matches_project("/elsewhere/my-almanac", None, None, "almanac")
    assert matches_project("/elsewhere/v1.2", None, None, "1.2")
    assert not matches_project("/elsewhere/charts", None, None, "almanac")


@pytest.mark.parametrize("name", ["caf\u00e9", "cafe\u0301", "CAFE\u0301", "\uff43\uff41\uff46\u00c9"])
@pytest.mark.parametrize("typed", ["caf\u00e9", "cafe\u0301", "F\u00c9", "\uff43\uff41\uff46\u00e9"])
def test_a_name_is_known_in_every_form_of_unicode(name: str, typed: str) -> None:
    """macOS spells the names of folders in another form than a keyboard does."""
    assert matches_project(f"/elsewhere/{name}", None, None, typed)
    assert name_rank(name, typed) is not None
    assert not matches_project("/elsewhere/cafeteria", None, None, typed)


@pytest.mark.parametrize("typed", [".", "{}"])
def test_sessions_of_a_folder_whose_hash_alone_is_archived_are_listed(
    tmp_path: Path, folder: Path, typed: str
) -> None:
    person = Person(tmp_path / "ann")
    home = GeminiHome(person.folder)
    talk = [user("u1", 1, "How high is the tide?"), gemini("g1", 2, "High.")]
    home.json(sha(str(folder)), 1, 1, talk, root=str(folder))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    person.spawn("sync", cwd=elsewhere)
    done = person.spawn("list", "--json", "--project", typed.format(folder), cwd=folder)
    assert (done.code, len(done.objects)) == (0, 1), done


@pytest.mark.parametrize(
    "typed", ["C:\\dev\\Almanac", "C:\\dev\\Almanac\\", "C:/dev/Almanac", "C:\\dev\\src\\..\\Almanac"]
)
@pytest.mark.parametrize("root", ["C:\\dev\\Almanac", "c:\\dev\\almanac"])
def test_a_windows_path_of_another_machine_is_compared_as_it_is_and_in_small_letters(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, typed: str, root: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert matches_project(None, "a-slug", root_hash(root), typed)
    assert matches_project(root, None, None, typed)
    assert not matches_project(None, "a-slug", root_hash(f"{root}s"), typed)
