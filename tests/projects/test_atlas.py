"""Which project a session belongs to, by every kind of evidence."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from retold.model.session import Project, Session
from retold.projects.resolver import MOST_PATHS, ancestors, common_folder, named_paths
from retold.synchronization.user_changes import save_roots
from support.dialogue_sessions import assistant, export_session
from support.dialogue_sessions import call as tool_call
from support.gemini_home import ROOT, GeminiHome, call, gemini, sha, user
from support.synced_archive import SyncedArchive, sync_archive

ASK = user("u1", 1, "How high is the tide?")


@pytest.fixture
def made(tmp_path: Path) -> GeminiHome:
    return GeminiHome(tmp_path / "ann")


def archive(made: GeminiHome) -> SyncedArchive:
    return sync_archive(made.folder / "retold", {"HOME": str(made.folder)})


def project(made: GeminiHome) -> Project:
    (session,) = archive(made).sessions()
    return session.project


def test_a_marker_is_a_record(made: GeminiHome) -> None:
    made.mark("almanac", ROOT)
    made.json("almanac", 1, 1, [ASK])
    assert project(made) == Project(ROOT, "almanac", sha(ROOT), "recorded")


def test_a_marker_in_the_history_folder_counts(made: GeminiHome) -> None:
    made.write("history/almanac/.project_root", ROOT)
    made.json("almanac", 1, 1, [ASK])
    assert project(made).evidence == "recorded"


def test_the_registry_names_the_root(made: GeminiHome) -> None:
    made.register({ROOT: "almanac"})
    made.json("almanac", 1, 1, [ASK])
    assert project(made) == Project(ROOT, "almanac", sha(ROOT), "registry")


def test_a_registry_key_proves_the_hash_of_an_older_folder(made: GeminiHome) -> None:
    made.register({ROOT: "almanac"})
    made.json(sha(ROOT), 1, 1, [ASK])
    assert project(made) == Project(ROOT, sha(ROOT), sha(ROOT), "hash")


def test_a_folder_above_a_path_in_an_argument_proves_the_hash(made: GeminiHome) -> None:
    deep = call("read_file", {"file_path": f"{ROOT}/src/tides/table.py"}, 2)
    made.json(sha(ROOT), 1, 1, [ASK, gemini("g1", 2, "", [deep])])
    assert project(made) == Project(ROOT, sha(ROOT), sha(ROOT), "hash")


def test_a_remembered_pair_proves_the_hash(made: GeminiHome) -> None:
    save_roots(archive(made).folder, {sha(ROOT): ROOT})
    made.json(sha(ROOT), 1, 1, [ASK])
    assert project(made) == Project(ROOT, sha(ROOT), sha(ROOT), "hash")


def test_a_pair_that_is_learnt_later_proves_the_hash(made: GeminiHome) -> None:
    made.json(sha(ROOT), 1, 1, [ASK])
    assert project(made).evidence == "none"
    save_roots(archive(made).folder, {sha(ROOT): ROOT})
    assert project(made) == Project(ROOT, sha(ROOT), sha(ROOT), "hash")


def test_what_one_session_proves_is_known_of_the_others(made: GeminiHome) -> None:
    deep = call("read_file", {"file_path": f"{ROOT}/src/tides/table.py"}, 2)
    made.json(sha(ROOT), 1, 1, [ASK])
    assert project(made).evidence == "none"
    made.json(sha(ROOT), 2, 1, [ASK, gemini("g1", 2, "", [deep])])
    assert {one.project for one in archive(made).sessions()} == {Project(ROOT, sha(ROOT), sha(ROOT), "hash")}


def test_the_context_of_the_session_proves_the_hash(made: GeminiHome) -> None:
    text = f"<session_context>\n- **Workspace Directories:**\n  - {ROOT}\n</session_context>"
    made.lines(sha(ROOT), 1, 1, [{**user("d04923d38bb0f6017037e74183378ef4", 1, text)}, ASK])
    assert project(made) == Project(ROOT, sha(ROOT), sha(ROOT), "hash")


def test_a_workspace_folder_proves_the_hash_or_is_a_guess(made: GeminiHome) -> None:
    made.json(sha(ROOT), 1, 1, [ASK], directories=["/elsewhere", ROOT])
    assert project(made) == Project(ROOT, sha(ROOT), sha(ROOT), "hash")


def test_a_workspace_folder_is_a_guess_where_no_hash_is_known(made: GeminiHome) -> None:
    made.json("almanac", 1, 1, [ASK], directories=["/elsewhere", 5], projectHash=None)
    assert project(made) == Project("/elsewhere", "almanac", None, "guessed")


def test_a_folder_with_another_hash_is_never_a_guess(made: GeminiHome) -> None:
    """The hash that the session recorded says that it is not the project's root."""
    calls = [call("read_file", {"file_path": f"/elsewhere/charts/{name}"}, 2) for name in ("a.svg", "b.svg")]
    made.json(sha(ROOT), 1, 1, [ASK, gemini("g1", 2, "", calls)], directories=["/elsewhere"])
    assert project(made) == Project(None, sha(ROOT), sha(ROOT), "none")


