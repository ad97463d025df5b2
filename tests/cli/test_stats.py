"""`retold stats`: every request once, on the right day, with the arithmetic that it came about by."""

import csv
import io
import json
import os
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from unittest.mock import patch

import pytest

from retold.archive.store import Store
from support.gemini_home import GeminiHome, call, gemini, user
from support.person import Json, Person

BY = ("day", "week", "month", "model", "project", "agent", "session")
PRICE = Decimal("0.000275")
"""Of an answer of `made_home.gemini`: 100 tokens in, 10 out and 5 thought, by gemini-2.5-pro."""


class Ann(Person):
    """Somebody whose machine is in some zone."""

    zone = "UTC"

    @property
    def env(self) -> dict[str, str]:
        return {**super().env, "TZ": self.zone}

    def stats(self, *arguments: str) -> list[Json]:
        done = self.run("stats", "--json", *arguments)
        assert (done.code, done.err) == (0, ""), done
        return done.objects

    def counted(self, by: str, *arguments: str) -> dict[str, int]:
        return {
            line["of"]: line["requests"] for line in self.stats("--by", by, *arguments) if line["requests"]
        }


@pytest.fixture
def home(tmp_path: Path) -> GeminiHome:
    return GeminiHome(tmp_path / "ann")


@pytest.fixture
def ann(home: GeminiHome) -> Iterator[Ann]:
    yield Ann(home.folder)
    time.tzset()  # what a run in another zone has left behind


def answers(*times: str) -> list[Json]:
    """Return a prompt and answers at these times."""
    told = [{**gemini(f"g{number}", 1, "Hi."), "timestamp": at} for number, at in enumerate(times)]
    return [{**user("u1", 1, "Hello"), "timestamp": times[0]}, *told]


def put(home: GeminiHome, ann: Ann, messages: Sequence[Json], zone: str = "UTC") -> None:
    home.lines("den", 1, 1, messages, kind="main")
    ann.zone = zone
    ann.sync()
    if hasattr(time, "tzset"):
        with patch.dict(os.environ, {"TZ": zone}):
            time.tzset()


def usage_sum(lines: Sequence[Json], figure: str) -> int:
    return sum(line["usage"][figure] or 0 for line in lines)


# Days ------------------------------------------------------------------------------------------------------------

needs_zones = pytest.mark.skipif(not hasattr(time, "tzset"), reason="this system's zone cannot be changed")


@needs_zones
def test_a_day_is_that_of_the_zone_unless_told_otherwise(home: GeminiHome, ann: Ann) -> None:
    put(
        home,
        ann,
        answers("2026-03-01T22:59:59Z", "2026-03-01T23:00:00Z", "2026-03-02T00:00:00Z"),
        "Europe/Berlin",
    )
    assert ann.counted("day") == {"2026-03-01": 1, "2026-03-02": 2}
    assert ann.counted("day", "--utc") == {"2026-03-01": 2, "2026-03-02": 1}
    assert {line["zone"] for line in ann.stats("--utc")} == {"UTC"}
    assert {line["zone"][:4] for line in ann.stats()} <= {"CET ", "CEST"}
    assert "days in C" in ann.run("stats").out


@needs_zones
def test_the_days_on_which_clocks_change_have_23_and_25_hours(home: GeminiHome, ann: Ann) -> None:
    short = ("2026-03-28T22:59:00Z", "2026-03-28T23:00:00Z", "2026-03-29T21:59:00Z", "2026-03-29T22:00:00Z")
    long = ("2026-10-24T21:59:00Z", "2026-10-24T22:00:00Z", "2026-10-25T22:59:00Z", "2026-10-25T23:00:00Z")
    put(home, ann, answers(*short, *long), "Europe/Berlin")
    days = {
        "2026-03-28": 1,
        "2026-03-29": 2,
        "2026-03-30": 1,
        "2026-10-24": 1,
        "2026-10-25": 2,
        "2026-10-26": 1,
    }
    assert ann.counted("day") == days
    for day in ("2026-03-29", "2026-10-25"):
        assert ann.counted("day", "--since", day, "--until", day) == {day: 2}
    assert ann.counted("month") == {"2026-03": 4, "2026-10": 4}


@needs_zones
@pytest.mark.parametrize(
    ("zone", "first"),
    [
        ("Asia/Kathmandu", "2026-03-01T18:15:00Z"),
        ("Australia/Eucla", "2026-03-01T15:15:00Z"),
        ("Asia/Kolkata", "2026-03-01T18:30:00Z"),
    ],
)
def test_days_that_begin_at_a_quarter_past(home: GeminiHome, ann: Ann, zone: str, first: str) -> None:
    before = first.replace("15:00Z", "14:59Z").replace("30:00Z", "29:59Z")
    put(home, ann, answers(before, first), zone)
    assert ann.counted("day") == {"2026-03-01": 1, "2026-03-02": 1}


