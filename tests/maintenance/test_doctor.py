"""`retold doctor`: a home for every finding, what it says of it, and that its advice can be typed."""

import argparse
import importlib
import json
import os
import shlex
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retold.cli.main import COMMANDS
from retold.maintenance.doctor.checks import CODES, DAMAGE
from retold.reading.disk import LocalDisk, OpenFile
from support.person import CommandResult, Person, is_root

NOW = datetime.now(UTC)
KEYS = ["finding", "severity", "home", "session", "when", "text", "fix"]


JSON = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from(["", "1d", "0h", "9" * 30 + "d", "x"])
)
KEYS_OF_SETTINGS = [
    "general",
    "sessionRetention",
    "enabled",
    "maxAge",
    "maxCount",
    "minRetention",
    "cleanupPeriodDays",
]


def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS_OF_SETTINGS), inner, max_size=5)


def as_settings(value: object) -> bytes:
    told = value if isinstance(value, dict) else {"cleanupPeriodDays": value}
    return json.dumps({"general": {"sessionRetention": value}, **told}).encode()


def ago(days: float) -> str:
    return (NOW - timedelta(days=days)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def full_id(short: str) -> str:
    return f"{short}-1111-4222-8333-944445555666"


class Patient(Person):
    """Somebody whose homes are filled by hand."""

    chats = property(lambda self: self.folder / ".gemini" / "tmp" / "den" / "chats")

    def gemini(
        self,
        short: str,
        days: float,
        *records: dict[str, Any],
        said: str = "where is the quokka?",
        **more: Any,
    ) -> Path:
        stamp = (NOW - timedelta(days=days)).strftime("%Y-%m-%dT%H-%M")
        times = {"startTime": ago(days), "lastUpdated": ago(days)}
        head = {"sessionId": full_id(short), "projectHash": "ab" * 32, **times, "kind": "main"} | more
        talk = [
            {"id": f"{short}-1", "type": "user", "timestamp": ago(days), "content": said},
            {"id": f"{short}-2", "type": "gemini", "timestamp": ago(days), "content": "under the bush"},
        ]
        kept = talk[:1] if said.startswith("/") else talk if said else []
        rows = [head, *kept, *records]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        return self.write(f".gemini/tmp/den/chats/session-{stamp}-{short}.jsonl", text, days)

    def claude(self, short: str, days: float) -> Path:
        line = {
            "type": "user",
            "sessionId": full_id(short),
            "uuid": f"{short}-u",
            "parentUuid": None,
            "cwd": "/home/ann/den",
            "timestamp": ago(days),
            "message": {"role": "user", "content": "where is the numbat?"},
        }
        name = f".claude/projects/-home-ann-den/{full_id(short)}.jsonl"
        return self.write(name, json.dumps(line) + "\n", days)

    def write(self, name: str, text: str, days: float = 2) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        at = (NOW - timedelta(days=days)).timestamp()
        os.utime(path, (at, at))
        return path

    def doctor(self) -> list[dict[str, Any]]:
        """Return what the doctor finds; the exit code follows from it, and nothing else is said."""
        done = self.run("doctor", "--json")
        found = done.objects
        assert done.err == ""
        is_damaged = any(one["finding"] in DAMAGE for one in found)
        assert done.code == (4 if is_damaged else 1 if any(one["severity"] != "note" for one in found) else 0)
        for one in found:
            check(one)
        return found

    def found(self, code: str) -> list[dict[str, Any]]:
        return [one for one in self.doctor() if one["finding"] == code]

    def codes(self) -> list[str]:
        return sorted(one["finding"] for one in self.doctor())


def check(finding: dict[str, Any]) -> None:
    """Every finding is of the form that the contract says, and its advice can be typed."""
    assert list(finding) == KEYS
    assert finding["finding"] in CODES
    assert finding["severity"] in ("loss", "warning", "note")
    assert finding["text"]
    assert finding["when"] is None or datetime.fromisoformat(finding["when"]).tzinfo is not None
    if finding["fix"] is not None and finding["fix"].startswith("retold "):
        _, name, *rest = shlex.split(finding["fix"])
        assert name in COMMANDS
        parser = argparse.ArgumentParser()
        importlib.import_module(f"retold.cli.commands.{name}").add_arguments(parser)
        parser.parse_args(rest)


@pytest.fixture
def ann(tmp_path: Path) -> Patient:
    return Patient(tmp_path / "ann", tmp_path / "retold")


def test_where_nothing_is_wrong_one_line_says_so(ann: Patient) -> None:
    ann.gemini("aaaaaaa1", 2)
    ann.age()
    ann.sync()
    assert ann.codes() == []
    done = ann.run("doctor")
    assert (done.code, done.err) == (0, "")
    (line,) = done.out.splitlines()
    assert line.startswith("Nothing is at risk: 1 session archived, ")


def test_without_an_archive_the_rest_is_told_all_the_same(ann: Patient) -> None:
    ann.gemini("aaaaaaa1", 60)
    found = {one["finding"]: one for one in ann.doctor()}
    assert found["no-archive"]["fix"] == "retold sync"
    assert found["deletion"]["severity"] == "loss"
    assert not ann.archive.exists()


def test_an_empty_home_has_no_archive_and_no_more(ann: Patient) -> None:
    assert ann.codes() == ["no-archive"]
    assert ann.run("doctor").out.count("\n") == 2


@pytest.mark.parametrize("name", [".gemini", ".claude", ".codex", ".gemini/tmp", ".gemini/settings.json/x"])
def test_a_home_that_is_a_file_is_no_bug(ann: Patient, name: str) -> None:
    path = ann.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("no folder", encoding="utf-8")
    assert set(ann.codes()) <= {"no-archive", "broken-settings"}


def test_what_goes_soon_is_told_with_when_and_whether_it_is_archived(ann: Patient) -> None:
    ann.gemini("aaaaaaa1", 60)
    ann.gemini("aaaaaaa2", 25.5)
    ann.gemini("aaaaaaa3", 2)
    ann.sync()
    ann.gemini("aaaaaaa4", 40)
    ann.gemini("aaaaaaa5", 1)
    found = {one["session"][-8:]: one for one in ann.found("deletion")}
    assert {short: one["severity"] for short, one in found.items()} == {
        "aaaaaaa1": "note",
        "aaaaaaa2": "note",
        full_id("aaaaaaa4")[-8:]: "loss",
    }
    due = NOW + timedelta(days=4.5)
    assert found["aaaaaaa2"]["when"] == due.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert found["aaaaaaa1"]["fix"] == "retold keep --install"
    assert found[full_id("aaaaaaa4")[-8:]]["fix"] == "retold sync"
    done = ann.run("doctor")
    assert done.code == 1
    assert "  ! 3 sessions go within 5 days; 1 is NOT archived\n" in done.out
    ann.sync()
    done = ann.run("doctor")
    assert done.code == 0
    assert "  - 3 sessions go within 5 days; they are archived\n" in done.out


def test_a_session_is_told_once_and_is_archived_with_its_last_file(ann: Patient) -> None:
    ann.gemini("aaaaaaa1", 60)
    ann.sync()
    ann.gemini("aaaaaaa1", 59)
    (finding,) = ann.found("deletion")
    assert finding["session"] in ann.rows()
    assert (finding["severity"], finding["fix"]) == ("loss", "retold sync")


def test_settings_decide_what_goes(ann: Patient) -> None:
    ann.gemini("aaaaaaa1", 60)
    ann.write(".gemini/settings.json", '{"general": {"sessionRetention": {"enabled": false}}} // mine')
    ann.sync()
    assert ann.codes() == []
    ann.write(".gemini/settings.json", '{"general": ')
    (finding,) = ann.found("broken-settings")
    assert finding["severity"] == "warning"
    assert str(ann.folder / ".gemini" / "settings.json") in finding["text"]
    assert len(ann.found("deletion")) == 1


def test_transcripts_of_claude_go_by_the_time_of_their_files(ann: Patient) -> None:
    ann.claude("bbbbbbb1", 26)
    ann.claude("bbbbbbb2", 2)
    ann.sync()
    (finding,) = ann.found("deletion")
    assert finding["session"] == f"claude:{full_id('bbbbbbb1')}"
    ann.write(".claude/settings.json", '{"cleanupPeriodDays": 3650}')
    assert ann.codes() == []
    ann.write(".claude/settings.json", '{"cleanupPeriodDays": "soon"}')
    assert ann.codes() == ["broken-settings", "deletion"]
    ann.write(".claude/settings.json", '{"cleanupPeriodDays": 0}')
    assert [one["when"] for one in ann.found("deletion")] == [None, None]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=60) | st.recursive(JSON, deeper, max_leaves=8).map(as_settings))
