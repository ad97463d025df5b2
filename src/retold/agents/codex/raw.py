"""The words of Codex's files, as Codex spells them."""

import re
from pathlib import Path
from typing import Any, Literal

from retold.model.problem import Problem, problem
from retold.reading.disk import Disk, OpenFile, open_file, printable, refusal
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
"""What a `response_item` may be; up to 0.32 these stand on lines of their own."""

LINE_TYPES = frozenset(
    (
        "session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state",
        "token_usage_record", "inter_agent_communication", "inter_agent_communication_metadata",
    )
)  # fmt: skip


def text_or_none(value: Any) -> str | None:
    """Return a text that says something."""
    return value if type(value) is str and value else None


def listed(value: Any) -> list[Any]:
    """Return a list; an empty one in place of anything else."""
    return value if type(value) is list else []


def rest(record: Record, known: frozenset[str]) -> Record | None:
    """Return what a record holds beyond the known and the empty, under Codex's own names."""
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
_BEGINNINGS: tuple[tuple[Form, re.Pattern[bytes]], ...] = (
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


def form_of(path: Path, disk: Disk) -> Form | Problem:
    """Return the form of a file; a Problem where Codex did not write it, or nobody may read it."""
    file = open_file(path, disk)
    if isinstance(file, Problem):
        return file
    try:
        head = _head(file)
    except OSError as error:
        return refusal(path, error)
    finally:
        file.close()
    return form_in(head) or problem(
        "not-a-session", "no conversation in a form that Codex writes", printable(path)
    )


def _head(file: OpenFile) -> bytes:
    """Return how a file begins, behind the NUL bytes that a crash may have left there."""
    head = file.read(_HEAD)
    while head.startswith(b"\0"):
        head = head.lstrip(b"\0") or file.read(_HEAD)
    return head


def form_in(head: bytes) -> Form | None:
    """Return the form that begins so: the first lines may be long, but what tells it stands at their beginnings."""
    if _PAYLOAD.search(head) and _ENVELOPE.search(head):
        return "lines"
    start = head.removeprefix(BOM).lstrip()
    return next((form for form, pattern in _BEGINNINGS if pattern.match(start)), None)
