"""The same small conversations in every agent's file format, so that one test covers all of them."""

import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from support.gemini_home import DAY, sha

Json = dict[str, Any]
ROOT = "/home/ann/dev/almanac"


class Turn(NamedTuple):
    """A prompt, a tool's output and the agent's answer."""

    prompt: str
    output: str
    answer: str


class Form(NamedTuple):
    """An agent's file format for conversations."""

    write: Callable[[Path, int, Sequence[Turn]], Path]
    """Takes the home, a number that determines the ids, and the turns."""
    key: Callable[[int], str]
    tool: str
    is_lines: bool


def turns(*words: str) -> list[Turn]:
    """Return one turn per word; the word occurs in the prompt, the output and the answer."""
    return [Turn(f"asked {word}", f"given {word}", f"answered {word}") for word in words]


def dice(seed: int) -> Random:
    """Return a random generator with a fixed seed."""
    return Random(seed)  # noqa: S311 - not used for secrets


def uuid(number: int) -> str:
    return f"{number:08x}-3b2d-4f68-9a01-5d2e8c4b6f13"


def at(second: int) -> str:
    return f"{DAY}T{9 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000Z"


def turn_mark(turn: Turn) -> str:
    """Return four hex digits for the ids of a turn, because agents never use an id twice."""
    return f"{zlib.crc32(turn.prompt.encode()) & 0xFFFF:04x}"