def test_no_settings_and_no_log_make_an_agent_raise(tmp_path: Path, content: bytes) -> None:
    person = Patient(tmp_path / "ann")
    for name in (".gemini", ".claude", ".codex"):
        (person.folder / name).mkdir(exist_ok=True)
        (person.folder / name / "settings.json").write_bytes(content)
        (person.folder / name / "history.jsonl").write_bytes(content)
    person.gemini("aaaaaaa1", 60)
    person.claude("bbbbbbb1", 60)
    assert person.run("doctor", "--json").code == 1


def test_a_ghost_endangers_the_session_beside_it(ann: Patient) -> None:
    ann.gemini("aaaaaaa1", 3)
    ann.gemini("aaaaaaa1", 2, said="")
    (finding,) = ann.found("ghost-twin")
    assert (finding["severity"], finding["fix"]) == ("loss", "retold sync")
    ann.sync()
    (finding,) = ann.found("ghost-twin")
    assert finding["severity"] == "warning"
    assert finding["fix"] == "retold keep --install"
    assert ann.run("keep", "--install").code == 0
    assert ann.found("ghost-twin") == []
    assert finding["session"] in ann.rows()


def test_a_subagents_file_among_the_sessions_endangers_its_session(ann: Patient) -> None:
    ann.gemini("aaaaaaa1", 3)
    ann.gemini("aaaaaaa1", 2, kind="subagent")
    ann.sync()
    assert {one["severity"] for one in ann.found("subagent-sibling")} == {"warning"}


