"""Requests with known tokens, and sessions made of them in every agent's file format."""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from support.conversation_files import as_lines, uuid, write_file
from support.gemini_home import sha

Json = dict[str, Any]
ROOT = "/home/ann/dev/almanac"
START = datetime(2026, 3, 28, 20, 0, tzinfo=UTC)
"""Sessions start within three days of this; they cross midnights, a clock change and the end of a month."""
FIGURES = ("input", "cached", "cache_write", "output", "reasoning", "tool", "total")


class Request(NamedTuple):
    """Tokens of a request in the ledger's terms: `input` is the whole prompt, `output` excludes reasoning."""

    number: int
    """Unique among all requests."""
    minute: int
    model: str
    input: int
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    tool: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output + self.reasoning + self.tool


Totals = dict[str, int]


def totals(requests: Iterable[Request]) -> Totals:
    """Return the summed figures of requests, and their number."""
    known = list(requests)
    figures = {name: sum(getattr(request, name) for request in known) for name in FIGURES}
    return {**figures, "requests": len(known)}


def sum_usages(usages: Iterable[Json]) -> Totals:
    """Return the same sums from retold's usages; a figure that is not recorded counts as 0."""
    known = list(usages)
    return {name: sum(usage[name] or 0 for usage in known) for name in (*FIGURES, "requests")}


def moment(minute: int, second: int = 0) -> datetime:
    return START + timedelta(minutes=minute, seconds=second)


def at(minute: int, second: int = 0) -> str:
    return f"{moment(minute, second):%Y-%m-%dT%H:%M:%S}.000Z"


# Gemini CLI -------------------------------------------------------------------------------------------------------


def gemini_messages(session: int, requests: Sequence[Request]) -> list[Json]:
    messages: list[Json] = []
    for request in requests:
        name = f"{uuid(session)}-{request.number:04}"
        tokens = {
            "input": request.input,
            "output": request.output,
            "cached": request.cached,
            "thoughts": request.reasoning,
            "tool": request.tool,
            "total": request.total,
        }
        answer = {"type": "gemini", "content": f"answered {request.number}", "model": request.model}
        asked = {"type": "user", "content": [{"text": f"asked {request.number}"}]}
        messages += [
            {"id": f"{name}-u", "timestamp": at(request.minute), **asked},
            {"id": f"{name}-g", "timestamp": at(request.minute, 5), **answer, "tokens": tokens},
        ]
    return messages


def gemini_head(session: int, requests: Sequence[Request], root: str = ROOT) -> Json:
    times = {"startTime": at(requests[0].minute), "lastUpdated": at(requests[-1].minute, 5)}
    return {"sessionId": uuid(session), "projectHash": sha(root), **times, "kind": "main"}


def gemini_file(home: Path, session: int, minute: int, ending: str) -> Path:
    """Return the path of a file that starts at a minute; write the project's root beside its folder."""
    write_file(home / ".gemini/tmp/almanac/.project_root", ROOT)
    name = f"session-{moment(minute):%Y-%m-%dT%H-%M}-{uuid(session)[:8]}.{ending}"
    return home / ".gemini/tmp/almanac/chats" / name


def gemini_json(home: Path, session: int, requests: Sequence[Request]) -> Path:
    document = {**gemini_head(session, requests), "messages": gemini_messages(session, requests)}
    return write_file(gemini_file(home, session, requests[0].minute, "json"), json.dumps(document, indent=2))


def gemini_lines(home: Path, session: int, requests: Sequence[Request], further: Iterable[Json] = ()) -> Path:
    """Write a session as JSON lines, followed by further records."""
    records = [gemini_head(session, requests), *gemini_messages(session, requests), *further]
    return write_file(gemini_file(home, session, requests[0].minute, "jsonl"), as_lines(records))


# Claude Code ------------------------------------------------------------------------------------------------------


def claude_records(session: int, requests: Sequence[Request], pieces: int = 1) -> list[Json]:
    """Return lines that each name the one before; a response may come in pieces with growing output."""
    common = {"isSidechain": False, "userType": "external", "cwd": ROOT, "version": "2.0.50"}
    records: list[Json] = []
    before: str | None = None
    for request in requests:
        asked = {"type": "user", "message": {"role": "user", "content": f"asked {request.number}"}}
        answers = [claude_answer(request, piece, pieces) for piece in range(1, pieces + 1)]
        for piece, record in enumerate([asked, *answers]):
            name = f"{request.number:08x}-0000-4000-8000-{piece:012x}"
            about = {"uuid": name, "parentUuid": before, "timestamp": at(request.minute, piece)}
            records.append({**common, "sessionId": uuid(session), **about, **record})
            before = name
    return records


def claude_answer(request: Request, piece: int, pieces: int) -> Json:
    stem = f"{request.number:016}"  # shorter ids do not identify a message across sessions
    usage = {
        "input_tokens": request.input - request.cached - request.cache_write,
        "cache_creation_input_tokens": request.cache_write,
        "cache_read_input_tokens": request.cached,
        "output_tokens": request.output * piece // pieces,
    }
    text = {"type": "text", "text": f"answered {request.number}, {piece}"}
    about = {"id": f"msg_{stem}", "type": "message", "role": "assistant", "model": request.model}
    message = {**about, "content": [text], "stop_reason": None, "usage": usage}
    return {"type": "assistant", "requestId": f"req_{stem}", "message": message}


