"""`recent_work`: the newest conversations, each in a few lines."""

from collections.abc import Iterator

import pytest
from syrupy.assertion import SnapshotAssertion

from support.gemini_home import ROOT, GeminiHome, call, gemini, user
from support.mcp_client import McpClient, connect, connect_person


@pytest.fixture(scope="module")
def ann(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpClient]:
    home = GeminiHome(tmp_path_factory.mktemp("recent") / "ann")
    home.mark("almanac", ROOT)
    made = call("write_file", {"file_path": f"{ROOT}/moon.py", "content": "x"}, 2)
    failed = call("run_shell_command", {"command": "make"}, 2, status="error")
    home.json(
        "almanac",
        1,
        0,
        [
            user("a1", 0, "Draw the moon\n\nas it is tonight"),
            gemini("a2", 1, "I shall.", [made, failed]),
            user("a3", 2, "Is it done?"),
            gemini("a4", 3, "Done.\n\nThe moon is drawn.\nNothing is left.\n- one\n- two\n- three"),
            gemini("a5", 4, "", [call("run_shell_command", {"command": "git push"}, 4)]),
        ],
    )
    for number in range(2, 30):
        home.json("almanac", number, number, [user(f"u{number}", number, f"Question {number}?")])
    with connect(home.folder) as found:
        yield found


def test_a_conversation_comes_to_a_few_lines(ann: McpClient, snapshot: SnapshotAssertion) -> None:
    pages = ann.pages("recent_work", budget=20_000)
    assert pages[-1].body.split("\n\n")[-1] == snapshot


def test_pages_tell_of_every_conversation_once_the_newest_first(ann: McpClient) -> None:
    pages = ann.pages("recent_work", budget=500)
    assert len(pages) > 3
    heads = [line for page in pages for line in page.body.split("\n") if line.startswith("gemini:")]
    assert [head.split(" · ")[0][-2:] for head in heads] == [f"{number:02x}" for number in range(29, 0, -1)]


def test_filters_narrow_it_down(ann: McpClient) -> None:
    for filters in ({"agent": "codex"}, {"until": "2026-01-01"}, {"project": "tide-clock"}):
        assert ann.ask("recent_work", **filters).text.startswith(
            "There are no such conversations within reach."
        )
    assert "Question 29?" in ann.ask("recent_work", project="alman", since="2026-03-01").quotes


def test_subagents_are_counted_and_not_listed_apart(demo_env: dict[str, str]) -> None:
    with connect_person(demo_env["RETOLD_HOME"], is_all=True) as mira:
        told = "\n".join(page.body for page in mira.pages("recent_work", budget=20_000))
    heads = [
        line.split(" · ")[0] for line in told.split("\n") if line.startswith(("gemini:", "claude:", "codex:"))
    ]
    assert heads
    assert not any("/" in head for head in heads if head.startswith("claude:"))
    assert " · 2 subagents" in told
