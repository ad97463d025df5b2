"""`retold watch` as a person runs it: a process of its own, while files are written."""

import json
import os
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from retold.synchronization.update import Lock
from support.conversation_files import (
    FORMS,
    ROOT,
    Form,
    as_lines,
    at,
    claude,
    claude_records,
    codex,
    codex_records,
    gemini_head,
    gemini_key,
    gemini_lines,
    gemini_records,
    turns,
    write_file,
)
from support.gemini_home import GeminiHome, call, gemini, user
from support.person import Json, Person, archive_contents, table_differences
from support.watch_process import event_texts, start_watch

SMALL_FILES = """
import atexit, os, resource, threading, time
def shrink():
    while not os.path.exists(os.environ["GO"]):
        time.sleep(0.01)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    atexit.register(resource.setrlimit, resource.RLIMIT_FSIZE, (soft, hard))  # coverage writes its file behind us
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    os.unlink(os.environ["GO"])
threading.Thread(target=shrink, daemon=True).start()
"""
BLIND = """
import watchfiles
def watch(*paths, **options):
    raise OSError("OS file watch limit reached")
watchfiles.watch = watch
"""
FAINT = """
import retold.maintenance.watch as moments
moments.SELDOM, moments.OFTEN = 0.2, 0.2
"""


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path / "ann")


def grown(file: Path, records: list[Json]) -> None:
    with file.open("a", encoding="utf-8") as open_file:
        open_file.write(as_lines(records))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_only_what_is_new_is_told(person: Person, form: Form) -> None:
    form.write(person.folder, 1, turns("ebb"))
    with start_watch(person, "--json") as watch:
        assert "1 file found: 1 read" in watch.err[0]
        form.write(person.folder, 1, turns("ebb", "flood"))
        watch.wait_for_words("answered flood")
        watch.settle()
        assert event_texts(watch.events, "user_prompt") == ["asked flood"]
        assert event_texts(watch.events, "assistant_text") == ["answered flood"]
        (used,), (result,) = watch.told("tool_use"), watch.told("tool_result")
        assert (used["tool"]["name"], result["result"]) == (form.tool, "given flood")
        assert used["call_id"] == result["call_id"]
        assert {event["session"] for event in watch.events} == {form.key(1)}
        assert watch.stop().code == 130
    assert person.rows()[form.key(1)]["counts"]["prompts"] == 2


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_new_session_is_told_from_its_start(person: Person, form: Form) -> None:
    """Its home is not there when the watch begins."""
    with start_watch(person, "--json") as watch:
        assert "watching 0 folders" in watch.err[-1]
        form.write(person.folder, 1, turns("ebb"))
        watch.wait_for_words("session_start", "asked ebb", "answered ebb", "given ebb")
        watch.settle()
        kinds = Counter(event["event"] for event in watch.events)
        assert kinds == Counter(["session_start", "user_prompt", "assistant_text", "tool_use", "tool_result"])
        assert watch.events[0]["agent"] == form.key(1).partition(":")[0]


def test_a_line_is_told_when_it_is_whole(person: Person) -> None:
    file = gemini_lines(person.folder, 1, turns("ebb"))
    line = as_lines(gemini_records(1, turns("ebb", "flood"))[2:3])
    with start_watch(person, "--json") as watch:
        for piece in (line[:20], line[20:-2]):
            with file.open("a", encoding="utf-8") as open_file:
                open_file.write(piece)
            watch.settle()
            assert watch.out == []
        with file.open("a", encoding="utf-8") as open_file:
            open_file.write(line[-2:])
        watch.wait_for_words("asked flood")
        watch.settle()
        assert len(watch.out) == 1


def test_a_result_that_comes_later_is_told_by_itself(person: Person) -> None:
    made = GeminiHome(person.folder)
    open_call = call("read_file", {"file_path": "tides.py"}, 2, status="executing", result=[])
    file = made.lines("almanac", 1, 1, [user("u1", 1, "Look."), gemini("g1", 2, "I will.", [open_call])])
    with start_watch(person) as watch:
        grown(file, [gemini("g2", 3, "I look elsewhere.", [{**open_call, "id": "read_file-2"}])])
        watch.wait_for_words("elsewhere")
        assert watch.out[-1].endswith("… read_file  tides.py")
        done = {**call("read_file", {"file_path": "tides.py"}, 3), "id": "read_file-2"}
        grown(file, [gemini("g2", 3, "I look elsewhere.", [done])])
        watch.wait_for_words("• read_file  success")
        grown(
            file,
            [gemini("g1", 2, "I will.", [call("read_file", {"file_path": "tides.py"}, 2, status="error")])],
        )
        watch.wait_for_words("✗ read_file  error")
        watch.settle()
        assert sum("read_file" in line for line in watch.out) == 3


