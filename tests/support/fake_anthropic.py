"""A fake of Anthropic's Messages API on loopback, for the real Claude Code to call.

    python fake_anthropic.py LOG COMMAND...

The program serves while COMMAND runs, and passes its address in `ANTHROPIC_BASE_URL`. It appends every response
to LOG, one `Served` per line. It is a separate program because both processes run in a network namespace that has
only loopback. Words in the newest user message choose the response (`Scenario`). The n-th response reports n times
`UNIT` tokens, so that every sum shows which responses it contains.
"""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Block = dict[str, Any]

THOUGHT = "The folder may tell."
LISTING = "ls"
FAILING = "echo broken >&2; exit 3"
FLOOD = "seq 1 20000"
PARALLEL = ("echo first", "echo second")
TASK = "LIST the folder for me"
SUMMARY = "We looked at the folder and found what was there."
RECALLING = "mcp__plugin_retold_retold__search_history"
REFUSAL = "This prompt is refused."
PAUSE_SECONDS = 0.3
RUN_SECONDS = 60


class Scenario(StrEnum):
    """The model's behaviour, by a word in the prompt; a prompt without such a word gets a plain answer."""

    THINK = "THINK"
    LIST = "LIST"
    FAIL = "FAIL"
    FLOOD = "FLOOD"
    PARALLEL = "PARALLEL"
    DELEGATE = "DELEGATE"
    REFUSE = "REFUSE"
    SLOW = "SLOW"
    """Streams block by block, with pauses in which the CLI writes its transcript."""
    RECALL = "RECALL"
    """Calls retold's search: finds the tool first if it is not offered, then names the sessions in the result."""
    COMPACT = "Your task is to create a detailed summary"
    """Part of the prompt with which the CLI itself asks for a summary of the history."""


@dataclass(frozen=True)
class Spent:
    """Tokens as the API counts them; the four figures do not overlap."""

    input: int = 0
    cache_read: int = 0
    cache_creation: int = 0
    output: int = 0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(
            self.input + other.input,
            self.cache_read + other.cache_read,
            self.cache_creation + other.cache_creation,
            self.output + other.output,
        )

    def __mul__(self, times: int) -> "Spent":
        return Spent(
            self.input * times, self.cache_read * times, self.cache_creation * times, self.output * times
        )


UNIT = Spent(input=10, cache_read=1000, cache_creation=100, output=5)


@dataclass(frozen=True)
class Served:
    """One response: its number, its request, its content and its tokens."""

    number: int
    request: dict[str, Any]
    """The whole body of the request."""
    headers: dict[str, str]
    content: list[Block]
    spent: Spent

    @property
    def message_id(self) -> str:
        return f"msg_{self.number:04}"

    @property
    def request_id(self) -> str:
        return f"req_{self.number:04}"

    @property
    def words(self) -> str:
        """The newest text of the user."""
        return newest_words(self.request["messages"])

    @property
    def is_summary(self) -> bool:
        return Scenario.COMPACT in self.words

    @property
    def has_tools(self) -> bool:
        """Whether the request offers tools; the CLI's own requests, such as for a title, offer none."""
        return bool(self.request.get("tools"))


def read_log(log: Path) -> list[Served]:
    """Return the responses so far."""
    if not log.exists():
        return []
    records = [json.loads(line) for line in log.read_bytes().split(b"\n") if line]
    return [Served(**{**record, "spent": Spent(**record["spent"])}) for record in records]


def total(served: Iterable[Served]) -> Spent:
    """Return the summed tokens of several responses."""
    return sum((one.spent for one in served), Spent())


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    log: Path
    lock = threading.Lock()

    def serve(self, request: Block, headers: dict[str, str]) -> Served:
        """Record one more response in the log."""
        with self.lock:
            number = len(read_log(self.log)) + 1
            served = Served(number, request, headers, content(number, request), UNIT * number)
            with self.log.open("a", encoding="utf-8") as log:
                log.write(json.dumps(asdict(served)) + "\n")
        return served


