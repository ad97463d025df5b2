"""A session with every kind of entry, for export tests: answers, tool calls, errors, rewinds, a subagent."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from retold.export.formats.registry import ExportSession
from retold.model import CATEGORIES
from retold.model.builder import Draft, assemble_session
from retold.model.problem import problem
from retold.model.session import (
    Attachment,
    Context,
    Coverage,
    DiffDisplay,
    Entry,
    Event,
    Message,
    Opaque,
    Part,
    Project,
    Session,
    Text,
    Thinking,
    ToolCall,
    Usage,
)

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
KEY = "gemini:session-2026-03-01T09-00-0000002a"
ANSWER = """# What I found

The table is built in `tides.py`. Two things are wrong with it:

1. It reads `<div>` where the page has `<td>`.
2. It forgets the time zone:

   ```python
   when = parse(cell)  # <no zone>
   ```

Old pages
---------

潮汐表 🌊 stays as it is, & so does <b>bold</b> text.
"""
DIFF = "--- a/tides.py\n+++ b/tides.py\n@@ -1 +1 @@\n-when = parse(cell)\n+when = parse(cell, UTC)\n"
LISTED = "\n--- Content from referenced files ---\nContent from @tides.py:\n```\nwhen = parse(cell)\n```\n--- End of content ---"


def at(minute: int) -> datetime:
    return START + timedelta(minutes=minute)


def user(minute: int, prompt: str | None, *more: Part, **fields: Any) -> Message:
    parts = (*((Text(prompt),) if prompt is not None else ()), *more)
    told: dict[str, Any] = {
        "id": f"u{minute}",
        "role": "user",
        "at": at(minute),
        "fate": "live",
        "prompt": prompt,
        "model": None,
    }
    return Message(**{**told, "usage": None, "parts": parts, **fields})


def agent(minute: int, *parts: Part, **fields: Any) -> Message:
    usage = Usage(f"r{minute}", 1200, 400, 0, 50, 25, 0, 1275)
    told: dict[str, Any] = {
        "id": f"a{minute}",
        "role": "assistant",
        "at": at(minute),
        "fate": "live",
        "prompt": None,
    }
    return Message(**{**told, "model": "gemini-2.5-pro", "usage": usage, "parts": parts, **fields})


def call(name: str, canonical: Any = "other", **fields: Any) -> ToolCall:
    told: dict[str, Any] = {
        "id": f"{name}-1",
        "arguments": {},
        "status": "success",
        "native_status": None,
        "result": None,
    }
    told |= {"error": None, "at": None, "child": None}
    return ToolCall(name=name, canonical=canonical, category=CATEGORIES[canonical], **{**told, **fields})


def session(*entries: Entry, key: str = KEY, **fields: Any) -> Session:
    told: dict[str, Any] = {
        "agent": "gemini",
        "native_id": "0000002a",
        "kind": "main",
        "status": "success",
        "sources": (),
    }
    told |= {"project": Project("/home/ann/dev/almanac", "almanac", None, "recorded")}
    told |= {"started_at": START, "ended_at": at(20), "coverage": Coverage(len(entries), 0), "problems": ()}
    return assemble_session(Draft(key=key, full=entries, active=entries, **{**told, **fields}), "full")


def session_with_text(text: str) -> Session:
    """Return a session in which the prompt, the answer and the tool results are all the same text."""
    done = call("run_shell_command", "shell_exec", arguments={"command": text, text: 1}, result=text)
    failed = call("web_fetch", "web_access", id="web_fetch-2", status="error", error=text)
    return session(user(1, text), agent(2, Thinking(text, text), Text(text), done, failed))


def everything() -> ExportSession:
    child = session(
        user(6, None, Context("task", "Find every page that has a table.")),
        agent(7, call("glob", "file_search", arguments={"pattern": "**/*.html"}, result="tides.html")),
        agent(8, Text("There is one page, `tides.html`.")),
        key=f"{KEY}/k3x9qa",
        kind="subagent",
        parent=KEY,
    )
    damage = problem("malformed-json", "expected value", "session.jsonl", 7)
    return ExportSession(session(*_entries(child.key), problems=(damage,)), {child.key: ExportSession(child)})


def _entries(child: str) -> Sequence[Entry]:
    edited = DiffDisplay("tides.py", DIFF, None, None)
    strings = {"file_path": "tides.py", "old_string": "when = parse(cell)\nnext", "new_string": "x\ny"}
    return (
        Event(None, "notice", at(0), "live", "<session_context>\nlinux\n</session_context>"),
        user(1, "/help me\nwith *this*", fate="rewound"),
        agent(2, Text("With what?"), fate="rewound"),
        user(3, "Why is high tide an hour late? See @tides.py", Context("referenced_files", LISTED)),
        agent(
            4,
            Thinking("Looking", "The zone, **perhaps**."),
            Text("I will look."),
            call(
                "read_file",
                "file_read",
                arguments={"file_path": "tides.py"},
                result="when = parse(cell)",
                at=at(4),
            ),
            call(
                "run_shell_command",
                "shell_exec",
                arguments={"command": "make\ntest"},
                result="1 failed",
                exit_code=2,
            ),
        ),
        user(5, None, Context("tool_result", None, "read_file-1")),
        agent(
            5,
            call(
                "invoke_agent",
                "agent",
                arguments={"agent_name": "scout", "prompt": "Find"},
                child=child,
                result="one",
            ),
        ),
        agent(
            9,
            call(
                "replace", "file_edit", arguments=strings, result="Successfully modified", display=edited
            ),
        ),
        agent(10, call("web_fetch", "web_access", status="error", error="no such host", arguments={"url": "https://tides.example"})),
        agent(11, call("save_memory", "memory", status="cancelled", arguments={"fact": "High tide is late."})),
        Event("c", "compaction", at(12), "live", ""),
        Event("e", "error", at(12), "live", "quota\nexceeded"),
        agent(13, Text(ANSWER)),
        user(14, "Danke 🙂", Attachment("harbour.png", "image/png", "aGFyYm91cg==")),
        agent(15, Opaque({"new": "thing"}), Text("Gern.")),
    )  # fmt: skip
