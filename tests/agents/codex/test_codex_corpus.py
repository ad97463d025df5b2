"""Everything that real versions and other people's users wrote: read whole, counted exactly, and nothing lost.

The numbers in `EXPECTED` are held against the lines themselves by `counted`, which knows nothing of the reader: prompts by
the events of typed words, calls by items, tokens by the growth of the running total or by the
records that have a response's id. Where a file has something else (made-up shapes), its lines were counted by hand.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator

from retold.agents import codex
from retold.agents.protocol import Source
from retold.model.problem import Problem
from retold.model.serialization import decode_session, schemas, to_builtins
from retold.model.session import Session, View
from support.cases import strings
from support.session_json import session_json
from support.synced_archive import sync_conversations

pytestmark = [pytest.mark.shared, pytest.mark.slow]

Json = dict[str, Any]
CORPORA = ("codex-cli", "public/codex")
CALLS = (
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "web_search_call",
    "tool_search_call",
    "image_generation_call",
)
VIEWS: tuple[View, ...] = ("full", "active")
SECOND = 1000


class Told(NamedTuple):
    """What a file amounts to: in the session, and in its lines."""

    prompts: int
    calls: int
    requests: int
    input: int
    cached: int
    output: int
    reasoning: int


class Rest(NamedTuple):
    """What only the session tells."""

    messages: int
    errors: int
    problems: tuple[str, ...]


_MISMATCHED = ("token-total-mismatch",)
EXPECTED: dict[str, tuple[Told, Rest]] = {
    "migrated__rollout-2026-04-10T10-00-00-019d78fc-c449-7300-92a1-1e92604a4f6a.jsonl": (Told(2, 30, 14, 356812, 317184, 3403, 2257), Rest(90, 1, ())),
    "migrated__rollout-2026-07-14T00-04-18-019f5c38-cac3-7280-98f9-4fb47729fd4d.jsonl": (Told(0, 6, 7, 157535, 151296, 7272, 0), Rest(31, 1, ())),
    "rollout-2026-11-15T17-57-34-01a1e05b-7ce5-7d93-b964-4e38f485d0a6.jsonl": (Told(2, 2, 4, 1000, 160, 84, 16), Rest(12, 0, ())),
    "rollout-2026-11-15T17-58-15-01a1e05c-1d93-7d21-a6b3-d5cb5a2592aa.jsonl": (Told(1, 1, 2, 1100, 80, 102, 8), Rest(7, 0, ())),
    "rollout-2026-11-15T17-58-16-01a1e05c-1ffa-7af1-938b-a80cef2490e1.jsonl": (Told(1, 2, 2, 1500, 80, 142, 8), Rest(12, 0, ())),
    "rollout-2026-11-15T17-58-16-01a1e05c-2290-7273-9040-00c399fc3b50.jsonl": (Told(1, 1, 2, 1900, 80, 182, 8), Rest(7, 0, ())),
    "rollout-2026-11-15T17-58-17-01a1e05c-24ed-7081-8dc8-1519613b3ed8.jsonl": (Told(1, 2, 2, 2300, 80, 222, 8), Rest(12, 0, ())),
    "rollout-2026-11-15T17-58-59-01a1e05c-c7e2-7d81-b44d-5d94dc7568db.jsonl": (Told(3, 4, 7, 11200, 280, 1092, 28), Rest(19, 0, ())),
    "rollout-2026-11-15T17-59-00-01a1e05c-c7e2-7d81-b44d-5d94dc7568db_01a1e05c-cbbd-7f12-9ff8-cda92553ab0f.jsonl": (Told(3, 4, 7, 11600, 280, 1132, 28), Rest(19, 0, ())),
    "Dicklesworthstone__0.42.0__rollout-tool-call.jsonl": (Told(1, 0, 0, 0, 0, 0, 0), Rest(2, 0, ("unknown-record", "unknown-record"))),
    "Dicklesworthstone__1.0.0__codex_session.jsonl": (Told(2, 0, 0, 0, 0, 0, 0), Rest(8, 0, ("unknown-type", "unknown-type"))),
    "Tien-Lam__0.107.0__rollout-test-v2.jsonl": (Told(2, 0, 0, 0, 0, 0, 0), Rest(6, 0, ("unknown-record",))),
    "axsaucedo__0.108.0__rollout-2026-03-11T23-52-07-019ce0d1-2189-7980-bde2-9b5c5028916a.jsonl": (Told(1, 1, 0, 0, 0, 0, 0), Rest(5, 0, ())),
    "entireio-git-sync__0.118.0__019d7dbf-7740-75c1-8da4-7be31d857597.jsonl": (Told(1, 43, 24, 1403201, 1344128, 3395, 3118), Rest(119, 1, ())),
    "entireio-git-sync__0.118.0__019d7e2f-0041-7310-951c-94020254dfc9.jsonl": (Told(0, 77, 2, 275339, 138112, 1027, 414), Rest(239, 3, ())),
    "entireio-git-sync__0.118.0__019d7e30-2f7a-7f60-a942-c59ab0be98d9.jsonl": (Told(0, 121, 29, 4275127, 4130944, 4811, 2618), Rest(368, 3, ())),
    "entireio-git-sync__0.120.0__019d95a4-64c6-7b20-97f0-81e518d38258.jsonl": (Told(3, 41, 21, 1084509, 970112, 4355, 3231), Rest(123, 4, ())),
    "entireio-git-sync__0.125.0__019ddd6f-3680-7fb3-8f93-e567af97d303.jsonl": (Told(4, 20, 15, 283738, 235648, 2949, 816), Rest(69, 0, ())),
    "entireio-git-sync__0.126.0-alpha.8__019ddeed-72de-7371-bf67-ac505f4386ba.jsonl": (Told(12, 154, 110, 4333873, 4109568, 13389, 2786), Rest(398, 3, ())),
    "entireio-git-sync__0.128.0__019df213-84b8-7b00-b3ef-a326c2842044.jsonl": (Told(3, 57, 20, 705274, 590336, 4810, 2252), Rest(150, 4, ())),
    "entireio-git-sync__0.130.0__019e27f2-b7de-71c3-a0f9-70d6539231ba.jsonl": (Told(21, 224, 163, 19553386, 18811008, 39078, 17458), Rest(667, 28, ())),
    "entireio-git-sync__0.139.0__019ed628-d563-7e40-bbb1-93a6a302d688.jsonl": (Told(0, 4, 5, 57112, 29184, 390, 772), Rest(17, 0, ())),
    "entireio-git-sync__0.139.0__019ed6c3-ed8a-7931-9967-3839ce81c127.jsonl": (Told(0, 13, 14, 218639, 180736, 1292, 3546), Rest(42, 3, ())),
    "entireio-skills__0.118.0__019d78fc-c449-7300-92a1-1e92604a4f6a.jsonl": (Told(2, 30, 14, 356812, 317184, 3403, 2257), Rest(90, 1, ())),
    "entireio-skills__0.126.0-alpha.8__019dd4b9-496d-7581-a780-16f20aecff69.jsonl": (Told(2, 31, 13, 449871, 360832, 2946, 1686), Rest(89, 0, ())),
    "git-ai-project__0.99.0-alpha.24__codex-session-simple.jsonl": (Told(1, 1, 0, 0, 0, 0, 0), Rest(3, 0, ())),
    "git-ai-project__0.99.0-alpha.24__codex-session-updated.jsonl": (Told(1, 2, 0, 0, 0, 0, 0), Rest(4, 0, ())),
    "jazzyalex__0.106.0__small.jsonl": (Told(1, 0, 0, 0, 0, 0, 0), Rest(2, 0, ("unknown-record", "unknown-record"))),
    "jazzyalex__0.146.0__small.jsonl": (Told(3, 12, 1, 16341, 3584, 18, 63), Rest(30, 1, ("bad-timestamp", "orphan-tool-result"))),
    "jazzyalex__0.50.0__codex_050_legacy.jsonl": (Told(0, 0, 0, 0, 0, 0, 0), Rest(0, 0, ("unknown-record", "unknown-record"))),
    "jazzyalex__0.51.0__codex_051_usage.jsonl": (Told(0, 0, 0, 0, 0, 0, 0), Rest(0, 0, ("unknown-record", "unknown-record"))),
    "jazzyalex__0.52.0__codex_052_raw.jsonl": (Told(0, 0, 0, 0, 0, 0, 0), Rest(0, 0, ("unknown-record", "unknown-record", "unknown-record", "unknown-record", "unknown-record"))),
    "jazzyalex__0.53.0__codex_053_rate_limit.jsonl": (Told(0, 0, 1, 12091, 10880, 54, 128), Rest(1, 0, ("unknown-record",))),
    "kenn-io__0.128.0__blockquotes_session.jsonl": (Told(1, 0, 0, 0, 0, 0, 0), Rest(2, 0, ())),
    "kvsankar__0.77.0__codex_golden.jsonl": (Told(2, 1, 1, 300, 120, 120, 15), Rest(7, 0, _MISMATCHED)),
    "kvsankar__0.77.0__codex_with_escalation.jsonl": (Told(5, 4, 1, 1500, 500, 700, 100), Rest(17, 0, _MISMATCHED)),
    "kvsankar__0.77.0__session_with_compaction.jsonl": (Told(4, 2, 1, 85000, 30000, 37000, 5000), Rest(16, 0, _MISMATCHED)),
    "lparlett__0.61.1-alpha.1__codex_file_updates.jsonl": (Told(1, 1, 1, 1200, 0, 50, 0), Rest(5, 0, ())),
    "simonw__0.77.0__sample_codex_session.jsonl": (Told(1, 0, 0, 0, 0, 0, 0), Rest(3, 0, ())),
}  # fmt: skip
MADE_UP = frozenset(
    name
    for name in EXPECTED
    if name.startswith(("Dicklesworthstone", "Tien-Lam", "jazzyalex", "kvsankar__0.77.0__session"))
)
"""Samples of shapes that no version wrote; their lines were counted by hand."""


def files(shared: Path) -> list[Path]:
    return sorted(file for corpus in CORPORA for file in (shared / "corpus" / corpus).rglob("*.jsonl"))


def read(file: Path) -> Session:
    found = codex.read(Source(file))
    assert not isinstance(found, Problem), found
    return codex.join(found)


def told(session: Session) -> tuple[Told, Rest]:
    usage, counts = session.usage, session.counts
    figures = () if usage.estimated else (usage.input, usage.cached, usage.output, usage.reasoning)
    summed = [figure or 0 for figure in figures] or [0, 0, 0, 0]
    requests = 0 if usage.estimated else usage.requests
    codes = tuple(problem.code for problem in session.problems)
    return (
        Told(counts.prompts, counts.tool_calls, requests, *summed),
        Rest(counts.messages, counts.tool_errors, codes),
    )


def lines_of(file: Path) -> list[tuple[Json, bool]]:
    """The lines of a file and of those it goes on from, each with whether it is the thread's own."""
    lines = [json.loads(line) for line in file.read_bytes().split(b"\n") if line]
    meta = lines[0]["payload"]
    base = meta.get("history_base")
    if base is None:
        return [(line, is_own) for line, is_own in zip(lines, own(lines), strict=True)]
    (before,) = (other for other in file.parent.iterdir() if other.stem.endswith(base["thread_id"]))
    is_same = json.loads(before.read_bytes().split(b"\n")[0])["payload"]["id"] == meta["id"]
    kept = [line for line, _ in lines_of(before) if line["ordinal"] < base["end_ordinal_exclusive"]]
    return [(line, is_same) for line in kept] + [(line, True) for line in lines]


