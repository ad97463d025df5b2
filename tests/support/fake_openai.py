"""A fake of OpenAI's "Responses" API on loopback, for the real Codex CLI to call.

A word in the newest user message chooses the response (`Scenario`). The n-th response reports n times `UNIT`
tokens, so that every sum shows which responses it contains. `served` records every response and its conversation.
"""

import json
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from typing import Any

Item = dict[str, Any]
Tools = Mapping[str, Item]

HANG_SECONDS = 60
THINKING_SECONDS = 4
RECALLING = "search_history"
REPORTS = ("<subagent_notification>", "<skill>")
"""Beginnings of messages that the CLI itself sends in the user's role."""
THOUGHT = "**Looking around**\n\nThe folder may tell."
SUMMARY = "We looked at the folder and found what was there."
SEALED_SUMMARY: Item = {"type": "compaction", "encrypted_content": "a sealed summary"}
REFUSAL = "This prompt is refused."
LISTING = "ls"
TASK = "Count the files and tell how many there are."
FAILING = "echo broken >&2; exit 3"
PARALLEL = ("echo first", "echo second")
PATCH = "*** Begin Patch\n*** Add File: note.txt\n+a line that was patched in\n*** End Patch\n"


class Scenario(StrEnum):
    """The model's behaviour, by a word in the prompt; a prompt without such a word gets a plain answer."""

    THINK = "THINK"
    LIST = "LIST"
    FAIL = "FAIL"
    PARALLEL = "PARALLEL"
    PATCH = "PATCH"
    SPAWN = "SPAWN"
    RECALL = "RECALL"
    """Calls retold's search: finds the tool first if it is not offered, then names the sessions in the result."""
    HANG = "HANG"
    REFUSE = "REFUSE"
    COMPACT = "CONTEXT CHECKPOINT COMPACTION"
    """Part of the prompt with which the CLI itself asks for a summary of the history."""


@dataclass(frozen=True)
class Spent:
    """Tokens as the API counts them: `input` includes `cached`, `output` includes `reasoning`."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(
            self.input + other.input,
            self.cached + other.cached,
            self.output + other.output,
            self.reasoning + other.reasoning,
        )

    def __mul__(self, times: int) -> "Spent":
        return Spent(self.input * times, self.cached * times, self.output * times, self.reasoning * times)


UNIT = Spent(input=1000, cached=400, output=50, reasoning=10)


@dataclass(frozen=True)
class Served:
    """One response: its number, the conversation and prompt that it answers, and its tokens."""

    number: int
    thread: str
    prompt: str
    spent: Spent


@dataclass
class FakeOpenAI:
    """A running fake: its address, and the requests and responses so far."""

    url: str
    served: list[Served] = field(default_factory=list)
    requests: list[tuple[str, Item]] = field(default_factory=list)
    """Path and body of every request, answered or not."""
    ending: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def served_to(self, thread: str) -> list[Served]:
        """Return the responses to one conversation, in order."""
        return [served for served in self.served if served.thread == thread]

    def serve(self, thread: str, prompt: str) -> Served:
        """Record one more response."""
        with self._lock:
            number = len(self.served) + 1
            served = Served(number, thread, prompt, UNIT * number)
            self.served.append(served)
        return served


def total(served: Iterable[Served]) -> Spent:
    """Return the summed tokens of several responses."""
    return sum((one.spent for one in served), Spent())


@contextmanager
def run_fake_openai() -> Iterator[FakeOpenAI]:
    """Serve on a free loopback port until the block ends."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.fake = FakeOpenAI(f"http://127.0.0.1:{server.server_address[1]}/v1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.fake
    finally:
        server.fake.ending.set()
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    fake: FakeOpenAI


