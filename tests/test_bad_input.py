"""Whatever a file holds, nothing raises, what can be read is read, and nothing reaches a terminal that it would obey."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from retold.agents import codex
from retold.agents.protocol import Reading
from retold.agents.registry import NotASession, read
from retold.lake.arrow import schema_of
from retold.lake.batches import TableRequest, read_batches
from retold.lake.jobs import plan_jobs
from retold.model.serialization import decode_session
from retold.model.session import Message, Session, View
from retold.reading import disk
from retold.reading.disk import OpenFile
from support.conversation_files import FORMS, turns
from support.session_json import session_json
from support.synced_archive import sync_conversations

META = {"sessionId": "s1", "projectHash": "h1", "startTime": "2026-03-01T09:00:00.000Z"}
RETOLD = (sys.executable, "-m", "retold")
DEEP = 200_000
BIG_LINE = 100_000_000
# C0 but for tab and line end, DEL, C1, and the marks that turn the direction of what follows.
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
is_root = hasattr(os, "geteuid") and os.geteuid() == 0


def user(text: str, **more: Any) -> dict[str, Any]:
    return {
        "id": f"u-{text}",
        "timestamp": "2026-03-01T09:00:01.000Z",
        "type": "user",
        "content": text,
        **more,
    }


def lines(*records: dict[str, Any] | bytes) -> bytes:
    made = [
        record if isinstance(record, bytes) else json.dumps(record).encode() for record in (META, *records)
    ]
    return b"\n".join(made) + b"\n"


def document(*messages: str, between: str = ",\n  ") -> bytes:
    told = between.join(messages)
    return f'{{"sessionId": "s1", "projectHash": "h1", "messages": [\n  {told}\n]}}'.encode()


def pretty(text: str) -> str:
    """A message as the CLI writes it into a whole-file JSON."""
    return json.dumps(user(text), indent=2)


def read_back(file: Path, data: bytes) -> Session:
    """Read both views, tell them as JSON and back, and find the same in an archive."""
    file.write_bytes(data)
    (session,) = read(file)
    for view in (session, *read(file, "active")):
        assert decode_session(session_json(view)) == view
    (kept,) = archived(file, data)
    assert (kept.timeline, kept.usage, codes(kept)) == (session.timeline, session.usage, codes(session))
    return session


def archived(file: Path, data: bytes) -> list[Session]:
    """What an archive tells of a home in which this lies."""
    with TemporaryDirectory(dir=file.parent) as home:
        place = Path(home) / ".gemini" / "tmp" / "almanac" / "chats" / file.name
        place.parent.mkdir(parents=True)
        place.write_bytes(data)
        return sync_conversations(Path(home), agent="gemini")


def codes(session: Session) -> list[str]:
    return [problem.code for problem in session.problems]


def prompts(session: Session) -> list[str]:
    return [entry.prompt for entry in session.timeline if isinstance(entry, Message) and entry.prompt]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "session-2026-03-01T09-00-s1.jsonl"


# Content


@pytest.mark.parametrize(
    ("line", "code"),
    [
        pytest.param(
            b'{"id":"x","content":' + b"[" * DEEP + b"]" * DEEP + b"}", "nested-too-deep", id="lists"
        ),
        pytest.param(
            b'{"id":"x","content":' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}",
            "nested-too-deep",
            id="objects",
        ),
        pytest.param(b'{"id":"x","type":"user","content":"x","k":NaN}', "malformed-json", id="nan"),
        pytest.param(b'{"id":"x","type":"user","content":"x","k":1e400}', "number-out-of-range", id="1e400"),
        pytest.param(
            b'{"id":"x","type":"user","content":"x","k":-1e400}', "number-out-of-range", id="minus-1e400"
        ),
        pytest.param(
            b'{"id":"x","type":"user","content":"x","k":' + b"9" * 5000 + b"}",
            "number-out-of-range",
            id="5000-digits",
        ),
        pytest.param(b'{"id":"x","type":"user","content":"\\udc00"}', "replaced-bytes", id="lone-surrogate"),
        pytest.param(b'{"id":"x","type":"user","content":"\xff\xfe"}', "replaced-bytes", id="invalid-utf-8"),
        pytest.param(b'{"id":"x","type":"user","content":"a\x00b"}', "malformed-json", id="nul"),
        pytest.param(b"\x00" * 4096, "nul-bytes", id="nul-block"),
        pytest.param(os.urandom(0) + bytes(range(128, 256)), "malformed-json", id="no-text"),
    ],
)
def test_a_bad_line_costs_at_most_itself(file: Path, line: bytes, code: str) -> None:
    session = read_back(file, lines(user("before"), line, user("after")))
    assert code in codes(session)
    assert {problem.line for problem in session.problems if problem.code == code} == {3}
    assert prompts(session)[0] == "before"
    assert prompts(session)[-1] == "after"


@pytest.mark.parametrize("depth", [*range(60, 1000, 60), *range(960, 1030), 5000])
@pytest.mark.parametrize("key", ["content", "args"])
def test_nesting_of_any_depth_is_read_or_told(file: Path, key: str, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    content = deep if key == "content" else f'"","toolCalls":[{{"id":"c","name":"n","args":{{"a":{deep}}}}}]'
    line = f'{{"id":"x","type":"gemini","content":{content}}}'.encode()
    assert prompts(read_back(file, lines(user("before"), line, user("after")))) == ["before", "after"]


@pytest.mark.parametrize("opening", ["[", '{"a":'], ids=["lists", "objects"])
def test_a_message_nested_too_deep_does_not_cost_the_ones_behind_it(file: Path, opening: str) -> None:
    deep = f'{{"id":"x","type":"user","content":{opening * DEEP}'
    session = read_back(file, document(pretty("before"), deep, pretty("after")))
    assert prompts(session) == ["before", "after"]


def test_integers_stay_exact(file: Path) -> None:
    exact = {"over": 2**64, "under": -(2**63) - 1, "huge": 10**300}
    session = read_back(file, lines(user("count", exact=exact)))
    assert json.loads(session_json(session))["timeline"][0]["parts"][1]["value"] == {"exact": exact}


def test_huge_token_counts_are_summed_exactly(file: Path) -> None:
    tokens = {"input": 2**70, "output": 1, "cached": 0, "thoughts": 0, "tool": 0, "total": 2**70 + 1}
    answer = {**user("x"), "type": "gemini", "model": "m", "tokens": tokens}
    assert read_back(file, lines(answer)).usage.total == 2**70 + 1


@pytest.mark.parametrize(
    "stamp",
    [
        "0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59.999-23:00", "9999-12-31T23:59:59.999Z", "", "2026-13-40",
        10**30, -(10**15), 1e300, True, {}, "\ud800",
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["user", "gemini"])
def test_a_time_outside_the_calendar_is_told(file: Path, kind: str, stamp: object) -> None:
    result = [{"functionResponse": {"id": "c", "name": "n", "response": {"output": "ok"}}}]
    call = {"id": "c", "name": "n", "args": {}, "status": "success", "timestamp": stamp, "result": result}
    record = user(
        "when", timestamp=stamp, thoughts=[{"description": "d", "timestamp": stamp}], toolCalls=[call]
    )
    session = read_back(
        file, lines({**record, "type": kind}) + json.dumps({"$set": {"lastUpdated": stamp}}).encode()
    )
    assert len(session.timeline) == 1
    events = run("events", "--json", str(file))
    assert events.returncode == 0
    assert events.stderr == ""


def test_a_line_that_only_retold_can_read_is_not_what_the_agent_loads(file: Path) -> None:
    line = json.dumps(user("between")).replace("between", "bet\x01ween").encode()
    file.write_bytes(lines(user("one"), line, user("two")))
    (full,), (active,) = read(file), read(file, "active")
    assert (prompts(full), prompts(active)) == (["one", "bet\x01ween", "two"], ["one", "two"])
    assert [entry.fate for entry in full.timeline] == ["live", "superseded", "live"]


def test_duplicate_keys_last_wins(file: Path) -> None:
    line = b'{"id":"u1","type":"user","content":"first","content":"last"}'
    assert prompts(read_back(file, lines(line))) == ["last"]


def test_a_byte_order_mark_is_no_content(file: Path) -> None:
    session = read_back(file, b"\xef\xbb\xbf" + lines(user("hello")))
    assert prompts(session) == ["hello"]


@pytest.mark.parametrize("indent", [2, None], ids=["pretty", "a-message-a-line"])
def test_a_whole_file_damaged_in_the_middle_keeps_both_sides(file: Path, indent: int | None) -> None:
    good = [json.dumps(user(name), indent=indent) for name in ("one", "two", "four", "five")]
    data = document(*good[:2], '{"id":"three","type":"user" oops}', *good[2:])
    session = read_back(file, data)
    assert prompts(session) == ["one", "two", "four", "five"]
    assert codes(session)[0] == "malformed-json"
    assert session.problems[0].line == data[: data.index(b"oops")].count(b"\n") + 1


def test_a_whole_file_cut_anywhere_keeps_every_whole_message(file: Path) -> None:
    data = document(*map(pretty, ("one", "two", "three")))
    ends = [data.index(name) + len(name) for name in (b'"one"\n}', b'"two"\n}', b'"three"\n}')]
    for size in range(ends[0], len(data)):
        file.write_bytes(data[:size])
        (session,) = read(file)
        whole = sum(size >= end for end in ends)
        assert prompts(session) == ["one", "two", "three"][:whole], size
        assert not next(read(file, "active")).timeline


def test_a_line_of_100_mb_is_read(file: Path) -> None:
    text = b"x" * BIG_LINE
    file.write_bytes(lines(b'{"id":"u1","type":"user","content":"' + text + b'"}', user("after")))
    (session,) = read(file)
    assert len(prompts(session)[0]) == BIG_LINE
    assert prompts(session)[1] == "after"


@pytest.mark.parametrize(
    "data", [b"", b"\n\n", b" \r\n\t", b"\x00" * 100, b"{}", b"[]", b"null", b"7", b'"text"']
)
def test_nothing_in_particular_is_no_session(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    with pytest.raises(NotASession) as refusal:
        read(file)
    assert refusal.value.problem.code == "not-a-session"


@pytest.mark.parametrize(
    "data",
    [b"## USER x", b"## USER x\n", b"## USER x\r\n\r\nHello.", b"x ## MODEL\n\n", b"## MODEL y\n---\n"],
)
def test_the_start_of_a_shared_transcript_is_read_or_refused(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    try:
        sessions = list(read(file))
    except NotASession:
        return
    assert all("Hello." in str(session.timeline) for session in sessions if b"Hello." in data)


# The file system


def refusal(path: Path | str) -> str:
    with pytest.raises(NotASession) as refused:
        read(path)
    return refused.value.problem.code


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    assert refusal(tmp_path / "nowhere") == "missing-file"
    assert refusal(tmp_path / "a\0b") == "missing-file"


def test_a_folder_is_told(tmp_path: Path) -> None:
    assert refusal(tmp_path) == "not-a-file"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_pipe_is_told_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe") == "not-a-file"


@pytest.mark.skipif(is_root, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told(file: Path) -> None:
    file.write_bytes(lines(user("secret")))
    file.chmod(0)
    assert refusal(file) == "unreadable-file"


def test_a_path_that_the_system_rejects_is_told(tmp_path: Path) -> None:
    assert refusal(tmp_path / ("x" * 5000)) == "unreadable-file"


def test_a_file_that_never_settles_is_told(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_bytes(lines(user("hello")))
    all_of = disk._read_whole  # noqa: SLF001 - between the two looks at the file there is no other seam

    def grows(opened: OpenFile, size: int) -> bytes:
        with file.open("ab") as end:
            end.write(json.dumps(user("more")).encode() + b"\n")
        return all_of(opened, size)

    monkeypatch.setattr(disk, "_read_whole", grows)
    (session,) = read(file)
    assert codes(session) == ["changed-while-read"]
    assert prompts(session)[0] == "hello"


@pytest.mark.parametrize("is_rewritten", [False, True], ids=["grows", "is-rewritten"])
def test_a_file_that_changes_while_it_is_read(file: Path, *, is_rewritten: bool) -> None:
    file.write_bytes(lines(user("hello")))
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            data = lines(user("hello"), *(user(f"n{n}") for n in range(number % 50)))
            if is_rewritten:
                file.write_bytes(data)
            else:
                with file.open("ab") as end:
                    end.write(json.dumps(user(f"n{number}")).encode() + b"\n")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        allowed = {"changed-while-read", "truncated-tail", "unreadable-by-agent", "no-metadata"}
        until = time.monotonic() + 1
        while time.monotonic() < until:
            for session in quietly(file):
                assert set(codes(session)) <= allowed
    finally:
        stop.set()
        writer.join()


def quietly(file: Path) -> Iterator[Session]:
    """A file that is just being rewritten may be empty for a moment."""
    try:
        yield from read(file)
    except NotASession as refused:
        assert refused.problem.code == "not-a-session"  # noqa: PT017 - either is right


# The command


def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RETOLD, *arguments],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
        env={**os.environ, **(env or {})},
    )


@pytest.fixture
def hostile(file: Path) -> Path:
    """A session in which everything that can hold text holds what a terminal would obey."""
    evil = "\x1b[2J\x1b]0;owned\x07\x00\x08\r\x7f\x9b31m\u202egnp\u2066x\u2069 end"
    call = {
        "id": evil, "name": evil, "args": {"command": evil, evil: evil}, "status": "error", "displayName": evil,
        "result": [{"functionResponse": {"id": evil, "response": {"error": evil}}}],
    }  # fmt: skip
    answer = {**user(evil), "id": "g", "type": "gemini", "model": evil, "toolCalls": [call]}
    thought = {"subject": evil, "description": evil}
    records = [
        user(evil), {**answer, "thoughts": [thought], "tokens": {"input": 1}}, {**user(evil), "type": "error", "id": "e"},
        {**user(evil), "type": "info", "id": "i"}, {**user(evil), "type": evil, "id": "t"}, {evil: evil},
        user("x", **{evil: evil}) | {"content": [{"inlineData": {"mimeType": evil, "displayName": evil}}]},
        {"$set": {"summary": evil, evil: evil}},
    ]  # fmt: skip
    file.write_bytes(lines(*records, b"not json " + evil.encode()))
    return file


EVERYTHING = ("--thoughts", "--tools", "full", "--tokens", "--notices")


@pytest.mark.parametrize(
    "arguments",
    [
        ("read",),
        ("read", *EVERYTHING),
        ("read", "--json"),
        ("events", "--text"),
        ("events", "--text", "--json"),
    ],
    ids=" ".join,
)
def test_nothing_that_a_terminal_obeys_reaches_it(hostile: Path, arguments: Sequence[str]) -> None:
    done = run(*arguments, str(hostile))
    assert done.returncode == 0
    assert "end" in done.stdout
    assert not OBEYED.search(done.stdout + done.stderr)


@pytest.mark.skipif(sys.platform == "win32", reason="such names cannot exist there")
def test_nothing_that_a_terminal_obeys_comes_from_a_name(tmp_path: Path) -> None:
    name = tmp_path / "evil\x1b[2J\u202e.json"
    name.write_bytes(b"{}")
    for options in ((), ("--json",)):
        done = run("read", *options, str(name))
        assert done.returncode == 1
        assert not OBEYED.search(done.stdout + done.stderr)


def test_json_of_a_hostile_session_is_still_its_json(hostile: Path) -> None:
    (session,) = read(hostile)
    assert json.loads(run("read", "--json", str(hostile)).stdout) == json.loads(session_json(session))


@pytest.mark.parametrize("arguments", [("read",), ("read", "--json"), ("events", "--json")], ids=" ".join)
def test_a_closed_pipe_ends_quietly(file: Path, arguments: Sequence[str]) -> None:
    file.write_bytes(lines(*(user(f"a rather long prompt, number {number}") for number in range(20_000))))
    with subprocess.Popen(
        [*RETOLD, *arguments, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 0


def test_no_colour_where_there_is_no_terminal(file: Path) -> None:
    file.write_bytes(lines(user("hello")))
    assert "\x1b" not in run("read", str(file)).stdout


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals there")
@pytest.mark.parametrize(
    ("env", "is_coloured"),
    [
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
    ],
    ids=["terminal", "NO_COLOR", "dumb"],
)
def test_colour_on_a_terminal_only_where_it_is_wanted(
    file: Path, env: dict[str, str], *, is_coloured: bool
) -> None:
    import pty  # noqa: PLC0415 - not on Windows

    file.write_bytes(lines(user("hello")))
    ours, theirs = pty.openpty()
    try:
        subprocess.run(
            [*RETOLD, "read", str(file)], stdout=theirs, env={**os.environ, **env}, check=True, timeout=60
        )
        os.close(theirs)
        shown = os.read(ours, 65536)
    finally:
        os.close(ours)
    assert (b"\x1b[" in shown) is is_coloured
    assert b"hello" in shown


# Exit codes


def test_0_when_it_was_read(file: Path) -> None:
    file.write_bytes(lines(user("hello"), b"a problem inside does not change the code"))
    assert run("read", str(file)).returncode == 0
    assert run("events", str(file)).returncode == 0


def test_1_when_a_file_is_missing_or_no_session_and_the_others_are_still_read(
    file: Path, tmp_path: Path
) -> None:
    file.write_bytes(lines(user("hello")))
    settings = tmp_path / "settings.json"
    settings.write_text('{"ui": {}}')
    for arguments in (("read",), ("events",)):
        done = run(*arguments, str(tmp_path / "nowhere"), str(file), str(settings))
        assert done.returncode == 1
        assert "hello" in done.stdout
        assert "missing-file" in done.stderr
        assert "not-a-session" in done.stderr


def test_a_refusal_is_told_as_a_json_problem(tmp_path: Path) -> None:
    done = run("read", "--json", str(tmp_path / "nowhere"))
    assert done.stdout == ""
    assert json.loads(done.stderr)["code"] == "missing-file"


@pytest.mark.parametrize(
    "arguments", [("read",), ("frobnicate",), ("read", "--view", "both", "x"), ("--frob",)], ids=" ".join
)
def test_2_when_it_is_used_wrongly(arguments: Sequence[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "usage:" in done.stderr


def test_a_bug_of_ours_costs_one_conversation_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for number, word in enumerate(("heron", "otter"), start=1):
        FORMS["codex"].write(tmp_path, number, turns(word))
    plan = plan_jobs([("ann", tmp_path)])
    join = codex.join

    def failing(readings: Sequence[Reading], view: View = "full") -> Session:
        if readings[0].native_id == plan.jobs[0].sources[0].cluster:
            raise RuntimeError("a bug")
        return join(readings, view)

    monkeypatch.setattr(codex, "join", failing)
    tables = {
        name: [
            row
            for one in read_batches(TableRequest(name, schema_of(name)), plan.jobs, plan.clues)
            for row in one.to_pylist()
        ]
        for name in ("sessions", "problems")
    }
    assert [row["session"] for row in tables["sessions"]] == [f"codex:{plan.jobs[1].sources[0].cluster}"]
    (told,) = tables["problems"]
    assert (told["code"], told["severity"], told["message"]) == (
        "reader-failed",
        "loss",
        "RuntimeError: a bug",
    )
    assert (told["home"], told["path"]) == ("ann", str(plan.jobs[0].sources[0].path))
    assert "RuntimeError: a bug" in caplog.text


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")
def test_130_on_ctrl_c(file: Path) -> None:
    file.write_bytes(lines(*(user(f"prompt {number}") for number in range(200_000))))
    # Without what measures coverage: interrupted with a lock of its own in hand, that would wait for itself.
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    with subprocess.Popen(
        [*RETOLD, "read", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    ) as process:
        assert process.stdout
        process.stdout.read(10)
        process.send_signal(signal.SIGINT)
        try:
            _, told = process.communicate(timeout=60)
        finally:
            process.kill()
        assert process.returncode == 130
        assert told == b""