def own(lines: list[Json]) -> Iterator[bool]:
    """Whether each line is the thread's own: in a copy, from the first turn on that was begun after the thread."""
    metas = [line["payload"] for line in lines[:2] if line["type"] == "session_meta"]
    is_own = len({meta["id"] for meta in metas}) == 1 and "forked_from_id" not in metas[0]
    for line in lines:
        turn = line["payload"].get("turn_id")
        if not is_own and line["type"] in ("turn_context", "event_msg") and turn:
            is_own = int(turn.replace("-", "")[:12], 16) >= milliseconds(metas[0]["timestamp"]) - SECOND
        yield is_own


def milliseconds(time: str) -> int:
    return int(datetime.fromisoformat(time).timestamp() * 1000)


def counted(file: Path) -> Told:
    """What the lines of a file amount to, told without the reader."""
    lines = lines_of(file)
    is_subagent = isinstance(lines[0][0]["payload"].get("source"), dict)
    payloads = [(line["type"], line["payload"], is_own) for line, is_own in lines]
    spoken = [is_own for kind, payload, is_own in payloads if kind == "event_msg" and is_spoken(payload)]
    if not spoken:
        spoken = [
            is_own for kind, payload, is_own in payloads if kind == "response_item" and looks_typed(payload)
        ]
    calls = [payload for kind, payload, _ in payloads if kind == "response_item" and payload["type"] in CALLS]
    return Told(0 if is_subagent else sum(spoken), len(calls), *tokens(payloads))