def test_a_session_across_months_counts_in_both(home: GeminiHome, ann: Ann) -> None:
    put(home, ann, answers("2026-01-31T23:50:00Z", "2026-02-01T00:10:00Z"))
    lines = ann.stats("--by", "month")
    assert [(line["of"], line["sessions"], line["requests"], line["cost_usd"]) for line in lines] == [
        ("2026-01", 1, 1, "0.000275"),
        ("2026-02", 1, 1, "0.000275"),
    ]
    assert ann.counted("month", "--until", "2026-01-31") == {"2026-01": 1}
    assert ann.counted("month", "--since", "2026-02-01") == {"2026-02": 1}
    assert ann.counted("session") == {next(iter(ann.rows())): 2}


def test_weeks_are_those_of_the_calendar(home: GeminiHome, ann: Ann) -> None:
    put(
        home,
        ann,
        answers(
            "2024-12-29T12:00:00Z", "2024-12-30T12:00:00Z", "2025-01-05T12:00:00Z", "2025-01-06T12:00:00Z"
        ),
    )
    assert ann.counted("week") == {"2024-W52": 1, "2025-W01": 2, "2025-W02": 1}


def test_times_at_the_ends_of_the_calendar_stop_nothing(home: GeminiHome, ann: Ann) -> None:
    put(home, ann, answers("0001-01-01T00:00:00Z", "1969-12-31T23:00:00Z", "9999-12-31T23:59:59Z"))
    assert sum(ann.counted("day").values()) == 3
    assert ann.run("stats").code == 0
    assert ann.run("stats", "--explain").code == 0


# Totals ----------------------------------------------------------------------------------------------------------


def several(home: GeminiHome) -> None:
    """Make work of several models, projects and tools: rewound, with errors, guessed, and without a price."""
    shell = [{**call("run_shell_command", {"command": "ls"}, 2), "id": f"s{number}", "status": status}
             for number, status in enumerate(("error", "success", "success"))]  # fmt: skip
    edit = call("replace", {"file_path": "/home/ann/dev/almanac/tide.py"}, 3)
    lines = [
        user("u1", 1, "One"),
        gemini("g1", 2, "A.", shell),
        user("u2", 3, "Two"),
        gemini("g2", 3, "B.", [edit]),
    ]
    home.lines(
        "den", 1, 1, [*lines, {"$rewindTo": "u2"}, user("u3", 4, "Three"), gemini("g3", 5, "C.")], kind="main"
    )
    unknown = {**gemini("g4", 22, "D."), "model": "house-7b"}
    home.lines("pond", 2, 20, [user("u4", 21, "Four"), unknown], kind="main", root="/home/ann/dev/pond")
    silent = {name: value for name, value in gemini("g5", 32, "E" * 400).items() if name != "tokens"}
    home.json("pond", 3, 30, [user("u5", 31, "Five" * 100), silent], root="/home/ann/dev/pond")


@pytest.mark.parametrize("by", BY)
def test_by_whatever_it_is_counted_the_sum_is_the_same(home: GeminiHome, ann: Ann, by: str) -> None:
    several(home)
    ann.sync()
    lines = ann.stats("--by", by)
    assert sum(line["requests"] for line in lines) == 4  # the rewound one was paid for
    assert usage_sum(lines, "total") == 4 * 115
    assert usage_sum(lines, "input") == 400
    assert usage_sum(lines, "reasoning") == 20
    assert sum(Decimal(line["cost_usd"] or 0) for line in lines) == 3 * PRICE
    assert sum(line["unpriced_requests"] for line in lines) == 1
    assert sum(line["tool_calls"] for line in lines if line["tool_calls"]) == 4
    assert sum(line["tool_errors"] for line in lines if line["tool_errors"]) == 1
    guessed = [line["estimated"] for line in lines if line["estimated"]]
    assert [one["requests"] for one in guessed] == [1]
    assert [one["usage"]["estimated"] for one in guessed] == [True]
    assert {line["by"] for line in lines} == {by}


def test_what_has_no_price_is_never_free(home: GeminiHome, ann: Ann) -> None:
    several(home)
    ann.sync()
    (house,) = (line for line in ann.stats("--by", "model") if line["of"] == "house-7b")
    assert (house["cost_usd"], house["unpriced_requests"], house["usage"]["total"]) == (None, 1, 115)
    shown = ann.run("stats", "--by", "model").out
    assert "no price for 1 request: house-7b (1)" in " ".join(shown.split())