class _Handler(BaseHTTPRequestHandler):
    """Answers `POST /v1/messages`, streamed or not, and `count_tokens`; other paths are not found."""

    server: _Server

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_GET(self) -> None:
        self._send(404, "application/json", error("not_found_error", "not here"))

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        match self.path.partition("?")[0]:
            case "/v1/messages/count_tokens":
                self._send(200, "application/json", json.dumps({"input_tokens": UNIT.input}).encode())
            case "/v1/messages":
                self._answer(json.loads(asked))
            case _:
                self._send(404, "application/json", error("not_found_error", "not here"))

    def _answer(self, request: Block) -> None:
        if Scenario.REFUSE in newest_words(request["messages"]):
            self._send(400, "application/json", error("invalid_request_error", REFUSAL))
            return
        headers = {name.lower(): value for name, value in self.headers.items() if name.lower() in _KEPT}
        served = self.server.serve(request, headers)
        if request.get("stream"):
            self._start(200, "text/event-stream", served.request_id)
            self._stream(served, is_slow=Scenario.SLOW in newest_words(request["messages"]))
        else:
            self._send(200, "application/json", json.dumps(full_response(served)).encode(), served.request_id)

    def _stream(self, served: Served, *, is_slow: bool) -> None:
        """Send the events of a response: at once, so that the CLI writes no line before the last count, or with pauses."""
        waiting = b""
        for event in stream_events(served):
            waiting += f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            if is_slow and event["type"] == "content_block_stop":
                self.wfile.write(waiting)
                time.sleep(PAUSE_SECONDS)
                waiting = b""
        self.wfile.write(waiting)

    def _send(self, status: int, media_type: str, body: bytes, request_id: str = "req_none") -> None:
        self._start(status, media_type, request_id)
        self.wfile.write(body)

    def _start(self, status: int, media_type: str, request_id: str) -> None:
        """Send the headers; the body ends with the connection."""
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("request-id", request_id)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Print nothing: the log file records every response."""


_KEPT = ("user-agent", "anthropic-beta", "x-claude-code-session-id", "x-claude-code-agent-id")


def error(kind: str, message: str) -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


def newest_words(messages: Sequence[Block]) -> str:
    """Return the newest text of the user; unanswered prompts may precede it in the same message."""
    said = [message["content"] for message in messages if message["role"] == "user"]
    blocks = [{"text": said[-1]}] if said and isinstance(said[-1], str) else said[-1] if said else []
    texts = [block["text"] for block in blocks if "text" in block and not is_reminder(block)]
    return texts[-1] if texts else ""


def is_reminder(block: Block) -> bool:
    """Return whether a block is a reminder that the CLI adds to the user's text."""
    text: str = block.get("text", "")
    return text.startswith("<system-reminder>")


def has_results(messages: Sequence[Block]) -> bool:
    """Return whether the last user message contains tool results."""
    said = [message["content"] for message in messages if message["role"] == "user"]
    return bool(said) and any(
        isinstance(block, dict) and block["type"] == "tool_result" for block in said[-1]
    )


def content(number: int, request: Block) -> list[Block]:
    """Return the model's output: an answer and the calls of the prompt, or an answer to their results."""
    words = newest_words(request["messages"])
    answer = {"type": "text", "text": f"This is answer {number}."}
    if Scenario.COMPACT in words:
        return [{"type": "text", "text": f"<summary>{SUMMARY}</summary>"}]
    if Scenario.RECALL in spoken_words(request["messages"]):
        return recall_content(number, request)
    if has_results(request["messages"]):
        return [answer]
    names = [tool["name"] for tool in request.get("tools") or ()]
    calls = [
        {"type": "tool_use", "id": f"toolu_{number:04}_{place}", "name": name, "input": arguments}
        for place, (name, arguments) in enumerate(requested_calls(words, names), start=1)
    ]
    thought = {"type": "thinking", "thinking": THOUGHT, "signature": "c2lnbmVk"}
    said = [thought] if Scenario.THINK in words and names else []
    return [*said, answer, *calls] if calls else [*said, answer]


def spoken_words(messages: Sequence[Block]) -> str:
    """Return all texts of the user in order, without reminders."""
    said = [message["content"] for message in messages if message["role"] == "user"]
    blocks = [block for one in said for block in ([{"text": one}] if isinstance(one, str) else one)]
    return "\n".join(block["text"] for block in blocks if "text" in block and not is_reminder(block))