def as_lines(records: Iterable[Json]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n" for record in records)


def write_file(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# Gemini CLI --------------------------------------------------------------------------------------------------------


def gemini_records(number: int, said: Sequence[Turn]) -> list[Json]:
    records: list[Json] = []
    for place, turn in enumerate(said):
        name, second = f"{uuid(number)}-{place:04}-{turn_mark(turn)}", place * 10
        call = {
            "id": f"read_file-{name}",
            "name": "read_file",
            "args": {"file_path": f"{ROOT}/ephemeris.py"},
            "result": [{"functionResponse": {"id": f"read_file-{name}", "name": "read_file",
                                             "response": {"output": turn.output}}}],
            "status": "success",
            "timestamp": at(second + 2),
        }  # fmt: skip
        tokens = {"input": 100, "output": 10, "cached": 0, "thoughts": 5, "tool": 0, "total": 115}
        records += [
            {"id": f"{name}-u", "timestamp": at(second), "type": "user", "content": turn.prompt},
            {"id": f"{name}-g", "timestamp": at(second + 1), "type": "gemini", "content": turn.answer,
             "model": "gemini-2.5-pro", "tokens": tokens, "toolCalls": [call]},
        ]  # fmt: skip
    return records


def gemini_head(number: int, said: Sequence[Turn]) -> Json:
    times = {"startTime": at(0), "lastUpdated": at(10 * len(said))}
    return {"sessionId": uuid(number), "projectHash": sha(ROOT), **times}


def gemini_file(home: Path, number: int, ending: str) -> Path:
    (home / ".gemini/tmp/almanac").mkdir(parents=True, exist_ok=True)
    write_file(home / ".gemini/tmp/almanac/.project_root", ROOT)
    return home / f".gemini/tmp/almanac/chats/session-{DAY}T09-00-{uuid(number)[:8]}.{ending}"


def gemini_json(home: Path, number: int, said: Sequence[Turn]) -> Path:
    document = {**gemini_head(number, said), "messages": gemini_records(number, said)}
    return write_file(gemini_file(home, number, "json"), json.dumps(document, indent=2, ensure_ascii=False))


def gemini_lines(home: Path, number: int, said: Sequence[Turn]) -> Path:
    head = {**gemini_head(number, ()), "kind": "main"}
    return write_file(gemini_file(home, number, "jsonl"), as_lines([head, *gemini_records(number, said)]))


def gemini_key(number: int) -> str:
    return f"gemini:session-{DAY}T09-00-{uuid(number)[:8]}"


# Claude Code -------------------------------------------------------------------------------------------------------


def claude_records(number: int, said: Sequence[Turn], start: int = 0) -> list[Json]:
    """Return records that each name the one before; `start` is the number of the first turn."""
    records: list[Json] = []
    common = {
        "isSidechain": False,
        "userType": "external",
        "cwd": ROOT,
        "sessionId": uuid(number),
        "version": "2.0.50",
    }
    before: str | None = None
    for place, turn in enumerate(said, start):
        second, stem = place * 10, f"{number:08x}-{place:04}-{turn_mark(turn)}-8000"
        names = [f"{stem}-{kind:012x}" for kind in range(4)]
        call = {
            "type": "tool_use",
            "id": f"toolu_{stem}",
            "name": "Bash",
            "input": {"command": "cat ephemeris.py"},
        }
        given = {"type": "tool_result", "tool_use_id": f"toolu_{stem}", "content": turn.output}
        usage = {"input_tokens": 100, "output_tokens": 10}
        answer = {"id": f"msg_{stem}", "model": "claude-sonnet-4-5", "role": "assistant", "usage": usage}
        rest: list[Json] = [
            {"type": "user", "message": {"role": "user", "content": turn.prompt}},
            {"type": "assistant", "requestId": f"req_{stem}", "message": {**answer, "content": [call]}},
            {"type": "user", "message": {"role": "user", "content": [given]}},
            {"type": "assistant", "requestId": f"req_{stem}-2",
             "message": {**answer, "id": f"msg_{stem}-2", "content": [{"type": "text", "text": turn.answer}]}},
        ]  # fmt: skip
        for offset, (name, record) in enumerate(zip(names, rest, strict=True)):
            about = {"uuid": name, "parentUuid": before, "timestamp": at(second + offset)}
            records.append({**common, **about, **record})
            before = name
    return records


def claude(home: Path, number: int, said: Sequence[Turn]) -> Path:
    file = home / ".claude/projects/-home-ann-dev-almanac" / f"{uuid(number)}.jsonl"
    return write_file(file, as_lines(claude_records(number, said)))


def claude_key(number: int) -> str:
    return f"claude:{uuid(number)}"


# Codex CLI ---------------------------------------------------------------------------------------------------------


def thread(number: int) -> str:
    return f"019a0000-0000-7000-8000-{number:012x}"


def codex_records(number: int, said: Sequence[Turn]) -> list[Json]:
    def line(second: int, kind: str, payload: Json) -> Json:
        return {"timestamp": at(second), "type": kind, "payload": payload}

    about = {"id": thread(number), "timestamp": at(0), "cwd": ROOT, "cli_version": "0.60.0", "source": "cli"}
    records = [line(0, "session_meta", about)]
    for place, turn in enumerate(said):
        second, call = place * 10, f"call_{number}_{place}"
        asked = [{"type": "input_text", "text": turn.prompt}]
        answered = [{"type": "output_text", "text": turn.answer}]
        arguments = json.dumps({"command": ["cat", "ephemeris.py"]})
        figures = {"input_tokens": 100, "cached_input_tokens": 0, "output_tokens": 10, "total_tokens": 110}
        count = {name: figure * (place + 1) for name, figure in figures.items()}
        info = {"total_token_usage": count, "last_token_usage": figures}
        records += [
            line(second, "response_item", {"type": "message", "role": "user", "content": asked}),
            line(second, "event_msg", {"type": "user_message", "message": turn.prompt, "images": []}),
            line(second + 1, "response_item",
                 {"type": "function_call", "name": "shell", "arguments": arguments, "call_id": call}),
            line(second + 2, "response_item",
                 {"type": "function_call_output", "call_id": call, "output": turn.output}),
            line(second + 3, "response_item", {"type": "message", "role": "assistant", "content": answered}),
            line(second + 3, "event_msg", {"type": "agent_message", "message": turn.answer}),
            line(second + 3, "event_msg", {"type": "token_count", "info": info, "rate_limits": None}),
        ]  # fmt: skip
    return records


def codex(home: Path, number: int, said: Sequence[Turn]) -> Path:
    year, month, day = DAY.split("-")
    folder = home / ".codex/sessions" / year / month / day
    return write_file(
        folder / f"rollout-{DAY}T09-00-00-{thread(number)}.jsonl", as_lines(codex_records(number, said))
    )


def codex_key(number: int) -> str:
    return f"codex:{thread(number)}"


FORMS = {
    "gemini-json": Form(gemini_json, gemini_key, "read_file", is_lines=False),
    "gemini-lines": Form(gemini_lines, gemini_key, "read_file", is_lines=True),
    "claude": Form(claude, claude_key, "Bash", is_lines=True),
    "codex": Form(codex, codex_key, "shell", is_lines=True),
}