def test_tools_have_calls_and_no_tokens(home: GeminiHome, ann: Ann) -> None:
    several(home)
    ann.sync()
    lines = {line["of"]: line for line in ann.stats("--by", "tool")}
    assert list(lines) == ["run_shell_command", "replace"]
    shell = lines["run_shell_command"]
    assert (shell["tool_calls"], shell["tool_errors"], shell["tool_retries"]) == (3, 1, 1)
    assert (shell["usage"], shell["cost_usd"], shell["requests"]) == (None, None, None)
    assert shell["tool"]["canonical"] == "shell_exec"


@pytest.mark.parametrize(
    ("filters", "requests"),
    [
        (("--model", "house"), 1),
        (("--project", "den"), 0),
        (("--project", "pond"), 1),
        (("--agent", "gemini"), 4),
        (("--agent", "codex"), 0),
        (("--tool", "replace"), 3),
        (("--since", "2026-03-01", "--until", "2026-03-01"), 4),
        (("--until", "2026-02-28"), 0),
        (("--since", "2026-03-01T09:15"), 1),
        (("--tag", "none"), 0),
    ],
)
def test_filters_mean_what_they_say(
    home: GeminiHome, ann: Ann, filters: tuple[str, ...], requests: int
) -> None:
    several(home)
    home.mark("pond", "/home/ann/dev/pond")
    home.mark("den", "/home/ann/dev/almanac")
    ann.sync()
    done = ann.run("stats", "--json", "--by", "agent", *filters)
    assert sum(line["requests"] for line in done.objects) == requests
    if not done.objects:
        unknown = {
            "--tag": "retold: no tag is called none: there are none\n",
            "--project": "retold: no project is called den: there are pond, almanac\n",
        }
        assert (done.code, done.err) == (1, f"retold: nothing to count\n{unknown.get(filters[0], '')}")


def test_a_model_is_asked_for_and_not_the_sessions_that_used_it(home: GeminiHome, ann: Ann) -> None:
    other = {**gemini("g2", 3, "B."), "model": "gemini-2.5-flash"}
    put(home, ann, [user("u1", 1, "One"), gemini("g1", 2, "A."), other])
    assert ann.counted("model", "--model", "flash") == {"gemini-2.5-flash": 1}
    assert [line["requests"] for line in ann.stats("--by", "day", "--model", "flash")] == [1]


def test_subagents_count_with_the_conversation_that_called_them(home: GeminiHome, ann: Ann) -> None:
    put(home, ann, [user("u1", 1, "One"), gemini("g1", 2, "A.")])
    child = [
        {
            "sessionId": "k3x9qa",
            "startTime": "2026-03-01T09:02:00Z",
            "lastUpdated": "2026-03-01T09:02:30Z",
            "kind": "subagent",
        }
    ]
    child += [{**gemini("c1", 2, "Found.")}]
    folder = f"tmp/den/chats/{next(iter(ann.rows().values()))['native_id']}"
    home.write(f"{folder}/k3x9qa.jsonl", "".join(json.dumps(row) + "\n" for row in child))
    ann.sync()
    (day,) = ann.stats("--by", "day")
    assert (day["sessions"], day["requests"]) == (1, 2)
    assert sorted(ann.counted("session").values()) == [1, 1]


# The arithmetic --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", BY)
def test_every_figure_is_explained_by_its_requests(home: GeminiHome, ann: Ann, by: str) -> None:
    several(home)
    ann.sync()
    out = ann.run("stats", "--explain", "--by", by).out
    lines = ann.stats("--by", by)
    assert out.count("✓ as in the report") == sum(1 + bool(line["estimated"]) for line in lines)
    assert "✗" not in out
    assert "100 input x $1.25/M + 15 output x $10/M = $0.000275" in " ".join(out.split())
    assert "100 input, 10 output, 5 reasoning: no price" in " ".join(out.split())


def test_requests_for_programs(home: GeminiHome, ann: Ann) -> None:
    several(home)
    ann.sync()
    requests = ann.stats("--explain", "--by", "model")
    assert [one["message"] for one in requests if one["cost_usd"]] == ["g1", "g2", "g3", "g5"]
    for one in requests:
        charged = sum(Decimal(part["usd_per_million"]) * part["tokens"] / 10**6 for part in one["charges"])
        assert charged == Decimal(one["cost_usd"] or 0)
    assert [one["message"] for one in requests if one["usage"]["estimated"]] == ["g5"]
    assert requests[0]["at"] == "2026-03-01T09:02:00Z"


