"""`retold read` and `retold events`, as a script meets them."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from retold import __version__
from retold.cli import main as entrance
from retold.cli.commands import read as read_command
from retold.cli.console import Console
from retold.config import retold_home
from retold.model.serialization import schemas

SAMPLE = str(Path(__file__).parents[1] / "fixtures" / "gemini_sample.json")
HISTORY = {
    "history": [
        {"role": "user", "parts": [{"text": "Read it."}]},
        {"role": "model", "parts": [{"functionCall": {"name": "read_file", "args": {"file_path": "a"}}}]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "read_file", "response": {"output": "alpha"}}}],
        },
        {"role": "model", "parts": [{"text": "Alpha."}]},
    ]
}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "retold", *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False, timeout=60)


def test_the_version() -> None:
    assert run("--version").stdout == run("-V").stdout == f"retold {__version__}\n"


@pytest.mark.parametrize("arguments", [(), *((name,) for name in entrance.COMMANDS)], ids=" ".join)
def test_help_is_data(arguments: tuple[str, ...]) -> None:
    done = run(*arguments, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: retold")


@pytest.mark.parametrize(
    "arguments",
    [
        ("list", "--agent", "foo"),
        ("list", "--foo"),
        ("list", "--since", "foo"),
        ("web", "--port", "foo"),
        ("connect", "foo"),
        ("foo",),
        ("--foo", "list"),
    ],
    ids=" ".join,
)
def test_a_message_about_wrong_words_steers_no_terminal(arguments: tuple[str, ...]) -> None:
    hostile = "\x1b[31m\u202e\u200b\U000e0041"
    done = run(*(word.replace("foo", f"foo{hostile}") for word in arguments))
    assert done.returncode == 2
    assert "foo" in done.stderr
    assert not {*hostile} - {*"[31m"} & {*done.stderr}


def test_read_as_json_is_a_valid_session_a_line() -> None:
    done = run("read", "--json", SAMPLE, SAMPLE)
    validator = Draft202012Validator(schemas()["session"])
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    for line in lines:
        validator.validate(json.loads(line))


def test_the_views_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    records = [
        {"sessionId": "s", "projectHash": "h"},
        {"id": "u", "type": "user", "content": "Hi."},
        {"$rewindTo": "u"},
    ]
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    full, active = (
        json.loads(run("read", "--json", "--view", view, str(file)).stdout) for view in ("full", "active")
    )
    assert (len(full["timeline"]), full["timeline"][0]["fate"], len(active["timeline"])) == (1, "rewound", 0)


def test_events_of_a_history_are_in_order_with_derived_times(tmp_path: Path) -> None:
    file = tmp_path / "seed.json"
    file.write_text(json.dumps(HISTORY))
    os.utime(file, (1_772_355_900, 1_772_355_900))
    done = run("events", "--json", str(file))
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["event"] for event in told] == [
        "session_start", "user_prompt", "tool_use", "tool_result", "session_end",
    ]  # fmt: skip
    assert [event["at"] for event in told] == [f"2026-03-01T09:05:00.{number:03}Z" for number in range(5)]
    assert all(event["at_derived"] for event in told)
    assert told[2] == {
        "event": "tool_use", "session": told[0]["session"], "seq": 2, "at": "2026-03-01T09:05:00.002Z",
        "at_derived": True, "fate": "live", "call_id": "read_file-1",
        "tool": {"name": "read_file", "canonical": "file_read", "category": "Read"}, "arguments": {"file_path": "a"},
    }  # fmt: skip
    assert (told[3]["call_id"], told[3]["status"], told[3]["result"]) == ("read_file-1", "success", "alpha")
    assert told[4]["status"] == "success"


def test_130_when_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_command, "run", raises(KeyboardInterrupt()))
    assert entrance.main(["read", SAMPLE]) == 130


def test_4_when_the_machine_stops_us(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(read_command, "run", raises(OSError(28, "No space left on device")))
    assert entrance.main(["read", SAMPLE]) == 4
    assert "No space left" in capsys.readouterr().err


def test_3_and_a_log_for_a_bug_of_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("RETOLD_HOME", str(tmp_path))
    monkeypatch.setattr(read_command, "run", raises(ZeroDivisionError("oops")))
    assert entrance.main(["read", SAMPLE]) == 3
    told = capsys.readouterr().err
    (log,) = (tmp_path / "logs").iterdir()
    assert told.count("\n") == 1
    assert str(log) in told
    assert "ZeroDivisionError: oops" in log.read_text(encoding="utf-8")
    if sys.platform != "win32":
        assert log.stat().st_mode & 0o077 == 0


def test_a_log_that_cannot_be_written_goes_to_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "logs").write_text("a file in the way")
    monkeypatch.setenv("RETOLD_HOME", str(tmp_path))
    monkeypatch.setattr(read_command, "run", raises(ZeroDivisionError("oops")))
    assert entrance.main(["read", SAMPLE]) == 3
    assert "not written" in capsys.readouterr().err


def raises(error: BaseException) -> object:
    def run_and_fail(*_: object) -> int:
        raise error

    return run_and_fail


@pytest.mark.parametrize(
    ("platform", "env", "home"),
    [
        ("linux", {"RETOLD_HOME": "/x"}, "/x"),
        ("linux", {"XDG_DATA_HOME": "/data"}, os.path.join("/data", "retold")),
        ("linux", {}, os.path.join("~", ".local", "share", "retold")),
        ("darwin", {}, os.path.join("~", "Library", "Application Support", "retold")),
        ("win32", {"LOCALAPPDATA": "/local"}, os.path.join("/local", "retold")),
        ("win32", {}, os.path.join("~", "AppData", "Local", "retold")),
    ],
)
def test_where_retold_keeps_its_own_things(
    monkeypatch: pytest.MonkeyPatch, platform: str, env: dict[str, str], home: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert retold_home(env) == os.path.expanduser(home)


def test_text_for_people_and_records_are_harmless() -> None:
    out, err = io.StringIO(), io.StringIO()
    console = Console({}, out, err)
    console.write_line("a\x1bb\x07c\x7fd\x9be\u202ef\tg")
    console.write_json(b'{"x":"\x7f\xc2\x9b"}')
    console.notice("\x1b[2J")
    assert out.getvalue() == 'a␛b␇c␡d\ufffde\ufffdf\tg\n{"x":"\\u007f\\u009b"}\n'
    assert err.getvalue() == "␛[2J\n"


def test_whoever_closed_stdout_is_no_bug_of_ours(tmp_path: Path) -> None:
    command = ["sh", "-c", f'"{sys.executable}" -m retold list --json >&-']
    env = {**os.environ, "HOME": str(tmp_path), "RETOLD_HOME": str(tmp_path / "retold")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1, done  # nothing found
    assert "Traceback" not in done.stderr
