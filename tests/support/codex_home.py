"""Builds small Codex CLI homes with threads in the formats of several versions."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]
START_MS = 1_772_355_600_000
"""2026-03-01T09:00:00Z."""
DAY = "2026/03/01"


def thread_id(second: int, number: int) -> str:
    """Return a version 7 UUID created `second` seconds after the start."""
    digits = f"{START_MS + second * 1000:012x}"
    return f"{digits[:8]}-{digits[8:]}-7000-8000-{number:012x}"


def at(second: int) -> str:
    return f"2026-03-01T09:{second // 60:02}:{second % 60:02}.000Z"


def line(second: int, kind: str, payload: Mapping[str, Any]) -> Json:
    return {"timestamp": at(second), "type": kind, "payload": dict(payload)}


def meta_line(thread: str, second: int, **more: Any) -> Json:
    about = {
        "id": thread,
        "timestamp": at(second),
        "cwd": "/home/ann/zoo",
        "cli_version": "0.118.0",
        "source": "cli",
    }
    return line(second, "session_meta", {**about, **more})


def message_line(second: int, role: str, text: str, **more: Any) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text}]
    return line(second, "response_item", {"type": "message", "role": role, "content": content, **more})


def event_line(second: int, kind: str, **more: Any) -> Json:
    return line(second, "event_msg", {"type": kind, **more})


def usage(given: int, output: int) -> Json:
    figures = {"cached_input_tokens": 0, "reasoning_output_tokens": 0, "total_tokens": given + output}
    return {"input_tokens": given, "output_tokens": output, **figures}


def token_line(second: int, total: Json, last: Json) -> Json:
    return event_line(second, "token_count", info={"total_token_usage": total, "last_token_usage": last})


def turn(second: int, prompt: str, answer: str, total: int) -> list[Json]:
    """Return a turn as 0.118 writes it, with 100 input and 10 output tokens; it is response number `total`."""
    return [
        message_line(second, "user", prompt),
        event_line(second, "user_message", message=prompt),
        event_line(second + 1, "agent_message", message=answer),
        message_line(second + 1, "assistant", answer),
        token_line(second + 1, usage(100 * total, 10 * total), usage(100, 10)),
    ]


def with_ordinals(lines: Sequence[Json], start: int = 0) -> list[Json]:
    """Return lines with ordinals, as 0.144 and later write them."""
    return [{**line, "ordinal": start + place} for place, line in enumerate(lines)]


def as_text(lines: Sequence[Json]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


def write(home: Path, name: str, lines: Sequence[Json], folder: str = f"sessions/{DAY}") -> Path:
    """Write a rollout into a home; `name` is the thread's id, or that and the rollout's own id."""
    file = home / folder / f"rollout-2026-03-01T10-00-00-{name}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(as_text(lines), encoding="utf-8")
    return file