def test_what_cannot_be_resumed_goes_and_is_told(ann: Patient) -> None:
    ann.gemini("aaaaaaa1", 3, said="/help me, please")
    ann.write(".gemini/tmp/den/chats/session-2026-01-01T10-00-aaaaaaa2.jsonl", "{ torn")
    ann.write(".gemini/tmp/den/chats/session-2026-01-01T10-00-aaaaaaa3.jsonl", "")
    assert ann.codes() == ["no-archive", "nothing-to-resume", "unloadable"]
    ann.sync()
    (finding,) = ann.found("nothing-to-resume")
    assert finding["severity"] == "note"


def test_sessions_that_are_gone_can_be_restored(ann: Patient) -> None:
    gone = ann.gemini("aaaaaaa1", 3, said="what did the wombat say?")
    ann.gemini("aaaaaaa2", 3)
    ann.sync()
    gone.unlink()
    (finding,) = ann.found("lost")
    assert finding["severity"] == "note"
    assert finding["fix"] == f"retold restore {finding['session']}"
    assert "what did the wombat say?" in finding["text"]
    ann.sync()
    assert ann.codes() == ["lost"]


def test_a_home_that_was_emptied_has_lost_everything(ann: Patient) -> None:
    ann.gemini("aaaaaaa1", 3)
    ann.gemini("aaaaaaa2", 3)
    ann.sync()
    shutil.rmtree(ann.folder / ".gemini")
    assert ann.codes() == ["lost", "lost"]
    assert "2 sessions are gone from the home; the archive has them" in ann.run("doctor").out


def test_prompts_that_are_left_are_told(ann: Patient) -> None:
    entry = {
        "sessionId": full_id("aaaaaaa9"),
        "messageId": 0,
        "type": "user",
        "message": "any left?",
        "timestamp": ago(3),
    }
    ann.write(".gemini/tmp/den/logs.json", json.dumps([entry]))
    typed = {"display": "and here?", "timestamp": 1, "project": "/den", "sessionId": full_id("bbbbbbb9")}
    ann.write(
        ".claude/history.jsonl", json.dumps(typed) + "\nno json\n[]\n" + json.dumps({**typed, "sessionId": 3})
    )
    ann.sync()
    gemini, claude = sorted(ann.found("prompts-only"), key=lambda one: str(one["fix"]), reverse=True)
    assert gemini["fix"] == f"retold show gemini:lost-{full_id('aaaaaaa9')}"
    assert (claude["session"], claude["fix"]) == (full_id("bbbbbbb9"), None)