def is_spoken(payload: Json) -> bool:
    item = payload.get("item")
    return payload["type"] == "user_message" or (isinstance(item, dict) and item["type"] == "UserMessage")


def looks_typed(payload: Json) -> bool:
    if payload.get("role") != "user" or payload["type"] != "message":
        return False
    content = payload["content"]
    return not (content if isinstance(content, str) else content[0]["text"]).startswith(("<", "# AGENTS.md"))


def tokens(payloads: list[tuple[str, Json, bool]]) -> Iterator[int]:
    """The responses of a thread's own lines and what they took."""
    names = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
    taken: dict[str, list[int]] = {}
    before = [0, 0, 0, 0]
    has_records = any(kind == "token_usage_record" for kind, _, _ in payloads)
    for kind, payload, is_own in payloads:
        info = payload.get("info")
        if kind == "token_usage_record" and is_own:
            taken[payload["response_id"]] = [payload["usage"][name] for name in names]
        elif (
            not has_records and payload.get("type") == "token_count" and info and "total_token_usage" in info
        ):
            total = [info["total_token_usage"][name] for name in names]
            if is_own and total != before:
                taken[str(len(taken))] = [now - then for now, then in zip(total, before, strict=True)]
            before = total
    given, cached, output, reasoning = (
        sum(column) for column in zip(*taken.values() or [(0,) * 4], strict=True)
    )
    yield from (len(taken), given, cached, output - reasoning, reasoning)


