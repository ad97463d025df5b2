"""Which words of a call are paths."""

from typing import Any

import pytest

from retold.model.session import Canonical, ToolCall, touched_paths


def named(canonical: Canonical, **arguments: Any) -> list[str]:
    return list(
        touched_paths(
            ToolCall("c", "t", canonical, "Other", arguments, "success", None, None, None, None, None)
        )
    )


@pytest.mark.parametrize(
    "path",
    [
        "/home/ann/Screenshot at 9.41.00\u202fAM.png",  # as macOS names pictures of the screen
        "C:\\Users\\ann\\Eigene\u00a0Dateien\\möwe.txt",
        "notes/\u200fשחף.md",
        "海鸥.txt",
    ],
)
def test_a_name_may_have_whatever_people_put_into_names(path: str) -> None:
    assert named("file_read", file_path=path) == [path]
    assert named("file_edit", input=f"*** Begin Patch\n*** Update File: {path}\n*** End Patch") == [path]


@pytest.mark.parametrize(
    "text", ["", "def gull():\n    pass", "half \ud83d", "\x1b[2Jgull", "gull\x9b", "x" * 1_001]
)
def test_what_is_no_name_is_none(text: str) -> None:
    assert named("file_read", file_path=text, paths=["gull.py", text]) == ["gull.py"]


def test_commands_name_files_too() -> None:
    assert named("shell_exec", command="pytest -q tests/test_gull.py > out.log") == [
        "tests/test_gull.py",
        "out.log",
    ]