def test_outputs_and_subagents_of_lost_sessions_are_told(ann: Patient) -> None:
    ann.write(f".gemini/tmp/den/tool-outputs/session-{full_id('aaaaaaa8')}/shell_1.txt", "much")
    ann.write(f".claude/projects/-den/{full_id('bbbbbbb8')}/tool-results/1.txt", "much")
    child = ann.gemini("aaaaaaa7", 3, kind="subagent")
    below = ann.chats / full_id("aaaaaaa7") / "k3x9qa.jsonl"
    below.parent.mkdir()
    child.rename(below)
    ann.sync()
    assert {one["session"] for one in ann.found("lone-outputs")} == {full_id("aaaaaaa8"), full_id("bbbbbbb8")}
    (finding,) = ann.found("lone-subagent")
    assert finding["fix"] == f"retold show {finding['session']}"


def test_what_belongs_to_a_session_that_is_there_or_archived_is_no_remains(ann: Patient) -> None:
    session = ann.gemini("aaaaaaa1", 3)
    ann.write(f".gemini/tmp/den/tool-outputs/session-{full_id('aaaaaaa1')}/shell_1.txt", "much")
    ann.claude("bbbbbbb1", 3)
    ann.write(f".claude/projects/-home-ann-den/{full_id('bbbbbbb1')}/tool-results/1.txt", "much")
    ann.write(".claude/history.jsonl", json.dumps({"display": "x", "sessionId": full_id("bbbbbbb1")}))
    assert ann.codes() == ["no-archive"]
    ann.sync()
    session.unlink()
    assert ann.codes() == ["lost"]


def test_what_is_not_read_yet_is_told(ann: Patient) -> None:
    ann.write(".gemini/antigravity-cli/brain/1.pb", "?")
    ann.write(".claude/todos/x.json", "[]")
    ann.sync()
    assert len(ann.found("unread-data")) == 2
    assert ann.run("doctor").code == 0


def test_files_that_are_new_or_changed_are_counted(ann: Patient) -> None:
    first = ann.gemini("aaaaaaa1", 3)
    ann.sync()
    ann.gemini("aaaaaaa2", 3)
    with first.open("a", encoding="utf-8") as file:
        file.write("{}\n")
    (finding,) = ann.found("unarchived")
    assert (finding["text"], finding["fix"]) == (
        "2 files are new or have changed since the last sync",
        "retold sync",
    )


def test_refused_damaged_and_unknown_content_is_told_by_file(ann: Patient) -> None:
    ann.write(".gemini/tmp/den/chats/session-2026-01-01T10-00-aaaaaaa3.json", '{"recipes": []}')
    ann.gemini("aaaaaaa1", 3, {"something": "new"})
    torn = ann.gemini("aaaaaaa2", 3)
    torn.write_text(torn.read_text(encoding="utf-8") + '{"id": "m', encoding="utf-8")
    ann.sync()
    (refused,) = ann.found("refused-file")
    assert "[not-a-session]" in refused["text"]
    (damaged,) = ann.found("damaged-file")
    assert "[truncated-tail]" in damaged["text"]
    (unknown,) = ann.found("unknown-records")
    assert unknown["session"].endswith("aaaaaaa1")