def test_every_file_is_read_and_counted_exactly(shared: Path) -> None:
    assert {file.name: told(read(file)) for file in files(shared)} == EXPECTED


def test_the_lines_themselves_say_the_same(shared: Path) -> None:
    for file in files(shared):
        if file.name not in MADE_UP:
            assert counted(file) == EXPECTED[file.name][0], file.name


def test_a_migrated_file_tells_what_its_original_tells(shared: Path) -> None:
    """`codex migrate-rollouts --apply` of 0.166 rewrote one of the files here in place; of the other only that is left."""
    original = read(
        shared
        / "corpus/public/codex/entireio__skills/entireio-skills__0.118.0__019d78fc-c449-7300-92a1-1e92604a4f6a.jsonl"
    )
    (file,) = (shared / "corpus/codex-cli").glob("migrated__rollout-2026-04-10*")
    migrated = read(file)
    assert conversation(migrated) == conversation(original)
    assert (migrated.usage, migrated.counts, migrated.key) == (original.usage, original.counts, original.key)


def conversation(session: Session) -> list[Json]:
    """What was said and called, without what a migration adds of times and processes."""
    messages = [entry for entry in to_builtins(session)["timeline"] if entry["type"] == "message"]
    return [
        {key: entry[key] for key in ("role", "prompt", "model")} | {"parts": [*map(bare, entry["parts"])]}
        for entry in messages
    ]


def bare(part: Json) -> Json:
    return {key: value for key, value in part.items() if key not in ("extra", "native_status", "at")}


def test_every_session_is_valid_in_both_views(shared: Path) -> None:
    validator = Draft202012Validator(schemas()["session"])
    for file in files(shared):
        found = codex.read(Source(file))
        assert not isinstance(found, Problem)
        for view in VIEWS:
            wire = session_json(codex.join(found, view))
            validator.validate(json.loads(wire))
            assert decode_session(wire) == codex.join(found, view)


def test_nothing_that_was_said_is_lost(shared: Path) -> None:
    for file in files(shared):
        tree = to_builtins(read(file))
        whole = (
            "".join(part.get("text") or "" for part in entry.get("parts", ())) for entry in tree["timeline"]
        )
        held = "\x00".join((*strings(tree), *whole))
        lost = [text for text in said(file) if text.strip() not in held]
        assert not lost, file


def said(file: Path) -> Iterator[str]:
    """Every text that a message, a thought, an event or an output of the file holds."""
    for line in file.read_bytes().split(b"\n"):
        payload = json.loads(line)["payload"] if line else {}
        for key in ("content", "summary", "output", "message", "text", "last_agent_message"):
            yield from texts(payload.get(key))


def texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            wrapped = json.loads(value) if value.startswith('{"output":') else None
            yield wrapped["output"] if wrapped else value
        case list():
            for item in value:
                yield from texts(item.get("text") if isinstance(item, dict) else item)


def test_a_made_home_has_the_tokens_that_its_maker_expects(shared: Path, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, shared / "truth" / "make_home.py", tmp_path / "home"],
        check=True,
        capture_output=True,
    )
    expected = json.loads((tmp_path / "home" / "EXPECTED.json").read_bytes())["codex"]
    usages = [session.usage for session in sync_conversations(tmp_path / "home", agent="codex")]
    tokens = expected["tokens_each"]
    assert len(usages) == expected["sessions"]
    for usage in usages:
        assert (usage.input, usage.cached, usage.requests) == (tokens["input"], tokens["cached"], 1)
        # Codex counts reasoning into the output; we do not.
        assert ((usage.output or 0) + (usage.reasoning or 0), usage.reasoning) == (tokens["output"], 100)