def test_a_history_that_is_recorded_again_tells_only_what_is_new(person: Person) -> None:
    """As 0.61.0 does after Esc: the history comes line by line under new ids, which only later stand for the earlier."""
    file = gemini_lines(person.folder, 1, turns("ebb"))
    again = [copied(record, place) for place, record in enumerate(gemini_records(1, turns("ebb", "flood")))]
    again[0]["content"] = [{"text": "<session_context>\nToday\n</session_context>"}, *again[0]["content"]]
    with start_watch(person, "--json") as watch:
        grown(file, gemini_records(1, turns("ebb", "flood"))[2:])
        watch.wait_for_words("answered flood")
        grown(file, again)
        watch.settle()
        assert len(watch.out) == 4
        grown(file, [{"$set": {"messages": again}}])
        watch.settle()
        grown(file, gemini_records(1, turns("ebb", "flood", "spring"))[4:])
        watch.wait_for_words("answered spring")
        watch.settle()
        assert event_texts(watch.events, "user_prompt") == ["asked flood", "asked spring"]
        assert event_texts(watch.events, "assistant_text") == ["answered flood", "answered spring"]
        assert len(watch.out) == 8


def copied(record: Json, place: int) -> Json:
    """Return a record as it is recorded again: without its model, its calls among its parts."""
    calls = [
        {"functionCall": {"id": one["id"], "name": one["name"], "args": {}}}
        for one in record.get("toolCalls", ())
    ]
    content = [{"text": record["content"]}, *calls]
    return {"id": f"again-{place}", "timestamp": at(60), "type": record["type"], "content": content}


def test_sessions_of_several_agents_at_once(person: Person) -> None:
    with start_watch(person) as watch:
        files = [form(person.folder, 7, []) for form in (gemini_lines, claude, codex)]
        records = [
            gemini_records(7, turns("ebb", "flood")),
            claude_records(7, turns("ebb", "flood")),
            codex_records(7, turns("ebb", "flood")),
        ]
        for place in range(max(map(len, records))):
            for file, lines in zip(files, records, strict=True):
                grown(file, lines[place : place + 1])
            time.sleep(0.05)
        watch.wait(lambda: sum("answered flood" in line for line in list(watch.out)) == 3)
        watch.settle()
        for words in ("asked ebb", "asked flood", "answered ebb", "answered flood"):
            assert sum(words in line for line in watch.out) == 3
        headings = [line for line in watch.out if line.endswith("· almanac")]
        assert {line.partition(":")[0] for line in headings} == {"gemini", "claude", "codex"}


def test_only_the_agents_that_are_asked_for_are_followed(person: Person) -> None:
    with start_watch(person, "--json", "--agent", "codex", "--agent", "claude") as watch:
        for form in FORMS.values():
            form.write(person.folder, 1, turns("ebb"))
        watch.wait(lambda: len(event_texts(watch.events, "assistant_text")) == 2)
        watch.settle()
        assert {event["session"].partition(":")[0] for event in watch.events} == {"claude", "codex"}


def test_a_home_that_is_named_is_followed_when_it_appears(person: Person, tmp_path: Path) -> None:
    other = tmp_path / "laptop"
    with start_watch(person, "--json", "--home", f"laptop={other}") as watch:
        assert f"{other}: no such folder" in watch.err[0]
        gemini_lines(other, 3, turns("ebb"))
        watch.wait_for_words("answered ebb")
        shutil.rmtree(other)
        codex(person.folder, 4, turns("flood"))
        watch.wait_for_words("answered flood")
        gemini_lines(other, 3, turns("ebb", "spring"))
        watch.wait_for_words("answered spring")
        watch.settle()
        assert len(event_texts(watch.events, "user_prompt")) == 3


