"""What failed, and what mended it."""

import pytest

from retold.insights.commands import parse_runs, repairs
from retold.insights.digest import collect_insights
from retold.insights.failures import CallFailure
from retold.model.session import Entry, Event, Text, ToolCall
from support.dialogue_sessions import assistant, call, user


def shell(command: object, code: int | None = None, output: str = "", **more: object) -> ToolCall:
    """A command, as an agent runs it whose tool does not mind what a command says."""
    told = {"name": "run_shell_command", "canonical": "shell_exec", "category": "Execute", "result": output}
    return call(**{**told, "arguments": {"command": command}, "exit_code": code, **more})


def edit(path: str) -> ToolCall:
    arguments = {"file_path": path, "old_string": "a", "new_string": "b"}
    return call(name="replace", canonical="file_edit", category="Edit", arguments=arguments)


def only(*entries: Entry) -> CallFailure:
    (failure,) = collect_insights(entries).failures
    return failure


def test_a_failure_is_mended_by_the_same_command_and_what_was_changed_between() -> None:
    failure = only(
        user("Why is the tide late?"),
        assistant(
            Text("I will run the tests."), shell("pytest -q", 1, "Output: E   KeyError: 'zone'\nExit Code: 1")
        ),
        assistant(Text("The zone is missing."), edit("tides.py")),
        assistant(shell("uv sync", 0), shell("ls", 0)),
        assistant(shell("pytest -q", 0, "3 passed")),
        assistant(Text("The zone is given now. All pass.")),
    )
    assert (failure.place.seq, failure.place.turn) == (1, 1)
    assert (failure.tool, failure.target, failure.exit_code) == ("run_shell_command", "pytest -q", 1)
    assert failure.error == "E KeyError: 'zone'"
    assert failure.fix is not None
    assert (failure.fix.place.seq, failure.fix.target) == (4, "pytest -q")
    assert (failure.fix.files, failure.fix.commands) == (("tides.py",), ("uv sync",))
    assert failure.fix.before == "The zone is missing."
    assert failure.fix.after == "The zone is given now. All pass."
    assert not failure.is_open


def test_what_never_works_again_is_open() -> None:
    failure = only(
        user("Go"), assistant(shell("make", 2, "make: *** No rule")), assistant(shell("make clean", 0))
    )
    assert failure.fix is None
    assert failure.is_open


@pytest.mark.parametrize(
    ("failed", "done"),
    [
        ("pytest -q tests/test_tides.py", "pytest"),
        ("pytest tests/test_tides.py::test_high", ".venv/bin/python -m pytest -x tests/"),
        ("pytest --count 40 tests/a.py", "pytest --count 300 tests/a.py"),
        ("cd app && pytest tests/a.py 2>&1 | tail -5", "make migrate && pytest tests/a.py"),
        ("python build.py", "uv add pillow && uv run python build.py"),
        ("go test ./tides", "go test ./..."),
        ("npm test", "CI=1 npm test"),
        ("python - <<'E'\nmake()\nE", "python - <<'E'\nmake()\nE"),
        ("git commit -F - <<'E'\nmake; x\nE", "git commit -F - <<'E'\nmade\nE"),
        ("sudo certbot renew --dry-run", "install -d /var/www && certbot renew"),
        (["bash", "-lc", "cargo test"], "cargo test"),
        ("echo 'half a quote && make", "echo 'half a quote && make"),
    ],
)
def test_commands_that_make_another_good(failed: object, done: str) -> None:
    assert only(assistant(shell(failed, 1, "error")), assistant(shell(done, 0))).fix is not None


@pytest.mark.parametrize(
    ("failed", "done"),
    [
        ("pytest", "pytest tests/a.py"),
        ("pytest tests/a.py", "pytest tests/ab.py"),
        ("git push origin main", "git status"),
        ("npm test", "npm install"),
        ("python a.py", "python b.py"),
        ("python -m build && twine check dist/*", "python -m build"),
        ("make test", "echo make test"),
        ("rsync photos box:", "rsync"),
        ("python - <<'E'\nmake()\nE", "python - <<'E'\nprint(1)\nE"),
        ("git commit -F - <<'E'\nmake\nE", "make"),
    ],
)
def test_commands_that_do_not(failed: str, done: str) -> None:
    assert only(assistant(shell(failed, 1, "error")), assistant(shell(done, 0))).fix is None


def test_no_is_an_answer_and_no_failure() -> None:
    answers = [assistant(shell("grep -r tide .", 1), shell("cd x && test -f y", 1))]
    assert collect_insights(answers).failures == ()
    assert only(assistant(shell("grep -r tide .", 2, "grep: .: Permission denied"))).error.endswith("denied")