def claude_file(home: Path, session: int, project: str = "-home-ann-dev-almanac") -> Path:
    return home / ".claude/projects" / project / f"{uuid(session)}.jsonl"


def claude(home: Path, session: int, requests: Sequence[Request]) -> Path:
    return write_file(claude_file(home, session), as_lines(claude_records(session, requests)))


# Codex CLI --------------------------------------------------------------------------------------------------------


def thread(session: int, minute: int) -> str:
    return codex_id(minute, 0, session)


def codex_id(minute: int, second: int, number: int) -> str:
    """Return a version 7 UUID, which contains the time."""
    digits = f"{int(moment(minute, second).timestamp() * 1000):012x}"
    return f"{digits[:8]}-{digits[8:]}-7000-8000-{number:012x}"


def line(minute: int, second: int, kind: str, payload: Json) -> Json:
    return {"timestamp": at(minute, second), "type": kind, "payload": payload}


def codex_meta(session: int, minute: int, **more: Any) -> Json:
    about = {"id": thread(session, minute), "timestamp": at(minute), "cwd": ROOT, "cli_version": "0.118.0"}
    return line(minute, 0, "session_meta", {**about, "source": "cli", **more})


def codex_turns(requests: Sequence[Request], earlier: Sequence[Request] = ()) -> list[Json]:
    """Return the lines of one turn per request; the token counts continue from `earlier`."""
    records: list[Json] = []
    for place, request in enumerate(requests, 1):
        minute, turn = request.minute, codex_id(request.minute, 1, request.number)
        prompt, answer = f"asked {request.number}", f"answered {request.number}"
        asked = [{"type": "input_text", "text": prompt}]
        answered = [{"type": "output_text", "text": answer}]
        total = totals([*earlier, *requests[:place]])
        info = {"total_token_usage": codex_count(total), "last_token_usage": codex_count(totals([request]))}
        records += [
            line(minute, 1, "event_msg", {"type": "task_started", "turn_id": turn}),
            line(minute, 1, "turn_context", {"cwd": ROOT, "model": request.model, "turn_id": turn}),
            line(minute, 1, "response_item", {"type": "message", "role": "user", "content": asked}),
            line(minute, 1, "event_msg", {"type": "user_message", "message": prompt, "images": []}),
            line(minute, 5, "response_item", {"type": "message", "role": "assistant", "content": answered}),
            line(minute, 5, "event_msg", {"type": "agent_message", "message": answer}),
            line(minute, 5, "event_msg", {"type": "token_count", "info": info, "rate_limits": None}),
        ]
    return records


def codex_count(known: Totals) -> Json:
    output = known["output"] + known["reasoning"]
    return {
        "input_tokens": known["input"],
        "cached_input_tokens": known["cached"],
        "output_tokens": output,
        "reasoning_output_tokens": known["reasoning"],
        "total_tokens": known["input"] + output,
    }


def codex_file(home: Path, session: int, minute: int, folder: str = "") -> Path:
    name = f"rollout-{moment(minute):%Y-%m-%dT%H-%M-%S}-{thread(session, minute)}.jsonl"
    return home / ".codex" / (folder or f"sessions/{moment(minute):%Y/%m/%d}") / name


def codex(home: Path, session: int, requests: Sequence[Request]) -> Path:
    start = requests[0].minute
    records = [codex_meta(session, start), *codex_turns(requests)]
    return write_file(codex_file(home, session, start), as_lines(records))


class Form(NamedTuple):
    """An agent's file format for sessions, and the token figures that it records."""

    agent: str
    write: Callable[[Path, int, Sequence[Request]], Path]
    models: tuple[str, ...]
    tells: frozenset[str]


_GEMINI = ("gemini-2.5-pro", "gemini-2.5-flash")
_THOUGHTS = frozenset({"cached", "reasoning", "tool"})
FORMS = {
    "gemini-json": Form("gemini", gemini_json, _GEMINI, _THOUGHTS),
    "gemini-lines": Form("gemini", gemini_lines, _GEMINI, _THOUGHTS),
    "claude": Form(
        "claude", claude, ("claude-sonnet-4-20250514", "claude-opus-4-20250514"),
        frozenset({"cached", "cache_write"}),
    ),
    "codex": Form("codex", codex, ("gpt-5", "gpt-5-codex"), frozenset({"cached", "reasoning"})),
}  # fmt: skip


def draw_requests(form: Form, number: int, count: int, dice: Random) -> list[Request]:
    """Return `count` random requests of one session, numbered from `number`, with the form's figures."""
    minute, requests = dice.randrange(3 * 24 * 60), []
    for place in range(count):
        minute += dice.randrange(1, 180)
        given = dice.randrange(1, 200_000)
        cached = dice.randrange(given) if "cached" in form.tells else 0
        told = {
            "cached": cached,
            "cache_write": dice.randrange(given - cached),
            "reasoning": dice.randrange(5000),
            "tool": dice.randrange(300),
        }
        figures = {name: figure for name, figure in told.items() if name in form.tells}
        model = dice.choice(form.models)
        requests.append(Request(number + place, minute, model, given, output=dice.randrange(9000), **figures))
    return requests


class Work(NamedTuple):
    """A session: its number and its requests."""

    session: int
    requests: list[Request]


def works(form: Form, sessions: int, dice: Random) -> list[Work]:
    """Return sessions of one to five requests each; every request has a unique number."""
    return [
        Work(session, draw_requests(form, session * 100, dice.randrange(1, 6), dice))
        for session in range(1, sessions + 1)
    ]