def test_what_a_transcript_says_does_not_steer_the_terminal(person: Person) -> None:
    made = GeminiHome(person.folder)
    evil = "\x1b]0;owned\x07\x1b[2J\r\x9b1m\u202e red"
    named = call(evil, {"file_path": evil}, 2, status="error", error=evil)
    with start_watch(person, "--thoughts") as watch:
        thought = {"subject": evil, "description": evil, "timestamp": "2026-03-01T09:02:00.000Z"}
        made.lines(
            "almanac",
            1,
            1,
            [user("u1", 1, evil), {**gemini("g1", 2, f"{evil} end", [named]), "thoughts": [thought]}],
        )
        watch.wait_for_words("end")
        watch.settle()
        told = "\n".join(watch.out)
    assert not set(told) & {*map(chr, range(0x20)), "\x7f", "\x9b", "\u202e"} - {"\n"}
    assert "~ " in told
    with start_watch(person, "--json", "--thoughts") as watch:
        made.lines("almanac", 2, 3, [user("u2", 3, evil)])
        watch.wait_for_words("user_prompt")
        assert event_texts(watch.events, "user_prompt") == [evil]
        assert not set("".join(watch.out)) & {*map(chr, range(0x20)), "\x7f", "\x9b", "\u202e"}


def test_thoughts_are_told_when_asked_for(person: Person) -> None:
    made = GeminiHome(person.folder)
    thought = {"subject": "Moon", "description": "It is full.", "timestamp": "2026-03-01T09:02:00.000Z"}
    with start_watch(person, "--json", "--thoughts") as watch:
        made.lines(
            "almanac", 1, 1, [user("u1", 1, "Tide?"), {**gemini("g1", 2, "High."), "thoughts": [thought]}]
        )
        watch.wait_for_words("High.")
        (told,) = watch.told("assistant_thought")
        assert (told["subject"], told["text"]) == ("Moon", "It is full.")


def test_a_subagent_is_named_and_indented(person: Person) -> None:
    made = GeminiHome(person.folder)
    with start_watch(person) as watch:
        made.lines("almanac", 1, 1, [user("u1", 1, "Ask somebody."), gemini("g1", 2, "I will.")])
        folder = made.gemini / "tmp/almanac/chats" / "00000001-3b2d-4f68-9a01-5d2e8c4b6f13"
        head = {**gemini_head(1, ()), "sessionId": "k3x9qa", "kind": "subagent"}
        write_file(folder / "k3x9qa.jsonl", as_lines([head, gemini("s1", 3, "I was asked.")]))
        watch.wait_for_words("I was asked.", "I will.")
        watch.settle()
    parent = "gemini:session-2026-03-01T09-01-00000001"
    assert any(line.startswith(f"    {parent}/k3x9qa · ") for line in watch.out), watch.out
    assert any(line.endswith(f"subagent of {parent}") for line in watch.out)
    assert sum("I was asked." in line and line.startswith("    ") for line in watch.out) == 1


def test_where_nothing_can_be_watched_it_is_looked_now_and_then(person: Person) -> None:
    gemini_lines(person.folder, 1, turns("ebb"))
    with start_watch(person, "--json", code=FAINT + BLIND) as watch:
        watch.wait(
            lambda: any("looking every other second: OS file watch" in line for line in list(watch.err))
        )
        gemini_lines(person.folder, 1, turns("ebb", "flood"))
        watch.wait_for_words("answered flood")


def test_what_no_event_tells_of_is_found_in_the_end(person: Person) -> None:
    file = gemini_lines(person.folder, 1, turns("ebb"))
    silent = "import watchfiles\nwatchfiles.watch = lambda *paths, **options: iter(lambda: (time.sleep(0.1), set())[1], 0)\n"
    with start_watch(person, "--json", code="import time\n" + FAINT + silent) as watch:
        grown(file, gemini_records(1, turns("ebb", "flood"))[2:])
        watch.wait_for_words("answered flood")


def test_it_waits_for_another_sync_and_goes_on(person: Person) -> None:
    file = gemini_lines(person.folder, 1, turns("ebb"))
    with start_watch(person, "--json") as watch:
        with Lock(str(person.archive), lambda: None):
            grown(file, gemini_records(1, turns("ebb", "flood"))[2:])
            watch.wait(lambda: any("another retold" in line for line in list(watch.err)))
            assert watch.out == []
        watch.wait_for_words("answered flood")


