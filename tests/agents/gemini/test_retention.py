"""What Gemini CLI is going to delete: the rules one by one, and the real CLI asked whether they are its own."""

import json
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from retold.agents.gemini import find_threats, read_retention_limit
from retold.agents.gemini.discovery import read_retention_rules
from retold.agents.protocol import AgentHome, Threat
from support.real_gemini import Gemini

NOW = datetime.now(UTC)
DAY = 86_400
AUTH = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
WAIT = """#!/bin/sh
# Wait until none of the files is left, at most 30 s.
for _ in $(seq 300); do
  left=
  for file do [ -e "$file" ] && left=1; done
  [ "$left" ] || break
  sleep 0.1
done >&2
echo '{}'
"""


def ago(days: float) -> str:
    return (NOW - timedelta(days=days)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def session_id(short: str) -> str:
    return f"{short}-1111-4222-8333-944445555666"


class Den:
    """A home with one project, to put sessions into."""

    def __init__(self, folder: Path, name: str = "den") -> None:
        self.home = AgentHome(folder / ".gemini", folder / ".gemini" / "tmp")
        self.project = folder / name
        self.chats = self.home.sessions / name / "chats"
        self.project.mkdir(parents=True)
        self.chats.mkdir(parents=True)
        (self.chats.parent / ".project_root").write_text(str(self.project), encoding="utf-8")
        (self.home.path / "projects.json").write_text(
            json.dumps({"projects": {str(self.project): name}}), encoding="utf-8"
        )

    def head(self, short: str, days: float, **more: Any) -> dict[str, Any]:
        times = {"startTime": ago(days), "lastUpdated": ago(days)}
        return {"sessionId": session_id(short), "projectHash": "ab" * 32, **times, "kind": "main"} | more

    def write(self, short: str, days: float, *records: object, name: str = "", **more: Any) -> str:
        stamp = (NOW - timedelta(days=days)).strftime("%Y-%m-%dT%H-%M")
        file = name or f"session-{stamp}-{short}.jsonl"
        rows = [self.head(short, days, **more), *records]
        (self.chats / file).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return file

    def document(self, short: str, days: float, *messages: object, **more: Any) -> str:
        stamp = (NOW - timedelta(days=days)).strftime("%Y-%m-%dT%H-%M")
        file = f"session-{stamp}-{short}.json"
        text = json.dumps({**self.head(short, days, **more), "messages": messages}, indent=2)
        (self.chats / file).write_text(text, encoding="utf-8")
        return file

    def clean_up(self, run: Gemini, version: str, due: set[str]) -> set[str]:
        """Run the CLI once and return the names of the files that it deleted.

        It deletes in the background and stops when it has answered: a hook makes it wait for what is due.
        """
        before = {file.name for file in self.chats.iterdir()}
        script = self.home.path.parent / "wait.sh"
        script.write_text(WAIT, encoding="utf-8")
        hook = {"type": "command", "timeout": 40_000}
        hook["command"] = shlex.join(["sh", str(script), *(str(self.chats / name) for name in sorted(due))])
        told = json.loads((self.home.path / "settings.json").read_text()) if self.has_settings() else {}
        told |= {"security": AUTH, "hooks": {"SessionEnd": [{"hooks": [hook]}]}}
        self.settings(json.dumps(told))
        done = run(version, self.home.path.parent, self.project, "-p", "hello")
        assert done.returncode == 0, done.stderr
        return before - {file.name for file in self.chats.iterdir()}

    def has_settings(self) -> bool:
        return (self.home.path / "settings.json").exists()

    def settings(self, text: str) -> None:
        (self.home.path / "settings.json").write_text(text, encoding="utf-8")

    def retain(self, **told: Any) -> None:
        self.settings(json.dumps({"general": {"sessionRetention": told}, "security": AUTH}))

    def threats(self) -> dict[str, Threat]:
        return {threat.source.path.name: threat for threat in find_threats(self.home)}

    def due(self) -> set[str]:
        """Return the names of the files that would be deleted by now."""
        return {name for name, threat in self.threats().items() if threat.at is None or threat.at < NOW}


def asked(text: str = "where is the quokka?", days: float = 2) -> dict[str, Any]:
    return {"id": "m1", "type": "user", "timestamp": ago(days), "content": text}


def answered(text: str = "under the bush", days: float = 2) -> dict[str, Any]:
    return {"id": "m2", "type": "gemini", "timestamp": ago(days), "content": text, "model": "gemini-2.5-pro"}


INFO = {"id": "m3", "type": "info", "timestamp": ago(2), "content": "Conversation checkpoint saved"}


@pytest.fixture
def den(tmp_path: Path) -> Den:
    return Den(tmp_path)


def filled(den: Den) -> None:
    """Put in one file for every rule."""
    talk = (asked(), answered())
    den.write("aaaaaaa1", 60, *talk)
    den.write("aaaaaaa2", 29, *talk)
    den.write("aaaaaaa3", 2, INFO)
    den.write("aaaaaaa4", 2, *talk, kind="subagent")
    den.write("aaaaaaa5", 2, asked("/help"))
    den.write("aaaaaaa6", 3, *talk)  # and its ghost
    den.write("aaaaaaa6", 2)
    den.write("aaaaaaa7", 60, *talk, lastUpdated=ago(0.1))
    den.write("aaaaaaa8", 0.1, *talk, lastUpdated=ago(60))
    den.write("aaaaaaa9", 60, *talk, {"$set": {"lastUpdated": ago(0.1)}})
    den.write("aaaaaab1", 4, *talk)  # drawn along by a subagent's file
    den.write("aaaaaab1", 3, *talk, kind="subagent")
    den.write("aaaaaab2", 3, *talk, {"$set": {"messages": []}})
    den.write("r_aaaab3", 3, *talk)  # no letters and digits only: its ghost goes alone
    den.write("r_aaaab3", 2)
    den.write("aaaaaab4", 60, *talk, lastUpdated=None)
    den.write("aaaaaab5", 2, *talk, sessionId=None)
    den.document("aaaaaab6", 60, *talk)
    den.document("aaaaaab7", 2, *talk)
    den.document("aaaaaab8", 2)
    den.write("aaaaaab9", 40, *talk)  # the older half of one conversation
    den.write("aaaaaab9", 3, *talk)
    (den.chats / "session-2026-01-01T10-00-aaaaaac1.jsonl").write_text("{ torn\n", encoding="utf-8")
    (den.chats / "session-2026-01-01T10-00-aaaaaac2.json").write_text("", encoding="utf-8")
    den.write("aaaaaac3", 60, *talk, name="notes-aaaaaac3.jsonl")
    den.write("aaaaaac4", 2, *talk, name=f"session-2026-01-01T10-00-aaaaaac4-{'b' * 8}.jsonl")


@pytest.mark.parametrize("version", ["0.61.0"])
def test_the_real_cli_deletes_what_is_foretold_and_nothing_else(
    den: Den, real_gemini: Gemini, version: str
) -> None:
    filled(den)
    before = {file.name for file in den.chats.iterdir()}
    foretold = den.due()
    assert foretold
    assert foretold < before
    assert sorted(den.clean_up(real_gemini, version, foretold)) == sorted(foretold)
    assert den.clean_up(real_gemini, version, set()) == set()


def test_the_real_cli_of_the_time_of_documents_deletes_them_too(den: Den, real_gemini: Gemini) -> None:
    talk = (asked(), answered())
    for short, days, more in (
        ("aaaaaab1", 60, {}),
        ("aaaaaab2", 29, {}),
        ("aaaaaab3", 2, {"kind": "subagent"}),
    ):
        den.document(short, days, *talk, **more)
    den.document("aaaaaab4", 2, INFO)
    den.document("aaaaaab5", 3, *talk)  # drawn along by a subagent's file
    den.document("aaaaaab5", 2, *talk, kind="subagent")
    (den.chats / "session-2026-01-01T10-00-aaaaaab6.json").write_text("{ torn", encoding="utf-8")
    foretold = den.due()
    assert den.clean_up(real_gemini, "0.38.2", foretold) == foretold


@pytest.mark.parametrize(
    "told",
    [{"maxAge": "12h", "minRetention": "1h"}, {"maxCount": 3}, {"maxAge": "1h"}],
    ids=str,
)
def test_the_real_cli_understands_the_settings_in_the_same_way(
    den: Den, real_gemini: Gemini, told: dict[str, Any]
) -> None:
    for number, days in enumerate((0.1, 0.6, 1, 10, 20, 40)):
        den.write(f"bbbbbbb{number}", days, asked(), answered())
    den.write("bbbbbbb9", 2)
    den.retain(**told)
    foretold = den.due()
    assert den.clean_up(real_gemini, "0.61.0", foretold) == foretold


def test_age_counts_from_the_last_change_alone(den: Den) -> None:
    old = den.write("aaaaaaa1", 1, asked(), answered(), lastUpdated=ago(20))
    threat = den.threats()[old]
    assert (threat.reason, threat.native_id) == ("expired", session_id("aaaaaaa1"))
    assert threat.at is not None
    assert abs(threat.at - (NOW + timedelta(days=10))) < timedelta(seconds=1)


def test_why_a_file_goes_is_told(den: Den) -> None:
    filled(den)
    told = {name[-14:-6]: threat for name, threat in den.threats().items() if name.endswith(".jsonl")}
    reasons = {short: told[short].reason for short in ("aaaaaaa3", "aaaaaaa4", "aaaaaaa5", "aaaaaac1")}
    assert reasons == {
        "aaaaaaa3": "nothing-to-resume",
        "aaaaaaa4": "subagent",
        "aaaaaaa5": "nothing-to-resume",
        "aaaaaac1": "unloadable",
    }


def test_a_ghost_draws_the_real_file_along(den: Den) -> None:
    real = den.write("aaaaaaa6", 3, asked(), answered())
    ghost = den.write("aaaaaaa6", 2)
    found = den.threats()
    assert (found[ghost].reason, found[ghost].at, found[ghost].cause) == ("empty", None, None)
    assert (found[real].reason, found[real].at, found[real].cause) == ("empty", None, den.chats / ghost)


def test_folders_named_by_a_hash_are_left_alone(tmp_path: Path) -> None:
    den = Den(tmp_path, "ab" * 32)
    den.write("aaaaaaa1", 60, asked(), answered())
    assert den.threats() == {}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("", 30 * DAY),
        ("{}", 30 * DAY),
        ('{"general": {}}', 30 * DAY),
        ('{"general": {"sessionRetention": {"maxAge": "7d"}}}', 7 * DAY),
        ('{"general": {"sessionRetention": {"maxAge": "4w"}}}', 28 * DAY),
        ('{"general": {"sessionRetention": {"maxAge": "1m"}}}', 30 * DAY),
        ('{"general": {"sessionRetention": {"maxAge": "24h"}}}', DAY),
        ('// mine\n{"general": /* all */ {"sessionRetention": {"maxAge": "7d"}}} // "end', 7 * DAY),
        ('{"a": "// \\" /*", "general": {"sessionRetention": {"maxAge": "7d"}}}', 7 * DAY),
        ('{"general": {"sessionRetention": {"enabled": false}}}', None),
        ('{"general": {"sessionRetention": {"maxAge": "12h"}}}', None),
        ('{"general": {"sessionRetention": {"maxAge": "12h", "minRetention": "1h"}}}', DAY / 2),
        ('{"general": {"sessionRetention": {"maxAge": "7 days"}}}', None),
        ('{"general": {"sessionRetention": {"maxAge": "0d"}}}', None),
        ('{"general": {"sessionRetention": {"maxAge": 7}}}', None),
        ('{"general": {"sessionRetention": {"maxAge": "", "maxCount": 3}}}', None),
        ('{"general": {"sessionRetention": {"maxCount": 0}}}', None),
    ],
)
def test_settings_are_understood_as_the_cli_does(den: Den, text: str, seconds: float | None) -> None:
    den.settings(text)
    found = read_retention_limit(den.home)
    assert (found.seconds, found.problems) == (seconds, ())


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '"x"',
        '{"general": 3}',
        '{"general": {"sessionRetention": []}}',
        "\x00\xff",
        "/*",
        "[" * 100_000,
        '{"a": ' * 5_000,
        '{"general": {"sessionRetention": {"maxAge": "7d",}}}',
    ],
)
def test_broken_settings_mean_the_usual_rules_and_a_problem(den: Den, text: str) -> None:
    den.write("aaaaaaa1", 60, asked(), answered())
    den.settings(text)
    found = read_retention_limit(den.home)
    if text == "/*":  # nothing but a comment: no settings
        assert found.problems == ()
    else:
        assert [one.path for one in found.problems] == [str(den.home.path / "settings.json")]
    assert found.seconds == 30 * DAY
    assert len(den.due()) == 1


def test_huge_numbers_do_not_overflow(den: Den) -> None:
    den.write("aaaaaaa1", 60, asked(), answered())
    den.retain(maxAge="999999999999999999d", maxCount=1e300)
    assert read_retention_rules(den.home).is_on
    assert den.due() == set()


def test_no_home_means_no_threat(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for path in (tmp_path / "nothing", tmp_path / "file"):
        home = AgentHome(path, path / "tmp")
        assert list(find_threats(home)) == []
        assert read_retention_limit(home).seconds == 30 * DAY