class _Handler(BaseHTTPRequestHandler):
    """Answers `POST /v1/responses` with an event stream, and `/v1/responses/compact` with a history."""

    server: _Server

    def do_GET(self) -> None:
        self.server.fake.requests.append((self.path, {}))
        self.send_error(404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fake = self.server.fake
        fake.requests.append((self.path, body))
        prompt = newest_prompt(body.get("input", []))
        if self.path == "/v1/responses/compact":
            self._say(200, {"output": compact_history(body["input"])})
        elif self.path != "/v1/responses":
            self.send_error(404)
        elif Scenario.REFUSE in prompt:
            self._say(400, {"error": {"message": REFUSAL, "type": "invalid_request_error", "code": None}})
        elif Scenario.HANG in prompt:
            self._start("text/event-stream")
            fake.ending.wait(HANG_SECONDS)
        else:
            served = fake.serve(self._asking(), prompt)
            self._start("text/event-stream")
            self.wfile.write(stream_bytes(served, output(served.number, body)))

    def _asking(self) -> str:
        """Return the thread's id, else the session's: a subagent may send its parent's id as the session."""
        names = ("thread-id", "thread_id", "session_id")
        return next((self.headers[name] for name in names if name in self.headers), "")

    def _say(self, status: int, content: Item) -> None:
        self._start("application/json", status)
        self.wfile.write(json.dumps(content).encode())

    def _start(self, media_type: str, status: int = 200) -> None:
        """Send the headers. The body ends with the connection: HTTP/1.0 needs no length."""
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Print nothing: `requests` records every request."""


def newest_prompt(asked: Sequence[Item]) -> str:
    """Return the text of the last prompt."""
    place = newest_place(asked)
    return message_text(asked[place]) if place is not None else ""


def newest_place(asked: Sequence[Item]) -> int | None:
    """Return the index of the last prompt; messages that the CLI itself sends in the user's role do not count."""
    places = [
        place
        for place, item in enumerate(asked)
        if item.get("role") == "user" and not message_text(item).startswith(REPORTS)
    ]
    return places[-1] if places else None


def message_text(item: Item) -> str:
    return "\n".join(part.get("text", "") for part in item["content"])


def output(number: int, body: Item) -> list[Item]:
    """Return the model's output: the scenario's calls first, and an answer once their results arrive."""
    prompt, done = newest_prompt(body["input"]), newest_results(body["input"])
    if body["input"][-1].get("type") == "compaction_trigger":
        return [SEALED_SUMMARY]
    if Scenario.COMPACT in prompt:
        return [message(number, SUMMARY)]
    if Scenario.RECALL in prompt:
        return recall_output(number, body)
    calls = next_calls(prompt, done, number, tools_by_name(body))
    thoughts = [reasoning(number)] if Scenario.THINK in prompt and not done else []
    return thoughts + (calls or [message(number, f"This is answer {number}.")])


def compact_history(asked: Sequence[Item]) -> list[Item]:
    """Return the history after a compaction; the CLI counts no tokens for it."""
    return [*(item for item in asked if item.get("role") == "user"), SEALED_SUMMARY]


def newest_results(asked: Sequence[Item]) -> list[Item]:
    """Return the tool results after the last prompt."""
    return [item for item in asked[newest_place(asked) :] if str(item.get("type")).endswith("_output")]


def tools_by_name(body: Item) -> Tools:
    """Return the tools by name, wherever this version lists them; a tool in a namespace includes its name."""
    lists = [body.get("tools", []), *(item["tools"] for item in body["input"] if "tools" in item)]
    found: dict[str, Item] = {}
    for tool in chain.from_iterable(lists):
        for inner in tool.get("tools", ()):
            found[inner["name"]] = inner | {"namespace": tool["name"]}
        found[tool.get("name", tool["type"])] = tool
    return found


def next_calls(prompt: str, done: Sequence[Item], number: int, tools: Tools) -> list[Item]:
    """Return the calls that a prompt still needs."""
    call_id = f"call_{number}"
    if Scenario.SPAWN in prompt:
        return spawn_call(call_id, done, tools)
    if done:
        return []
    if Scenario.LIST in prompt:
        return [command(call_id, LISTING, tools)]
    if Scenario.FAIL in prompt:
        return [command(call_id, FAILING, tools)]
    if Scenario.PARALLEL in prompt:
        return [command(f"{call_id}_{place}", line, tools) for place, line in enumerate(PARALLEL, start=1)]
    if Scenario.PATCH in prompt:
        return [patch(call_id, tools)]
    return []


def recall_output(number: int, body: Item) -> list[Item]:
    """Return the next step of a recall: find the tool in up to two tries, call it, or name the sessions found."""
    since, tools = body["input"][newest_place(body["input"]) :], tools_by_name(body)
    if any(item.get("name") == RECALLING for item in since):
        keys = sorted(set(re.findall(r"(?:gemini|claude|codex):[\w-]+", json.dumps(since[-1]))))
        return [message(number, f"Told in {', '.join(keys) or 'nothing'}.")]
    if RECALLING in tools:
        found = re.search(rf"{Scenario.RECALL} *([\w ]+)", newest_prompt(body["input"]))
        called = function_call(f"call_{number}", RECALLING, {"query": found[1] if found else ""})
        return [called | {"namespace": tools[RECALLING]["namespace"]}]
    if len(newest_results(body["input"])) > 1:
        return [message(number, "There is no tool to ask.")]
    # A request that the CLI sends before an MCP server has started lacks the server's tools.
    time.sleep(THINKING_SECONDS)
    asked = {"query": "retold search history"}
    named = {"type": "tool_search_call", "id": f"ts_{number}", "call_id": f"call_{number}"}
    return [named | {"execution": "client", "status": "completed", "arguments": asked}]


def command(call_id: str, line: str, tools: Tools) -> Item:
    """Return a call of the tool with which this version runs commands."""
    if "exec_command" in tools:
        return function_call(call_id, "exec_command", {"cmd": line})
    if "exec" in tools:
        script = f"text((await tools.exec_command({json.dumps({'cmd': line})})).output);"
        return custom_call(call_id, "exec", script)
    if "shell_command" in tools:
        return function_call(call_id, "shell_command", {"command": line})
    return function_call(call_id, "shell", {"command": ["bash", "-c", line]})


def patch(call_id: str, tools: Tools) -> Item:
    """Return a call that patches a file with the tool of this version."""
    if "apply_patch" in tools:
        return custom_call(call_id, "apply_patch", PATCH)
    if "exec" in tools:
        return custom_call(call_id, "exec", f"text(await tools.apply_patch({json.dumps(PATCH)}));")
    return function_call(call_id, "shell", {"command": ["apply_patch", PATCH]})


def spawn_call(call_id: str, done: Sequence[Item], tools: Tools) -> list[Item]:
    """Return the call that starts a subagent, then the call that waits for it, then nothing."""
    if not done:
        return [agent_call(call_id, "spawn_agent", {"message": TASK}, tools)]
    if len(done) == 1:
        started = json.loads(done[0]["output"])
        return [agent_call(call_id, "wait_agent", {"targets": [started["agent_id"]]}, tools)]
    return []


def agent_call(call_id: str, name: str, arguments: Item, tools: Tools) -> Item:
    """Return a call of a subagent tool; newer CLIs have these in a namespace that they do not list at first."""
    called = function_call(call_id, name, arguments)
    return called if name in tools else called | {"namespace": "multi_agent_v1"}


def custom_call(call_id: str, name: str, text: str) -> Item:
    named = {"type": "custom_tool_call", "id": f"ctc_{call_id}", "call_id": call_id}
    return named | {"name": name, "input": text}


def function_call(call_id: str, name: str, arguments: Item) -> Item:
    named = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name}
    return named | {"arguments": json.dumps(arguments)}


def message(number: int, text: str) -> Item:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }


def reasoning(number: int) -> Item:
    summary = [{"type": "summary_text", "text": THOUGHT}]
    return {"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": "sealed"}


def stream_bytes(served: Served, items: Sequence[Item]) -> bytes:
    """Return a whole response as server-sent events."""
    response = {"id": f"resp_{served.number}", "object": "response"}
    done = {"status": "completed", "output": list(items), "usage": usage(served.spent)}
    events: list[Item] = [{"type": "response.created", "response": response | {"status": "in_progress"}}]
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": response | done})
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def usage(spent: Spent) -> Item:
    return {
        "input_tokens": spent.input,
        "input_tokens_details": {"cached_tokens": spent.cached},
        "output_tokens": spent.output,
        "output_tokens_details": {"reasoning_tokens": spent.reasoning},
        "total_tokens": spent.input + spent.output,
    }