def test_a_file_that_could_not_be_changed_is_made_good_by_writing_it() -> None:
    failed = call(
        name="replace",
        canonical="file_edit",
        category="Edit",
        arguments={"file_path": "tides.py"},
        status="error",
        error="0 occurrences found",
    )
    write = call(
        name="write_file",
        canonical="file_write",
        category="Edit",
        arguments={"file_path": "tides.py", "content": "x"},
    )
    assert only(assistant(failed), assistant(edit("moon.py"))).fix is None
    fixed = only(assistant(failed), assistant(edit("moon.py")), assistant(write))
    assert fixed.fix is not None
    assert fixed.fix.files == ("moon.py", "tides.py")


def test_a_command_that_still_runs_has_not_worked() -> None:
    failed = shell("go test", 1, "FAIL tides")
    running = shell("go test", None, "Chunk ID: 1\nProcess running with session ID 7\nOutput:\n")
    ended = shell("", 0, "ok tides", name="write_stdin", arguments={"session_id": 7, "chars": ""})
    assert only(assistant(failed), assistant(running)).is_open
    fix = only(assistant(failed), assistant(running), assistant(ended)).fix
    assert fix is not None
    assert (fix.place.seq, fix.target) == (2, "go test")


def test_looking_in_vain_leaves_nothing_open() -> None:
    failed = only(assistant(call(status="error", error="File not found: a")))
    assert (failed.error, failed.fix, failed.is_open) == ("File not found: a", None, False)
    assert not only(assistant(shell("ls nowhere", 2, "ls: nowhere: No such file"))).is_open


def test_what_was_taken_back_did_fail_but_mends_nothing() -> None:
    failed = only(
        assistant(shell("make", 2, "error"), fate="rewound"), assistant(shell("make", 0), fate="rewound")
    )
    assert (failed.fate, failed.fix, failed.is_open) == ("rewound", None, False)
    again = only(assistant(shell("make", 2, "error"), fate="rewound"), assistant(shell("make", 0)))
    assert again.fix is not None


def test_what_was_compacted_counts_and_copies_do_not() -> None:
    assert only(assistant(shell("make", 2, "error"), fate="compacted")).is_open
    assert (
        collect_insights(
            [assistant(shell("make", 2), own=False), assistant(shell("make", 2), fate="superseded")]
        ).failures
        == ()
    )


def test_words_about_a_fix_are_said_before_somebody_asks_for_more() -> None:
    entries = [
        assistant(shell("make", 2, "error")),
        assistant(shell("make", 0)),
        user("Next?"),
        assistant(Text("Yes.")),
    ]
    fix = collect_insights(entries).failures[0].fix
    assert fix is not None
    assert (fix.before, fix.after) == (None, None)


def test_an_error_of_the_agent_is_told_and_is_nothing_to_be_mended() -> None:
    failed = only(user("Go"), Event(None, "error", None, "live", "[API Error: overloaded]"))
    assert (failed.tool, failed.error, failed.is_open) == (None, "[API Error: overloaded]", False)


def test_of_a_long_output_the_lines_that_tell_are_kept() -> None:
    output = "=== test session ===\n" + "fine\n" * 90_000 + "tides.py:7: TypeError: no zone\nExit Code: 1"
    assert only(assistant(shell("pytest", 1, output))).error == "tides.py:7: TypeError: no zone"


def test_where_nothing_sounds_like_an_error_the_end_is_told() -> None:
    output = "Output: one\ntwo\nthree\nfour\nfive\nExit Code: 3\nProcess Group PGID: 7"
    assert only(assistant(shell("./tides", 3, output))).error == "two\nthree\nfour\nfive"


def test_half_a_word_is_never_told() -> None:
    """It may be half a secret."""
    command = "deploy " + "x" * 180 + " --key sk_live_" + "a" * 60
    assert only(assistant(shell(command, 1, "error"))).target == "deploy " + "x" * 180 + " --key…"


@pytest.mark.parametrize(
    ("done", "failed"),
    [
        ("pytest --version", "pytest tests/x.py"),
        ("pytest --collect-only", "pytest"),
        ("npm run", "npm run build"),
        ("cargo test --help", "cargo test"),
    ],
)
def test_what_does_nothing_makes_nothing_good(done: str, failed: str) -> None:
    assert not repairs(parse_runs(done), parse_runs(failed))
    assert repairs(parse_runs(failed), parse_runs(failed))
