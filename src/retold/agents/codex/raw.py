"""The record types of Codex's files, and how to recognise the forms of these files."""

import re
from pathlib import Path
from typing import Any, Literal

from retold.model.problem import Problem, problem
from retold.reading.disk import Disk, OpenFile, open_file, printable_path, refusal_problem
from retold.reading.json_decode import BOM

Record = dict[str, Any]
"""A payload, or the line around it."""
ITEM_TYPES = frozenset(
    (
        "message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
        "local_shell_call", "web_search_call", "tool_search_call", "tool_search_output", "image_generation_call",
        "agent_message", "additional_tools", "compaction", "context_compaction", "compaction_summary",
        "compaction_trigger", "ghost_snapshot",
    )
)  # fmt: skip
"""Types of a `response_item`; up to 0.32 items are lines of their own."""
LINE_TYPES = frozenset(
    (
        "session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state",
        "token_usage_record", "inter_agent_communication", "inter_agent_communication_metadata",
    )
)  # fmt: skip


def list_or_empty(value: Any) -> list[Any]:
    """Return a list; an empty one for another value."""
    return value if type(value) is list else []


def unknown_fields(record: Record, known: frozenset[str]) -> Record | None:
    """Return the unknown fields of a record that are not empty, under Codex's own names."""
    if record.keys() <= known:
        return None
    left = {key: value for key, value in record.items() if key not in known and (value or value == 0)}
    return left or None


Form = Literal["lines", "items", "document", "history", "index"]
_HEAD = 4096
_TYPES = "|".join(sorted(LINE_TYPES))
_ENVELOPE = re.compile(rf'"type"\s*:\s*"(?:{_TYPES})"'.encode())
_PAYLOAD = re.compile(rb'"payload"\s*:\s*\{')
_TEXT = rb'"(?:[^"\\]|\\.)*"'
_FORM_PATTERNS: tuple[tuple[Form, re.Pattern[bytes]], ...] = (
    (
        "items",
        re.compile(
            rb'\{\s*"id"\s*:\s*%b\s*,\s*"timestamp"\s*:\s*%b\s*,\s*"instructions"\s*:' % (_TEXT, _TEXT)
        ),
    ),
    ("document", re.compile(rb'\{\s*"session"\s*:\s*\{')),
    ("history", re.compile(rb'\{\s*"session_id"\s*:\s*%b\s*,\s*"ts"\s*:\s*\d+\s*,\s*"text"\s*:' % _TEXT)),
    ("index", re.compile(rb'\{\s*"id"\s*:\s*%b\s*,\s*"thread_name"\s*:' % _TEXT)),
)


def read_form(path: Path, disk: Disk) -> Form | Problem:
    """Return the form of a file; a Problem if it is not Codex's or cannot be read."""
    file = open_file(path, disk)
    if isinstance(file, Problem):
        return file
    try:
        head = _read_head(file)
    except OSError as error:
        return refusal_problem(path, error)
    finally:
        file.close()
    return detect_form(head) or problem(
        "not-a-session", "no conversation in a form that Codex writes", printable_path(path)
    )


def _read_head(file: OpenFile) -> bytes:
    """Return the start of a file, without the NUL bytes that a crash may have left there."""
    head = file.read(_HEAD)
    while head.startswith(b"\0"):
        head = head.lstrip(b"\0") or file.read(_HEAD)
    return head


def detect_form(head: bytes) -> Form | None:
    """Return the form by the start of a file: the first lines may be long, but begin with what distinguishes them."""
    if _PAYLOAD.search(head) and _ENVELOPE.search(head):
        return "lines"
    start = head.removeprefix(BOM).lstrip()
    return next((form for form, pattern in _FORM_PATTERNS if pattern.match(start)), None)


_TURN_EVENTS = ("user_message", "task_started", "turn_started")
_BEGIN_RESPONSE = ("message", "reasoning", "function_call", "custom_tool_call")


def is_place(before: Any, value: Any) -> bool:
    """Return whether a bookmark may stand before a line: where a turn begins, or a response behind results or a count."""
    kind, what, role = _describe(value)
    kind_before, what_before, _ = _describe(before)
    if kind == "event_msg":
        return what in _TURN_EVENTS
    if kind != "response_item" or what not in _BEGIN_RESPONSE:
        return kind == "turn_context"
    is_result = kind_before == "response_item" and what_before.endswith("_output")
    return role == "user" or is_result or (kind_before == "event_msg" and what_before == "token_count")


def _describe(value: Any) -> tuple[str, str, str]:
    """Return the type of a line, and the type and role of its payload."""
    payload = value.get("payload") if type(value) is dict else None
    if type(payload) is not dict:
        return "", "", ""
    return str(value.get("type")), str(payload.get("type")), str(payload.get("role"))
