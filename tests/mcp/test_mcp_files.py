"""`file_history`: which conversations changed a file, and how."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.gemini_home import ROOT, GeminiHome, call, gemini, user
from support.mcp_client import McpClient, connect

FIRST, SECOND, THIRD = (
    f"gemini:session-2026-03-01T09-{minute:02}-0000000{number}"
    for number, minute in ((1, 0), (2, 10), (3, 20))
)


def edit(path: str, old: str, new: str, minute: int, **more: object) -> dict[str, object]:
    return call("replace", {"file_path": path, "old_string": old, "new_string": new}, minute, **more)


@pytest.fixture(scope="module")
def ann(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpClient]:
    """Three conversations, which name one file in three ways, and others that are called alike."""
    home = GeminiHome(tmp_path_factory.mktemp("files") / "ann")
    home.mark("almanac", ROOT)
    written = call("write_file", {"file_path": f"{ROOT}/src/moon.py", "content": "PHASES = 4\n"}, 1)
    home.json("almanac", 1, 0, [user("a1", 0, "Begin"), gemini("a2", 1, "Begun.", [written])])
    first, second = edit("src/moon.py", "PHASES = 4", "PHASES = 8", 12), edit("./src/moon.py", "8", "29", 14)
    home.json(
        "almanac",
        2,
        10,
        [
            user("b1", 10, "More phases"),
            gemini("b2", 11, "Eight.", [first]),
            user("b3", 13, "More"),
            gemini("b4", 14, "One a day.", [second, edit("lib/moon.py", "x", "y", 14)]),
        ],
    )
    failed = edit(f"{ROOT}/src/moon.py", "absent", "nothing", 22, status="error")
    other = edit(f"{ROOT}/vendor/src/moon.py", "", "high", 23)
    read = call("read_file", {"file_path": f"{ROOT}/src/sun.py"}, 24)
    home.json(
        "almanac", 3, 20, [user("c1", 20, "Again"), gemini("c2", 21, "It failed.", [failed, other, read])]
    )
    with connect(home.folder) as found:
        yield found


@pytest.mark.parametrize(
    "path", [f"{ROOT}/src/moon.py", "src/moon.py", "./src/moon.py", "src\\moon.py", "almanac/src/moon.py"]
)
def test_a_file_is_known_by_any_of_its_paths(ann: McpClient, path: str) -> None:
    told = ann.ask("file_history", path=path)
    heads = [line for line in told.body.split("\n") if line and not line.startswith(">")]
    assert [head.split(" · ")[0] for head in heads] == [THIRD, SECOND, FIRST]
    assert all(head.endswith(" · almanac/src/moon.py") for head in heads)


def test_edits_are_told_with_their_turns_tools_and_diffs(ann: McpClient) -> None:
    told = ann.ask("file_history", path="src/moon.py").quotes
    assert told == (
        "turn 1, replace (error), 2026-03-01 09:22 UTC\n@@ -1 +1 @@\n-absent\n+nothing\n"
        "turn 1, replace, 2026-03-01 09:12 UTC\n@@ -1 +1 @@\n-PHASES = 4\n+PHASES = 8\n\n"
        "turn 2, replace, 2026-03-01 09:14 UTC\n@@ -1 +1 @@\n-8\n+29\n"
        "turn 1, write_file, 2026-03-01 09:01 UTC\n@@ -0,0 +1 @@\n+PHASES = 4"
    )


def test_of_several_files_it_is_told_which_are_meant(ann: McpClient) -> None:
    told = ann.ask("file_history", path="moon.py")
    assert told.quotes.split("\n") == [
        "almanac/src/moon.py: 4 changes in 3 conversations, last 2026-03-01 09:25 UTC",
        "almanac/lib/moon.py: 1 change in 1 conversation, last 2026-03-01 09:15 UTC",
        "almanac/vendor/src/moon.py: 1 change in 1 conversation, last 2026-03-01 09:25 UTC",
    ]
    for line in told.quotes.split("\n"):
        path = line.partition(":")[0]
        assert f" · {path}\n" in ann.ask("file_history", path=path).body


@pytest.mark.parametrize(
    "path", ["sun.py", "oon.py", "moon", "nothing.py", "/", ".", "'; --", "%", "_oon.py", "m\x00"]
)
def test_what_no_conversation_changed_is_not_found(ann: McpClient, path: str) -> None:
    told = ann.ask("file_history", path=path)
    assert not told.is_error
    assert told.text.startswith("No conversation within reach changed such a file.")


def test_times_narrow_it_down(ann: McpClient) -> None:
    assert ann.ask("file_history", path="src/moon.py", until="2026-02-01").text.startswith("No conversation")
    assert ann.ask("file_history", path="src/moon.py", since="never").is_error


def test_pages_hold_every_change_once(ann: McpClient) -> None:
    whole = ann.ask("file_history", path="src/moon.py").quotes
    pages = ann.pages("file_history", path="src/moon.py", budget=300)
    assert len(pages) > 1
    assert "\n".join(page.quotes for page in pages) == whole


def test_of_very_many_edits_the_rest_is_counted(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = GeminiHome(tmp_path_factory.mktemp("many") / "ann")
    home.mark("almanac", ROOT)
    calls = [{**edit("a.py", f"o{number}", f"n{number}", 1), "id": f"e{number}"} for number in range(45)]
    home.json("almanac", 1, 0, [user("a1", 0, "Begin"), gemini("a2", 1, "Done.", calls)])
    with connect(home.folder) as ann:
        told = ann.ask("file_history", path="a.py", budget=20_000).quotes
    assert told.count("@@") == 80
    assert told.endswith("5 more changes: read_session with tools `full` tells them")


def test_paths_that_are_told_can_be_asked_for(tmp_path: Path) -> None:
    """Even where the name of a user, which is not told, stands in them."""
    home = GeminiHome(tmp_path / "annika")
    root = "/home/annika"
    home.mark("almanac", root)
    for number, part in enumerate(("a", "b"), 1):
        edit = call("write_file", {"file_path": f"{root}/{part}/x/main.py", "content": part}, number)
        home.json(
            "almanac",
            number,
            number,
            [user(f"u{number}", number, "Write it"), gemini(f"g{number}", number, "", [edit])],
            root=root,
        )
    with connect(home.folder, is_all=True) as found:
        told = found.ask("file_history", path="main.py").quotes.splitlines()
        assert len(told) == 2
        for line in told:
            assert "write_file" in found.ask("file_history", path=line.partition(":")[0]).body
