"""Real transcripts of other people: read whole, counted exactly, and counted a second time without the reader."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator

from retold.agents import claude
from retold.agents.protocol import Source
from retold.model.problem import Problem
from retold.model.serialization import decode_session, format_utc, schemas, to_builtins
from retold.model.session import Message, Session, ToolCall
from retold.reading.disk import printable_path
from support.cases import strings
from support.session_json import session_json

pytestmark = [pytest.mark.shared, pytest.mark.slow]

Json = dict[str, Any]
SYNTHETIC = "<synthetic>"
REFUSED = {"obra__x__medium-conversation.jsonl"}
"""Holds checkpoints and nothing that was said."""


class Told(NamedTuple):
    """What reading a file amounts to, over all its sessions."""

    prompts: int
    messages: int
    requests: int
    calls: int
    errors: int
    problems: int
    total: int | None


EXPECTED = {
    "Dicklesworthstone__2.0.50__claude_code_auth_fix.jsonl": (6, 15, 9, 5, 0, 5, 18963),
    "axsaucedo__2.0.76__agent-a83a52df.jsonl": (3, 6, 3, 3, 0, 0, 13665),
    "axsaucedo__2.0.76__agent-ad2e270f.jsonl": (3, 6, 3, 3, 0, 0, 14397),
    "axsaucedo__2.0.76__bd0558b4-9828-4a61-883e-dd4112cc16df.jsonl": (10, 20, 10, 4, 0, 0, 55195),
    "axsaucedo__2.0.76__c33f4584-b23b-41d8-893c-d01609de8895.jsonl": (10, 20, 10, 4, 0, 0, 38999),
    "axsaucedo__2.0.76__f1f1f1f1-5555-4555-8555-555555555555.jsonl": (1, 2, 1, 0, 0, 0, 100),
    "d-kimuson__1.0.108__5c0375b4-57a5-4f26-b12d-d022ee4e51b7.jsonl": (1, 53, 20, 21, 3, 0, 375764),
    "d-kimuson__1.0.98__1af7fc5e-8455-4414-9ccd-011d40f70b2a.jsonl": (1, 29, 7, 12, 1, 0, 116963),
    "d-kimuson__1.0.98__fe5e1c67-53e7-4862-81ae-d0e013e3270b.jsonl": (2, 437, 170, 167, 23, 0, 3838581),
    "d-kimuson__2.0.28__agent-test-hash-123.jsonl": (0, 2, 1, 0, 0, 0, 110),
    "daaain__1.0.0__edge_cases.jsonl": (4, 12, 3, 3, 1, 6, 670),
    "entireio-cli__2.0.64__cde341db-b80a-44f5-b0f2-94db2ef7a164.jsonl": (4, 178, 75, 73, 8, 0, 3686156),
    "entireio-cli__2.0.74__1b3e6441-62e3-4b41-8a0c-9d252f531f7a.jsonl": (1, 6, 2, 1, 0, 0, 69852),
    "entireio-cli__2.0.76__198393f2-22db-477b-ac77-1825bea883ae.jsonl": (3, 48, 12, 10, 0, 0, 1306041),
    "entireio-cli__2.0.76__473cf2ee-b2e2-450c-bbcc-001ceb2e7ac0.jsonl": (1, 6, 2, 1, 0, 0, 46916),
    "entireio-cli__2.1.12__8b418ea5-895d-4ad5-abe8-4489d36e454f.jsonl": (7, 99, 22, 31, 1, 0, 1013229),
    "entireio-cli__2.1.14__839b35f7-4dbd-4d93-9772-3c272cc87caa.jsonl": (9, 197, 49, 60, 0, 0, 5274465),
    "entireio-cli__2.1.17__2577a596-e227-47e1-bea8-752f792cbc24.jsonl": (5, 64, 18, 17, 0, 0, 584754),
    "entireio-cli__2.1.19__3b1b6293-65e1-4c3e-9f95-d530143332f2.jsonl": (6, 137, 38, 36, 1, 0, 2509429),
    "entireio-cli__2.1.1__f048d5e5-aed8-40cf-ae53-01854883ef02.jsonl": (1, 3, 1, 1, 0, 0, 24606),
    "entireio-cli__2.1.22__bc3bf53b-19fe-4209-b30a-a1acffaf6703.jsonl": (1, 29, 5, 10, 2, 0, 220866),
    "entireio-cli__2.1.29__1ecba475-5b18-4058-a0cb-e87703f6f792.jsonl": (3, 31, 8, 7, 1, 0, 389103),
    "entireio-cli__2.1.2__97007e37-53bd-4456-9a49-c0f8081081a7.jsonl": (2, 128, 35, 38, 2, 0, 2370080),
    "entireio-cli__2.1.30__0c97beba-bfcb-4f84-9950-e0354bfc808b.jsonl": (3, 51, 14, 13, 1, 0, 928321),
    "entireio-cli__2.1.31__9265dc4e-fa94-4c08-9932-fca495724501.jsonl": (1, 13, 4, 3, 0, 0, 105818),
    "entireio-cli__2.1.32__e4d2c72e-cd24-427e-a02f-360e7a284090.jsonl": (1, 20, 5, 7, 0, 0, 225627),
    "entireio-cli__2.1.33__6da7d497-00e2-460d-a6b4-d280e0314cfd.jsonl": (3, 14, 6, 3, 0, 0, 259918),
    "entireio-cli__2.1.34__9b76dc0f-dc1b-4822-ac56-53cfa3fbc032.jsonl": (1, 6, 2, 1, 0, 0, 52588),
    "entireio-cli__2.1.36__2b945d54-dd2b-4f60-b3b0-7b0252349003.jsonl": (1, 36, 11, 12, 0, 0, 555807),
    "entireio-cli__2.1.37__fe1ffae3-f297-4dc1-9b9d-8a2b49059af7.jsonl": (1, 67, 22, 26, 1, 0, 1477262),
    "entireio-cli__2.1.38__9d440bfc-a64f-43be-aa10-10a3764a59ea.jsonl": (2, 20, 5, 5, 0, 0, 150072),
    "entireio-cli__2.1.39__78368290-ee0b-474f-8052-bb65a9a581d6.jsonl": (2, 41, 11, 14, 0, 0, 498736),
    "entireio-cli__2.1.3__559081d6-534c-40b9-afeb-5eb72cd84309.jsonl": (2, 33, 7, 9, 2, 0, 227656),
    "entireio-cli__2.1.41__acdd84ab-e724-42c8-925d-420b2a4f1861.jsonl": (3, 53, 14, 17, 0, 0, 464031),
    "entireio-cli__2.1.42__c010174c-a7cd-4bcc-b7d4-61258d6c463f.jsonl": (2, 122, 32, 46, 1, 0, 2894343),
    "entireio-cli__2.1.4__5a3bb1c8-c3ce-466e-b487-24212cbf1da1.jsonl": (1, 4, 1, 1, 0, 0, 38399),
    "entireio-cli__2.1.5__21a2e002-8b63-45db-8e0d-1978fe0600aa.jsonl": (3, 40, 12, 9, 0, 0, 1179309),
    "entireio-cli__2.1.5__d1423492-e4f5-4a86-a997-1f1c8d09a940.jsonl": (1, 79, 20, 23, 0, 0, 2241116),
    "entireio-cli__2.1.6__b10910e8-cd28-489f-a2a4-731834d5f168.jsonl": (1, 4, 1, 1, 0, 0, 25395),
    "entireio-cli__2.1.7__ddcb0cdc-1940-4eef-bf79-07cdf3f53d9f.jsonl": (1, 3, 1, 1, 0, 0, 25391),
    "entireio-skills__2.1.101__c5b3d2bd-c81b-487f-94a7-8fcb42d2abcb.jsonl": (6, 82, 24, 27, 0, 0, 880315),
    "entireio-skills__2.1.108__4a07cdcd-b417-4393-84b1-eb50b109af95.jsonl": (4, 114, 37, 38, 1, 0, 1735066),
    "entireio-skills__2.1.119__95047199-69f0-49a5-9432-18cba428ecec.jsonl": (12, 352, 144, 133, 5, 0, 12814635),
    "git-ai-project__1.0.111__example-claude-code.jsonl": (1, 37, 13, 13, 0, 0, 325743),
    "git-ai-project__2.0.69__claude-code-with-thinking.jsonl": (1, 7, 2, 1, 0, 0, 40575),
    "git-ai-project__2.1.114__claude-model-not-last.jsonl": (1, 2, 1, 0, 0, 1, 28),
    "git-ai-project__x__agent-a1b2c3d4e5f6.jsonl": (1, 3, 1, 1, 0, 0, 27),
    "git-ai-project__x__agent-test-sub-1.jsonl": (0, 4, 2, 1, 0, 0, 90),
    "jazzyalex__1.9.0__schema_drift.jsonl": (1, 3, 1, 0, 0, 3, 12),
    "jazzyalex__2.1.111__small.jsonl": (4, 23, 1, 2, 0, 8, 0),
    "jazzyalex__2.1.207__0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f.jsonl": (1, 2, 1, 0, 0, 1, 14),
    "jazzyalex__2.1.207__agent-a0ad4f44468bdf20d.jsonl": (0, 3, 1, 0, 0, 2, 12),
    "kvsankar__2.0.75__claude_forked_session.jsonl": (4, 14, 7, 3, 0, 0, 1580),
    "kvsankar__2.0.75__claude_golden.jsonl": (1, 6, 3, 2, 0, 0, 860),
    "kvsankar__2.0.75__claude_with_rejection.jsonl": (4, 12, 6, 4, 0, 0, 2260),
    "kvsankar__2.0.75__session_with_compaction.jsonl": (3, 12, 6, 3, 0, 0, 255950),
    "obra__1.0.119__tiny-conversation.jsonl": (2, 7, 3, 1, 0, 0, 76906),
    "obra__2.0.9__short-conversation.jsonl": (1, 2, 1, 0, 0, 0, 17004),
    "slopus__1.0.51__c9de1ad3-3355-4392-b91b-6fcf853be4b0.jsonl": (3, 22, 8, 8, 0, 0, 161815),
    "slopus__1.0.51__duplicate-assistant-response.jsonl": (2, 4, 2, 0, 0, 0, 32255),
    "slopus__1.0.51__f0b4ca22-f8e4-4c07-a952-8302b638e125.jsonl": (3, 185, 64, 63, 4, 0, 3075118),
    "slopus__1.0.51__permission-prompt-aborted-with-interrupt.jsonl": (1, 4, 1, 1, 0, 0, 16178),
    "slopus__1.0.51__resumed-session.jsonl": (2, 4, 2, 0, 0, 0, 32594),
    "slopus__1.0.51__simple-session.jsonl": (1, 2, 1, 0, 0, 0, 16189),
    "slopus__1.0.56__0-say-lol-session.jsonl": (1, 2, 1, 0, 0, 0, 17764),
    "slopus__1.0.56__1-continue-run-ls-tool.jsonl": (2, 6, 3, 1, 0, 0, 53581),
    "slopus__1.0.71__task_non_sdk.jsonl": (1, 13, 5, 3, 0, 0, 107387),
    "slopus__2.1.179__rate-limit.jsonl": (1, 1, 0, 0, 0, 0, 0),
}  # fmt: skip
"""Prompts, messages, requests, calls, errors, problems and tokens in each file."""


@pytest.fixture(scope="module")
def corpus(shared: Path) -> list[Path]:
    return sorted((shared / "corpus" / "public" / "claude").rglob("*.jsonl"))


def sessions(file: Path) -> list[Session]:
    found = claude.read(Source(file))
    assert not isinstance(found, Problem), found
    return [claude.join([reading]) for reading in found]


@cache
def whole(file: Path) -> list[Session]:
    return sessions(file)


def readable(corpus: Iterable[Path]) -> list[Path]:
    return [file for file in corpus if file.name not in REFUSED]


def told(read: Iterable[Session]) -> Told:
    rows = [
        (
            session.counts.prompts,
            session.counts.messages,
            session.usage.requests,
            session.counts.tool_calls,
            session.counts.tool_errors,
            len(session.problems),
            session.usage.total or 0,
        )
        for session in read
    ]
    return Told(*map(sum, zip(*rows, strict=True)))


def test_every_file_is_counted_exactly(corpus: list[Path]) -> None:
    assert {file.name: tuple(told(whole(file))) for file in readable(corpus)} == EXPECTED


def test_what_holds_no_words_is_refused(corpus: list[Path]) -> None:
    refused = {file.name for file in corpus if isinstance(claude.read(Source(file)), Problem)}
    assert refused == REFUSED


# A second count, of the raw lines and without any help of ours.


def lines(file: Path) -> Iterator[Json]:
    """Every object in a file, also where several stand on one line."""
    decoder = json.JSONDecoder()
    for line in file.read_text(encoding="utf-8", errors="replace").split("\n"):
        text = line.strip()
        while text.startswith("{"):
            try:
                value, end = decoder.raw_decode(text)
            except ValueError:
                break
            yield value
            text = text[end:].lstrip()


def messages(file: Path, kind: str) -> Iterator[tuple[Json, Json]]:
    """The lines of one kind with what is said in them, each id once: a line written again counts as it was last."""
    said = {
        line.get("uuid") or number: line
        for number, line in enumerate(lines(file))
        if line.get("type") == kind and isinstance(line.get("message"), dict)
    }
    return ((line, line["message"]) for line in said.values())


def blocks(message: Json, kind: str) -> Iterator[Json]:
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == kind:
            yield block


def responses(file: Path) -> dict[Any, Json]:
    """The usage of each response of the session that the file ends with: of all its lines, the one with most output."""
    found: dict[Any, Json] = {}
    owners = [line["sessionId"] for line in lines(file) if "uuid" in line and "sessionId" in line]
    for line, message in messages(file, "assistant"):
        usage = message.get("usage")
        if line.get("sessionId") not in (None, *owners[-1:]) or line.get("isApiErrorMessage"):
            continue
        if isinstance(usage, dict) and message.get("model") != SYNTHETIC:
            name = message.get("id") or line.get("requestId") or line["uuid"]
            if usage["output_tokens"] >= found.get(name, usage)["output_tokens"]:
                found[name] = usage
    return found


def spent(usage: Json) -> int:
    counts = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(usage.get(count) or 0 for count in counts)


def is_recorded(file: Path) -> bool:
    """Whether the file tells tokens at all: otherwise they are guessed."""
    return bool(responses(file))


def is_trimmed(file: Path) -> bool:
    """Whether every id in a file was made the same: nothing can be told apart then."""
    return "trimmed for fixture" in file.read_text(encoding="utf-8")


def test_each_response_counts_once_with_its_largest_output(corpus: list[Path]) -> None:
    for file in readable(corpus):
        if is_recorded(file) and not is_trimmed(file):
            found = responses(file)
            assert sum(session.usage.requests for session in whole(file)) == len(found), file
            assert sum(session.usage.total or 0 for session in whole(file)) == sum(
                map(spent, found.values())
            ), file


def test_tokens_are_split_as_they_were_recorded(corpus: list[Path]) -> None:
    names = {"cached": "cache_read_input_tokens", "cache_write": "cache_creation_input_tokens"}
    for file in readable(corpus):
        if is_recorded(file) and not is_trimmed(file):
            for ours, theirs in names.items():
                recorded = sum(usage.get(theirs) or 0 for usage in responses(file).values())
                assert sum(getattr(session.usage, ours) or 0 for session in whole(file)) == recorded, (
                    file,
                    ours,
                )


def test_each_call_is_there_once_and_has_its_result(corpus: list[Path]) -> None:
    for file in readable(corpus):
        if is_trimmed(file):
            continue
        asked = {
            block["id"]
            for _, message in messages(file, "assistant")
            for kind in ("tool_use", "server_tool_use")
            for block in blocks(message, kind)
            if "id" in block
        }
        given = {
            block.get("tool_use_id")
            for _, message in messages(file, "user")
            for block in blocks(message, "tool_result")
        }
        assert Counter(call.id for call in calls(file)) == dict.fromkeys(asked, 1), file
        assert {call.id for call in calls(file) if call.status == "unknown"} == asked - given, file


def calls(file: Path) -> Iterator[ToolCall]:
    for session in whole(file):
        for entry in session.timeline:
            if isinstance(entry, Message):
                yield from (part for part in entry.parts if isinstance(part, ToolCall))


def test_every_result_is_what_the_model_saw(corpus: list[Path]) -> None:
    for file in readable(corpus):
        texts = {
            block.get("tool_use_id"): block.get("content")
            for _, message in messages(file, "user")
            for block in blocks(message, "tool_result")
        }
        for call in calls(file):
            text = texts.get(call.id)
            if isinstance(text, str) and not text.startswith("<tool_use_error>"):
                assert text in (call.result, call.error, *call.other_results), (file, call.id)


SAID = {
    "entireio-cli__2.0.64__cde341db-b80a-44f5-b0f2-94db2ef7a164.jsonl": [2, 40, 167, 179],
    "entireio-cli__2.0.74__1b3e6441-62e3-4b41-8a0c-9d252f531f7a.jsonl": [3],
    "entireio-cli__2.0.76__198393f2-22db-477b-ac77-1825bea883ae.jsonl": [4, 8, 26],
    "entireio-cli__2.1.12__8b418ea5-895d-4ad5-abe8-4489d36e454f.jsonl": [6, 8, 11, 106, 112, 119, 141],
    "entireio-cli__2.1.14__839b35f7-4dbd-4d93-9772-3c272cc87caa.jsonl": [4, 59, 115, 121, 134, 177, 184, 209, 233],
    "entireio-cli__2.1.17__2577a596-e227-47e1-bea8-752f792cbc24.jsonl": [4, 27, 63, 69, 80],
    "entireio-cli__2.1.19__3b1b6293-65e1-4c3e-9f95-d530143332f2.jsonl": [4, 94, 105, 143, 178, 256],
    "entireio-cli__2.1.29__1ecba475-5b18-4058-a0cb-e87703f6f792.jsonl": [5, 8, 32],
    "entireio-cli__2.1.2__97007e37-53bd-4456-9a49-c0f8081081a7.jsonl": [7, 119],
    "entireio-cli__2.1.30__0c97beba-bfcb-4f84-9950-e0354bfc808b.jsonl": [4, 29, 63],
    "entireio-cli__2.1.33__6da7d497-00e2-460d-a6b4-d280e0314cfd.jsonl": [5, 11, 26],
    "entireio-cli__2.1.38__9d440bfc-a64f-43be-aa10-10a3764a59ea.jsonl": [5, 8],
    "entireio-cli__2.1.41__acdd84ab-e724-42c8-925d-420b2a4f1861.jsonl": [4, 32, 127],
    "entireio-cli__2.1.5__d1423492-e4f5-4a86-a997-1f1c8d09a940.jsonl": [4],
    "entireio-skills__2.1.101__c5b3d2bd-c81b-487f-94a7-8fcb42d2abcb.jsonl": [8, 43, 48, 78, 94, 104],
    "entireio-skills__2.1.108__4a07cdcd-b417-4393-84b1-eb50b109af95.jsonl": [7, 93, 104, 142],
    "entireio-skills__2.1.119__95047199-69f0-49a5-9432-18cba428ecec.jsonl": [
        8, 178, 202, 207, 214, 257, 291, 294, 400, 402, 425, 432,
    ],
    "d-kimuson__1.0.108__5c0375b4-57a5-4f26-b12d-d022ee4e51b7.jsonl": [1],
    "d-kimuson__1.0.98__fe5e1c67-53e7-4862-81ae-d0e013e3270b.jsonl": [2, 434],
    "kvsankar__2.0.75__claude_forked_session.jsonl": [1, 3, 7, 11],
    "kvsankar__2.0.75__claude_with_rejection.jsonl": [1, 5, 9, 11],
    "slopus__1.0.51__c9de1ad3-3355-4392-b91b-6fcf853be4b0.jsonl": [2, 9, 20],
    "slopus__1.0.51__f0b4ca22-f8e4-4c07-a952-8302b638e125.jsonl": [2, 4, 120],
    "slopus__1.0.71__task_non_sdk.jsonl": [1],
}  # fmt: skip
"""The lines in which a person speaks, in files whose every line in a person's place was looked at."""