@pytest.mark.parametrize("told", [None, "", 5])
def test_a_folder_that_is_named_by_its_hash_has_no_guess(made: GeminiHome, told: object) -> None:
    """The session itself does not say the hash: the name of its project's folder does."""
    calls = [call("read_file", {"file_path": f"/elsewhere/charts/{name}"}, 2) for name in ("a.svg", "b.svg")]
    talk = [ASK, gemini("g1", 2, "", calls)]
    made.json(sha(ROOT), 1, 1, talk, directories=["/elsewhere"], projectHash=told)
    made.lines(sha(ROOT), 2, 2, talk, projectHash=told)
    nowhere = Project(None, sha(ROOT), sha(ROOT), "none")
    assert [one.project for one in archive(made).sessions()] == [nowhere, nowhere]


def test_the_common_folder_of_paths_is_a_guess_where_no_hash_is_known(made: GeminiHome) -> None:
    calls = [
        call("read_file", {"file_path": f"/elsewhere/charts/{name}"}, 2) for name in ("a.svg", "b/c.svg")
    ]
    made.json("almanac", 1, 1, [ASK, gemini("g1", 2, "", calls)], projectHash=None)
    assert project(made) == Project("/elsewhere/charts", "almanac", None, "guessed")


def test_the_folder_of_a_single_path_is_a_guess(made: GeminiHome) -> None:
    calls = [call("read_file", {"file_path": "/elsewhere/charts/a.svg"}, 2)]
    made.json("almanac", 1, 1, [ASK, gemini("g1", 2, "", calls)], projectHash=None)
    assert project(made) == Project("/elsewhere/charts", "almanac", None, "guessed")


@pytest.mark.parametrize("marker", ["GEMINI.md", ".gemini", "CLAUDE.md", "AGENTS.md", ".git"])
def test_a_guess_moves_up_to_the_agents_own_file(made: GeminiHome, tmp_path: Path, marker: str) -> None:
    root = tmp_path / "charts"
    (root / "bay" / "north").mkdir(parents=True)
    (root / marker).touch()
    calls = [
        call("read_file", {"file_path": str(root / "bay" / "north" / name)}, 2) for name in ("a.svg", "b.svg")
    ]
    made.json("almanac", 1, 1, [ASK, gemini("g1", 2, "", calls)], projectHash=None)
    assert project(made) == Project(str(root), "almanac", None, "guessed")


def test_nothing_known_is_said_so(made: GeminiHome) -> None:
    made.json(sha(ROOT), 1, 1, [ASK])
    assert project(made) == Project(None, sha(ROOT), sha(ROOT), "none")


def test_two_homes_may_use_one_name_for_two_projects(made: GeminiHome, tmp_path: Path) -> None:
    made.mark("almanac", ROOT)
    made.json("almanac", 1, 1, [ASK])
    other = GeminiHome(tmp_path / "bob")
    other.mark("almanac", "/home/bob/almanac")
    other.json("almanac", 2, 1, [ASK], root="/home/bob/almanac")
    both = sync_archive(tmp_path / "retold", {"HOME": str(made.folder)}, [("laptop", other.folder)])
    found = {session.project.root: session.sources[0].home for session in both.sessions()}
    assert found == {ROOT: None, "/home/bob/almanac": "laptop"}


def test_a_tree_from_windows(made: GeminiHome) -> None:
    root = r"C:\Users\Ann\dev\Almanac"
    made.register({root.lower(): "almanac"})
    made.mark("charts", r"c:\users\ann\dev\charts")
    made.json("almanac", 1, 1, [ASK], root=root)
    assert project(made) == Project(root.lower(), "almanac", sha(root), "registry")


@pytest.mark.parametrize(
    ("path", "folders"),
    [("/a/b/c", ["/a/b/c", "/a/b", "/a"]), (r"C:\a\b", [r"C:\a\b", r"C:\a"]), ("/", [])],
)
def test_every_folder_above_a_path_is_a_candidate(path: str, folders: list[str]) -> None:
    assert list(ancestors(path)) == folders


def test_the_common_folder_of_paths() -> None:
    assert common_folder(["/a/b/c/d.py", "/a/b/e.py"]) == "/a/b"
    assert common_folder(["/a/b.py", "/c/d.py"]) is None
    assert common_folder([]) is None


def test_the_text_of_a_written_file_is_no_path(made: GeminiHome) -> None:
    licence = "/* licence\n" + " * a/b" * 2_000 + "*/"
    calls = [call("write_file", {"file_path": "/elsewhere/a.c", "content": licence}, 2)]
    made.json("almanac", 1, 1, [ASK, gemini("g1", 2, "", calls)], projectHash=None)
    (session,) = archive(made).sessions()
    assert named_paths(session) == ["/elsewhere/a.c"]


@pytest.mark.parametrize("shape", ["/a" * 60, "/ab/" + "c/" * 40, "/x" + "y" * 200])
def test_the_work_on_paths_grows_no_faster_than_the_session(shape: str) -> None:
    """Characters of candidates are counted, not seconds: 1, 2 and 4 times as long a session."""
    counts = []
    for times in (1, 2, 4):
        arguments = {"one": shape * 20 * times, "many": [f"{shape}{number}" for number in range(10 * times)]}
        paths = named_paths(session_with_arguments(arguments))
        counts.append(sum(len(folder) for path in paths for folder in ancestors(path)))
    assert counts[1] <= 3 * counts[0]
    assert counts[2] <= 6 * counts[0]


def test_a_session_that_names_endless_paths_is_looked_at_up_to_a_bound() -> None:
    many = {"files": [f"/elsewhere/{number}" for number in range(MOST_PATHS + 500)]}
    assert len(named_paths(session_with_arguments(many))) == MOST_PATHS


def session_with_arguments(arguments: Mapping[str, object]) -> Session:
    return export_session(assistant(tool_call(arguments=arguments))).session