def test_a_file_that_may_not_be_opened_is_told(ann: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    ann.gemini("aaaaaaa1", 3)
    ann.sync()
    closed = str(ann.gemini("aaaaaaa2", 3))
    given = LocalDisk.open

    def refused(disk: LocalDisk, path: str) -> OpenFile:
        if path == closed:
            raise PermissionError(13, "Permission denied")
        return given(disk, path)

    monkeypatch.setattr(LocalDisk, "open", refused)
    (finding,) = ann.found("unreadable")
    assert (finding["severity"], finding["text"]) == ("warning", f"{closed}: Permission denied")
    assert ann.found("unarchived") == []


def test_an_archive_that_is_none_is_told_and_the_rest_as_well(ann: Patient) -> None:
    ann.gemini("aaaaaaa1", 60)
    ann.archive.mkdir(mode=0o700)
    path = ann.archive / "archive.db"
    path.write_bytes(b"garbage" * 1000)
    path.chmod(0o600)
    assert ann.codes() == ["archive-unusable", "deletion"]
    assert path.read_bytes() == b"garbage" * 1000


@pytest.mark.parametrize("start", [4096, 3 * 4096, 12 * 4096])
def test_an_archive_that_was_written_over_is_told(ann: Patient, start: int) -> None:
    for number in range(9):
        ann.gemini(f"aaaaaaa{number}", 3, said=os.urandom(20_000).hex())
    ann.sync()
    path = ann.archive / "archive.db"
    data = bytearray(path.read_bytes())
    data[start : start + 30 * 4096] = b"\xa5" * len(data[start : start + 30 * 4096])
    path.write_bytes(data)
    worst, *_ = ann.doctor()
    assert worst["finding"] in ("archive-damaged", "archive-unusable")
    assert path.read_bytes() == data


def test_a_row_that_cannot_be_is_found(ann: Patient) -> None:
    ann.gemini("aaaaaaa1", 3)
    ann.sync()
    connection = apsw.Connection(str(ann.archive / "archive.db"))
    connection.execute("PRAGMA writable_schema = 1")
    harm = "UPDATE sqlite_schema SET sql = replace(sql, ' parent TEXT', ' parent TEXT NOT NULL') WHERE name = 'sessions'"
    connection.execute(harm)
    connection.close()
    told = [finding["text"] for finding in ann.found("archive-damaged")]
    assert any("sessions.parent" in text for text in told)
    assert any(text.endswith("sessions is changed") for text in told)


def test_damage_in_one_place_does_not_hide_the_rest(ann: Patient) -> None:
    ann.gemini("aaaaaaa1", 60)
    ann.sync()
    connection = apsw.Connection(str(ann.archive / "archive.db"))
    connection.execute("UPDATE summaries SET packed = zeroblob(9)")
    connection.close()
    assert ann.codes() == ["archive-damaged", "deletion"]


@pytest.mark.parametrize("harm", ["digest = randomblob(16)", "packed = zeroblob(9)"])
def test_a_changed_chunk_is_found(ann: Patient, harm: str) -> None:
    ann.gemini("aaaaaaa1", 3)
    ann.sync()
    connection = apsw.Connection(str(ann.archive / "archive.db"))
    connection.execute(f"UPDATE chunks SET {harm}")  # noqa: S608 - ours
    connection.close()
    (finding,) = ann.found("archive-damaged")
    assert "chunk 1 is damaged" in finding["text"]


def test_an_index_that_is_behind_is_told(ann: Patient) -> None:
    ann.gemini("aaaaaaa1", 3)
    ann.sync()
    (ann.archive / "index" / "text-0.db").unlink()
    (finding,) = ann.found("index-behind")
    assert finding["fix"] == "retold sync --reindex"


def test_an_old_sync_is_told(ann: Patient) -> None:
    ann.sync()
    connection = apsw.Connection(str(ann.archive / "archive.db"))
    connection.execute("UPDATE facts SET value = value - 3 * 86400 WHERE name = 'synced_at'")
    connection.close()
    (finding,) = ann.found("archive-stale")
    assert finding["text"] == "the last sync was 3 days ago"


def test_a_disk_that_is_nearly_full_is_told(ann: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    ann.sync()
    monkeypatch.setattr("retold.maintenance.doctor.checks.LEAST_SPACE", 1 << 80)
    assert ann.codes() == ["little-space"]


def test_files_that_others_may_read_are_told(ann: Patient) -> None:
    ann.sync()
    path = ann.archive / "archive.db"
    path.chmod(0o644)
    (finding,) = ann.found("open-to-others")
    assert str(path) in finding["text"]
    assert finding["fix"] == f"chmod -R go-rwx {ann.archive}"


def test_a_broken_config_and_a_home_that_is_away_are_told(ann: Patient, tmp_path: Path) -> None:
    ann.gemini("aaaaaaa1", 3)
    away = Patient(tmp_path / "laptop", ann.archive)
    away.gemini("aaaaaaa2", 60)
    ann.sync("--home", f"laptop={away.folder}")
    assert ann.codes() == []  # what lies there, no agent of this machine deletes
    away.folder.rename(tmp_path / "unplugged")
    assert ann.codes() == ["missing-home"]
    (ann.archive / "config.toml").write_text("[homes", encoding="utf-8")
    assert "broken-config" in ann.codes()


def test_what_was_forgotten_is_not_mourned(ann: Patient) -> None:
    ann.gemini("aaaaaaa1", 60)
    ann.sync()
    assert ann.run("forget", "-y", full_id("aaaaaaa1")).code == 0
    assert ann.codes() == []


def test_a_transcript_does_not_steer_the_terminal(ann: Patient) -> None:
    ann.gemini("aaaaaaa1", 60, said="\x1b[31mred\x07 \u202e\x9b2J")
    ann.sync()
    for done in (ann.run("doctor"), ann.run("doctor", "--json")):
        assert not set("\x1b\x07\x9b\u202e") & set(done.out + done.err)
        assert "red" in done.out


def test_lines_fit_a_narrow_terminal(ann: Patient) -> None:
    for number in range(5):
        ann.gemini(f"aaaaaaa{number}", 60, said="a long prompt, " * 20)
        ann.gemini(f"aaaaaab{number}", 3, said="/help " * 30)
    done = narrow(ann, 60)
    told = [line for line in done.out.splitlines() if not line.startswith(("      ", str(ann.folder)))]
    assert told
    assert max(map(len, told)) <= 60


def narrow(ann: Patient, columns: int) -> CommandResult:
    env = {**ann.env, "COLUMNS": str(columns)}
    return ann.spawn("doctor", env=env)


def test_the_same_is_told_twice(ann: Patient) -> None:
    ann.gemini("aaaaaaa1", 60)
    ann.gemini("aaaaaaa2", 3, said="/help")
    ann.claude("bbbbbbb1", 60)
    ann.sync()
    assert ann.run("doctor", "--json").out == ann.run("doctor", "--json").out


@pytest.mark.skipif(is_root, reason="root may write everywhere")
def test_an_archive_that_may_not_be_written_to_can_be_asked(ann: Patient) -> None:
    ann.gemini("aaaaaaa1", 3)
    ann.sync()
    ann.archive.chmod(0o500)
    try:
        assert ann.codes() == []
    finally:
        ann.archive.chmod(0o700)


def test_nothing_is_written(ann: Patient) -> None:
    ann.gemini("aaaaaaa1", 60)
    ann.sync()
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in ann.sources()}
    kept = {path.name for path in ann.files()}
    ann.doctor()
    assert before == {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in ann.sources()}
    assert kept >= {path.name for path in ann.files() if not path.name.endswith(("-wal", "-shm"))}


def test_plain_retold_says_what_goes_soon(ann: Patient) -> None:
    ann.gemini("aaaaaaa1", 60)
    ann.gemini("aaaaaaa2", 24.5)
    ann.claude("bbbbbbb1", 29.5)
    ann.claude("bbbbbbb2", 2)
    for _ in range(2):  # also where nothing is new
        err = ann.run().err
        assert (
            "Gemini CLI deletes 2 of these within 6 days; they are archived. `retold doctor` tells more."
            in err
        )
        assert "Claude Code deletes 1 of these within 1 day; it is archived." in err
    ann.age()
    ann.run()
    ann.write(".gemini/settings.json", '{"general": {"sessionRetention": {"enabled": false}}}')
    assert "Gemini CLI deletes" not in ann.run().err


def test_plain_retold_says_nothing_where_nothing_goes(ann: Patient) -> None:
    ann.gemini("aaaaaaa1", 2)
    assert "deletes" not in ann.run().err


def test_plain_retold_counts_what_is_there_and_can_go(ann: Patient) -> None:
    ann.gemini("aaaaaaa1", 60)
    gone = ann.gemini("aaaaaaa2", 60)
    spared = ann.gemini("aaaaaaa3", 60)
    other = ann.folder / ".gemini" / "tmp" / ("ab" * 32) / "chats"
    other.mkdir(parents=True)
    spared.rename(other / spared.name)
    assert "Gemini CLI deletes 2 of these at its next start" in ann.run().err
    gone.unlink()
    assert "Gemini CLI deletes 1 of these at its next start; it is archived." in ann.run().err