def recall_content(number: int, request: Block) -> list[Block]:
    """Return the next step of a recall: find the tool, call it, or name the sessions in the result."""
    blocks = [
        block for message in request["messages"] for block in message["content"] if isinstance(block, dict)
    ]
    done = [block["name"] for block in blocks if block["type"] == "tool_use"]
    results = [block for block in blocks if block["type"] == "tool_result"]
    if done and done[-1] == RECALLING:
        keys = sorted(set(re.findall(r"(?:gemini|claude|codex):[\w-]+", json.dumps(results[-1]))))
        return [{"type": "text", "text": f"Told in {', '.join(keys) or 'nothing'}."}]
    found = re.search(rf"{Scenario.RECALL} *([\w ]+)", spoken_words(request["messages"]))
    offered = [tool["name"] for tool in request.get("tools") or ()]
    if RECALLING in offered or done:
        name, arguments = RECALLING, {"query": found[1] if found else ""}
    else:
        name, arguments = "ToolSearch", {"query": f"select:{RECALLING}"}
    return [{"type": "tool_use", "id": f"toolu_{number:04}_1", "name": name, "input": arguments}]


def requested_calls(words: str, tools: Sequence[str]) -> list[tuple[str, Block]]:
    """Return the calls that a prompt asks for, if their tools are available."""
    lines = {Scenario.LIST: LISTING, Scenario.FAIL: FAILING, Scenario.FLOOD: FLOOD}
    wanted = [line for word, line in lines.items() if word in words]
    wanted += PARALLEL if Scenario.PARALLEL in words else ()
    calls = [("Bash", {"command": line, "description": "Try it"}) for line in wanted if "Bash" in tools]
    agent = next((name for name in ("Agent", "Task") if name in tools), None)
    if Scenario.DELEGATE in words and agent:
        calls.append(
            (agent, {"description": "Look around", "prompt": TASK, "subagent_type": "general-purpose"})
        )
    return calls


def full_response(served: Served) -> Block:
    """Return a response as one JSON object."""
    calls = any(block["type"] == "tool_use" for block in served.content)
    return {
        "id": served.message_id,
        "type": "message",
        "role": "assistant",
        "model": served.request["model"],
        "content": served.content,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": usage(served.spent),
    }


def usage(spent: Spent) -> Block:
    return {
        "input_tokens": spent.input,
        "cache_read_input_tokens": spent.cache_read,
        "cache_creation_input_tokens": spent.cache_creation,
        "cache_creation": {
            "ephemeral_5m_input_tokens": spent.cache_creation,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": spent.output,
        "service_tier": "standard",
    }


def stream_events(served: Served) -> Iterator[Block]:
    """Yield a response as events; the final output count comes last, as from the real API."""
    message = full_response(served)
    start = message | {"content": [], "stop_reason": None, "usage": message["usage"] | {"output_tokens": 1}}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(served.content):
        yield from ({**event, "index": index} for event in block_events(block))
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": served.spent.output}}
    yield {"type": "message_stop"}


def block_events(block: Block) -> Iterator[Block]:
    """Yield the events of one block: its start, its content and its end."""
    begun: Block
    match block["type"]:
        case "text":
            begun, deltas = {"text": ""}, [{"type": "text_delta", "text": block["text"]}]
        case "thinking":
            begun = {"thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case _:
            begun = {"input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    yield {"type": "content_block_start", "content_block": block | begun}
    yield from ({"type": "content_block_delta", "delta": delta} for delta in deltas)
    yield {"type": "content_block_stop"}


@contextmanager
def run_fake_anthropic(log: Path) -> Iterator[str]:
    """Serve on a free loopback port until the block ends; yield the address."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.log = log
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)


def main(log: str, *command: str) -> int:
    """Run the command while the fake serves, and return its exit status."""
    with run_fake_anthropic(Path(log)) as url:
        env = {**os.environ, "ANTHROPIC_BASE_URL": url}
        return subprocess.run(command, env=env, check=False, timeout=RUN_SECONDS).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
