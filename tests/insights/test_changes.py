"""Files that were changed, how often, and by how much."""

from retold.insights.changes import FileChange
from retold.insights.digest import collect_insights
from retold.model.session import DiffDisplay, Entry, ToolCall
from support.dialogue_sessions import assistant, call, user

PATCH = """*** Begin Patch
*** Update File: tides.py
@@
-old
+new
+newer
*** Add File: moon.py
+one
*** End Patch
"""


def edit(path: str, **more: object) -> ToolCall:
    told = {"name": "replace", "canonical": "file_edit", "category": "Edit"}
    return call(**{**told, "arguments": {"file_path": path, "old_string": "a\nb", "new_string": "c"}, **more})


def counted(*entries: Entry) -> dict[str, tuple[int, int | None, int | None]]:
    return {one.path: (one.edits, one.added, one.removed) for one in collect_insights(entries).changes}


def test_edits_are_counted_the_most_first() -> None:
    found = collect_insights(
        [user("Go"), assistant(edit("moon.py"), edit("tides.py")), user("On"), assistant(edit("tides.py"))]
    ).changes
    assert [(one.path, one.edits, one.added, one.removed) for one in found] == [
        ("tides.py", 2, 2, 4),
        ("moon.py", 1, 1, 2),
    ]
    assert isinstance(found[0], FileChange)
    assert (found[0].first.turn, found[0].last.turn, found[0].last.seq) == (1, 2, 3)


def test_what_was_shown_says_more_than_the_arguments() -> None:
    shown = DiffDisplay("tides.py", "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n+z\n", None, None)
    assert counted(assistant(edit("tides.py", display=shown))) == {"tides.py": (1, 2, 1)}


def test_a_patch_changes_several_files_also_in_a_shell() -> None:
    expected = {"tides.py": (1, 2, 1), "moon.py": (1, 1, 0)}
    patch = edit("", name="apply_patch", arguments={"input": PATCH})
    assert counted(assistant(patch)) == expected
    words = {"command": ["apply_patch", PATCH]}
    assert counted(assistant(edit("", name="shell", canonical="shell_exec", arguments=words))) == expected


def test_a_new_file_has_the_lines_that_were_written() -> None:
    new = DiffDisplay("moon.py", None, None, "one\ntwo\n", is_new=True)
    write = {
        "name": "write_file",
        "canonical": "file_write",
        "arguments": {"file_path": "moon.py", "content": "one\ntwo\n"},
    }
    assert counted(assistant(call(**write, display=new))) == {"moon.py": (1, 2, 0)}
    assert counted(assistant(call(**write))) == {"moon.py": (1, None, None)}


def test_what_failed_was_looked_at_or_taken_back_changed_nothing() -> None:
    assert (
        counted(assistant(edit("a", status="error")), assistant(call()), assistant(edit("a"), fate="rewound"))
        == {}
    )