def test_a_prompt_over_the_limit_says_which_price_it_has(home: GeminiHome, ann: Ann) -> None:
    tokens = {"input": 300_000, "output": 10, "cached": 0, "thoughts": 0, "tool": 0, "total": 300_010}
    put(home, ann, [user("u1", 1, "One"), {**gemini("g1", 2, "A."), "tokens": tokens}])
    out = " ".join(ann.run("stats", "--explain").out.split())
    assert "300,000 input x $2.5/M + 10 output x $15/M = $0.75015" in out
    assert "over 200,000 tokens" in out


@pytest.mark.parametrize(
    "wrong", [("--explain", "--by", "tool"), ("--explain", "--csv"), ("--json", "--csv"), ("--by", "year")]
)
def test_what_cannot_be_asked_is_told_in_a_line(ann: Ann, wrong: tuple[str, ...]) -> None:
    done = ann.run("stats", *wrong)
    assert done.code == 2
    assert done.out == ""


# Forms -----------------------------------------------------------------------------------------------------------


def test_a_table_for_spreadsheets(home: GeminiHome, ann: Ann) -> None:
    several(home)
    ann.sync()
    rows = list(csv.DictReader(io.StringIO(ann.run("stats", "--csv", "--by", "model").out)))
    assert [(row["of"], row["requests"], row["cost_usd"]) for row in rows] == [
        ("gemini-2.5-pro", "3", "0.000825"),
        ("house-7b", "1", ""),
    ]


@pytest.mark.parametrize("columns", ["120", "80", "40"])
def test_the_overview_fits_and_says_what_it_rests_on(home: GeminiHome, tmp_path: Path, columns: str) -> None:
    several(home)

    class Narrow(Ann):
        @property
        def env(self) -> dict[str, str]:
            return {**super().env, "COLUMNS": columns}

    ann = Narrow(home.folder)
    ann.sync()
    done = ann.run("stats")
    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= int(columns)
    told = " ".join(done.out.split())
    for words in ("genai-prices 0.", "days in UTC", "gemini-2.5-pro", "tide.py", "run_shell"):
        assert words in told
    assert tmp_path.name not in told


def test_without_anything_there_is_nothing_to_count(tmp_path: Path) -> None:
    ann = Ann(tmp_path / "nobody")
    for arguments in ((), ("--json",), ("--csv",), ("--by", "model"), ("--explain",)):
        done = ann.run("stats", *arguments)
        assert done.code == 1
        assert done.err.splitlines()[-1] == "retold: nothing to count"


@pytest.mark.parametrize(
    "arguments",
    [(), *(("--json", "--by", by) for by in (*BY, "tool")), ("--csv",), ("--explain",)],
    ids=" ".join,
)
def test_without_an_archive_it_syncs_first_and_says_so(
    home: GeminiHome, ann: Ann, arguments: tuple[str, ...]
) -> None:
    several(home)
    assert not (ann.archive / "retold.db").exists()
    first, again = ann.run("stats", *arguments), ann.run("stats", *arguments)
    told, coverage = first.err.splitlines()
    assert told == "retold: no archive yet: reading what your agents have kept"
    assert coverage.startswith("3 files found: 3 read, 0 unchanged, 3 new sessions; ")
    assert (first.code, again.code, again.err) == (0, 0, "")
    assert first.out == again.out != ""


def test_an_archive_without_sums_gets_them_first(home: GeminiHome, ann: Ann) -> None:
    several(home)
    ann.sync()
    with Store(str(ann.archive), can_write=True) as record:
        record.connection.execute("DELETE FROM facts WHERE name LIKE 'priced%'")
    done = ann.run("stats", "--json")
    assert done.code == 0
    assert "no sums yet" in done.err
    assert sum(line["requests"] for line in done.objects) == 4


def test_hostile_names_reach_neither_terminal_nor_spreadsheet(home: GeminiHome, ann: Ann) -> None:
    hostile = {
        **gemini("g1", 2, "A.", [{**call("=cmd()\x1b[31m", {}, 2)}]),
        "model": "=HYPERLINK(1)\x1b]0;x\x07",
    }
    put(home, ann, [user("u1", 1, "One"), hostile])
    for arguments in (
        (),
        ("--by", "model"),
        ("--by", "tool"),
        ("--explain",),
        ("--csv", "--by", "model"),
        ("--json", "--by", "tool"),
    ):
        out = ann.run("stats", *arguments).out
        assert not set(out) & {chr(code) for code in (*range(10), *range(11, 32), 127)}, arguments
    assert "'=HYPERLINK" in ann.run("stats", "--csv", "--by", "model").out
