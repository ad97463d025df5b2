"""How far somebody who asks may see: which folder is the project, and which conversations are its own."""

from hashlib import sha256
from pathlib import Path

import apsw
import pytest

from retold.archive.queries.listing import join_conditions
from retold.search.access import EVERYTHING, AccessScope, resolve_project_scope

HOME = "/home/ann"


def folder(reach: AccessScope) -> str:
    (found,) = reach.folders
    return found


@pytest.mark.parametrize(
    ("here", "roots", "found"),
    [
        ("/home/ann/code/app", [], "/home/ann/code/app"),
        ("/home/ann/code/app/src", ["/home/ann/code/app"], "/home/ann/code/app"),
        ("/home/ann/code/app/src", ["/home/ann/code/app/", None], "/home/ann/code/app"),
        ("/home/ann/code/app/src", ["/home/ann/code", "/home/ann/code/app"], "/home/ann/code/app"),
        ("/home/ann/code/app", ["/home/ann/code/app/src", "/home/ann/co"], "/home/ann/code/app"),
        ("/home/ann/code/app", ["/home/ann", "/home", "/"], "/home/ann/code/app"),
        ("/srv/app/src", ["/srv/app"], "/srv/app"),
        ("/srv/app/src", ["/"], "/srv/app/src"),
    ],
)
def test_the_nearest_project_is_meant_and_home_is_none(
    here: str, roots: list[str | None], found: str
) -> None:
    reach = resolve_project_scope(roots, here, HOME)
    assert folder(reach) == found
    assert reach.is_recursive


def test_a_repository_is_a_project_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "app" / ".git").mkdir(parents=True)
    here = tmp_path / "app" / "src" / "inner"
    here.mkdir(parents=True)
    reach = resolve_project_scope([str(here), str(tmp_path)], str(here), str(tmp_path))
    assert folder(reach) == str(tmp_path / "app")


@pytest.mark.parametrize("here", [HOME, "/home", "/"])
def test_at_home_only_what_took_place_there_is_seen(here: str) -> None:
    reach = resolve_project_scope(["/home/ann/code/app", HOME], here, HOME)
    assert reach == AccessScope((here,), is_recursive=False)


def test_a_repository_at_home_does_not_open_everything(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "notes").mkdir()
    assert folder(resolve_project_scope([], str(tmp_path / "notes"), str(tmp_path))) == str(
        tmp_path / "notes"
    )
    assert not resolve_project_scope([], str(tmp_path), str(tmp_path)).is_recursive


def test_a_home_behind_a_link_is_home_as_well(tmp_path: Path) -> None:
    (tmp_path / "var" / "ann" / "dev").mkdir(parents=True)
    (tmp_path / "home").symlink_to(tmp_path / "var")
    home, here = str(tmp_path / "home" / "ann"), str(tmp_path / "var" / "ann")
    assert not resolve_project_scope([], here, home).is_recursive
    assert folder(resolve_project_scope([here], f"{here}/dev", home)) == f"{here}/dev"


def test_a_folder_is_meant_by_both_its_names(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    reach = resolve_project_scope([], str(tmp_path / "real"), HOME, str(tmp_path / "link"))
    assert reach.folders == (str(tmp_path / "real"), str(tmp_path / "link"))
    elsewhere = resolve_project_scope([], str(tmp_path / "real"), HOME, "/somewhere/else")
    assert elsewhere.folders == (str(tmp_path / "real"),)


APP = "/home/ann/code/app"
PLACES = {
    "in it": (APP, None),
    "below it": (f"{APP}/src", None),
    "by its hash": (None, sha256(APP.encode()).hexdigest()),
    "beside it": (f"{APP}-old", None),
    "above it": ("/home/ann/code", None),
    "elsewhere": ("/srv/app", None),
    "elsewhere, by a hash": (None, sha256(b"/srv/app").hexdigest()),
    "elsewhere, and called by its hash": ("/srv/app", sha256(APP.encode()).hexdigest()),
    "nowhere": (None, None),
}


def seen(reach: AccessScope) -> set[str]:
    """Which of all places a reach sees."""
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE sessions (name, root, hash)")
    rows = [(name, root, project_hash) for name, (root, project_hash) in PLACES.items()]
    connection.executemany("INSERT INTO sessions VALUES (?, ?, ?)", rows)
    which, values = join_conditions(reach.conditions())
    return {name for (name,) in connection.execute(f"SELECT name FROM sessions WHERE {which}", values)}  # noqa: S608


def test_a_project_is_seen_with_what_is_below_and_nothing_else() -> None:
    assert seen(AccessScope((APP,))) == {"in it", "below it", "by its hash"}
    assert seen(AccessScope(("/nowhere", APP))) == {"in it", "below it", "by its hash"}


def test_a_shallow_reach_sees_the_folder_alone() -> None:
    assert seen(AccessScope((APP,), is_recursive=False)) == {"in it", "by its hash"}
    assert seen(AccessScope((f"{APP}/",), is_recursive=False)) == {"in it", "by its hash"}


def test_everything_is_seen_where_nothing_is_said() -> None:
    assert seen(EVERYTHING) == set(PLACES)