def test_what_another_sync_archived_first_is_told_by_its_time(person: Person) -> None:
    """It cannot be known what the session said before; what was said since the watch began is new."""
    made = GeminiHome(person.folder)
    file = made.lines("almanac", 1, 1, [user("u1", 1, "Long ago.")])
    with start_watch(person, "--json") as watch:
        with Lock(str(person.archive), lambda: None):
            pass
        os.kill(watch.process.pid, signal.SIGSTOP)
        now = time.strftime("%Y-%m-%dT%H:%M:%S.999Z", time.gmtime())
        grown(file, [user("u2", 2, "Long ago as well."), {**user("u3", 3, "Now."), "timestamp": now}])
        person.sync()
        os.kill(watch.process.pid, signal.SIGCONT)
        watch.wait_for_words("Now.")
        watch.settle()
        assert event_texts(watch.events, "user_prompt") == ["Now."]


def test_a_full_disk_is_told_in_one_line(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GO", str(tmp_path / "go"))
    gemini_lines(person.folder, 1, turns("ebb"))
    with start_watch(person, "--json", code=SMALL_FILES) as watch:
        (tmp_path / "go").touch()
        watch.wait(lambda: not (tmp_path / "go").exists())
        gemini_lines(person.folder, 2, turns(*map(str, range(200))))
        done = watch.ended()
    assert (done.code, done.out) == (4, "")
    assert len(watch.err) == 3, watch.err
    assert watch.err[-1].startswith("retold: ")


def test_ctrl_c_leaves_the_archive_as_a_sync_would(person: Person, tmp_path: Path) -> None:
    with start_watch(person) as watch:
        for number in range(4):
            for form in FORMS.values():
                form.write(person.folder, 10 * number + len(form.tool), turns(*map(str, range(number + 1))))
        watch.wait(lambda: watch.out)
        done = watch.stop()
    assert done.code == 130
    assert "Traceback" not in done.err
    person.sync()
    other = Person(person.folder, tmp_path / "other")
    other.sync()
    assert not table_differences(archive_contents(person.archive), archive_contents(other.archive))


def test_a_closed_pipe_ends_it_quietly(person: Person) -> None:
    process = person.start("watch", "--json")
    assert process.stdout is not None
    assert process.stderr is not None
    assert "found" in process.stderr.readline()
    assert "watching" in process.stderr.readline()
    process.stdout.close()
    gemini_lines(person.folder, 1, turns("ebb"))
    assert process.wait(30) == 0
    assert process.stderr.read() == ""
    process.stderr.close()


def test_a_session_that_was_only_in_the_log_gets_its_own_name_when_its_file_comes(person: Person) -> None:
    made = GeminiHome(person.folder)
    made.mark("almanac", ROOT)
    made.logs("almanac", [(1, "How high is the tide?")])
    person.sync()
    assert list(person.rows()) == ["gemini:lost-00000001-3b2d-4f68-9a01-5d2e8c4b6f13"]
    gemini_lines(person.folder, 1, turns("ebb"))
    person.sync()
    assert list(person.rows()) == [gemini_key(1)]
    assert person.run("events", "--json", gemini_key(1)).code == 0


def test_events_of_a_subagent_are_found_by_its_key(person: Person) -> None:
    made = GeminiHome(person.folder)
    made.lines("almanac", 1, 1, [user("u1", 1, "Ask somebody.")])
    folder = made.gemini / "tmp/almanac/chats" / "00000001-3b2d-4f68-9a01-5d2e8c4b6f13"
    head = {**gemini_head(1, ()), "sessionId": "k3x9qa", "kind": "subagent"}
    write_file(folder / "k3x9qa.jsonl", as_lines([head, gemini("s1", 3, "I was asked.")]))
    person.sync()
    (key,) = (key for key in person.rows() if "/" in key)
    done = person.run("events", "--text", "--json", key)
    assert (done.code, event_texts(done.objects, "assistant_text")) == (0, ["I was asked."])
    assert json.loads(done.out.splitlines()[0])["session"] == key