def test_a_person_is_heard_and_nobody_else(corpus: list[Path]) -> None:
    for file in corpus:
        if file.name in SAID:
            assert list(spoken_lines(file)) == SAID[file.name], file


def spoken_lines(file: Path) -> Iterator[int]:
    """The numbers of the lines that prompts come from: words in the queue have no id, and are told by their time."""
    numbers: dict[str, int] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), start=1):
        record = json.loads(line) if line.strip() else {}
        numbers[record.get("uuid") or f"{record.get('operation')} {record.get('timestamp')}"] = number
    for session in whole(file):
        for entry in session.timeline:
            if isinstance(entry, Message) and entry.prompt is not None:
                at = "" if entry.at is None else format_utc(entry.at)
                yield numbers[entry.id or f"enqueue {at}"]


def test_no_word_of_a_person_or_a_model_is_lost(corpus: list[Path]) -> None:
    for file in readable(corpus):
        held = "\x00".join(text for session in whole(file) for text in strings(to_builtins(session)))
        for kind in ("user", "assistant"):
            for _, message in messages(file, kind):
                for text in texts(message.get("content")):
                    assert printable_path(text) in held, (file, text[:80])


def texts(content: Any) -> Iterator[str]:
    """What is said in content; without the marks around an error, which are no part of it."""
    match content:
        case str():
            bare = content.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
            yield from (line for line in bare.split("\n") if line.strip())
        case list():
            for block in content:
                yield from texts(block)
        case {"type": "text" | "thinking", **rest}:
            yield from texts(rest.get("text") or rest.get("thinking"))
        case {"type": "tool_result", "content": held}:
            yield from texts(held)


def test_every_session_is_valid_in_both_views(corpus: list[Path]) -> None:
    validator = Draft202012Validator(schemas()["session"])
    for file in readable(corpus):
        found = claude.read(Source(file))
        assert not isinstance(found, Problem)
        for reading in found:
            for view in ("full", "active"):
                session = claude.join([reading], view)
                wire = session_json(session)
                validator.validate(json.loads(wire))
                assert decode_session(wire) == session
