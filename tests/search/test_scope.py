"""This folder, this project, everything."""

import pytest

from retold.search.listing import is_within, list_scopes

ROOTS = ("/home/ann/dev", "/home/ann/dev/almanac", "/home/ann/developer", None)


def told(here: str, *roots: str | None) -> list[tuple[str, str | None]]:
    return [(scope.name, scope.folder) for scope in list_scopes(roots or ROOTS, here)]


def test_in_a_project_its_folder_is_the_project() -> None:
    assert told("/home/ann/dev/almanac") == [("all", None), ("this project", "/home/ann/dev/almanac")]


def test_below_a_project_both_differ() -> None:
    here = "/home/ann/dev/almanac/src"
    assert told(here) == [("all", None), ("this project", "/home/ann/dev/almanac"), ("this folder", here)]


def test_outside_of_all_projects_there_is_the_folder() -> None:
    assert told("/srv") == [("all", None), ("this folder", "/srv")]


@pytest.mark.parametrize(
    ("path", "folder", "is_inside"),
    [
        ("/a/b", "/a/b", True),
        ("/a/b/c", "/a/b", True),
        ("/a/b/c", "/a/b/", True),
        ("/a/bc", "/a/b", False),
        ("/a", "/a/b", False),
        ("/a", "/", True),
    ],
)
def test_within(path: str, folder: str, *, is_inside: bool) -> None:
    assert is_within(path, folder) is is_inside
