"""Invented conversations for exports: one with every kind of entry, and one filled with a given text."""

from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from retold.export.formats.registry import ExportSession
from retold.model.builder import count_messages
from retold.model.problem import Problem
from retold.model.session import (
    VERSION,
    AgentDisplay,
    Attachment,
    Context,
    Coverage,
    DiffDisplay,
    Entry,
    Event,
    FilesDisplay,
    Message,
    Opaque,
    Part,
    Project,
    Session,
    Text,
    TextDisplay,
    Thinking,
    Todo,
    TodosDisplay,
    ToolCall,
    Totals,
    Usage,
)

START = datetime(2026, 3, 4, 9, 30, tzinfo=UTC)
PIXEL = b64encode(
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU\x00\x00\x00\nIDATx\xdac`\x00"
    b"\x00\x00\x02\x00\x01H\xaf\xa4q\x00\x00\x00\x00IEND\xaeB`\x82"
).decode()
CHILD = "gemini:made/child"


def export_session(*entries: Entry, subagents: Sequence[ExportSession] = (), **more: Any) -> ExportSession:
    """Return a conversation with these entries and subagents."""
    messages = [entry for entry in entries if isinstance(entry, Message)]
    prompts = [message.prompt for message in messages if message.prompt is not None]
    session = Session(
        version=VERSION,
        key="gemini:made",
        agent="gemini",
        native_id="made",
        kind="main",
        project=Project("/home/ann/bakery", "bakery", None, "recorded"),
        title="A made-up conversation",
        summary=None,
        first_prompt=prompts[0] if prompts else None,
        last_prompt=prompts[-1] if prompts else None,
        tags=(),
        started_at=START,
        ended_at=START + timedelta(minutes=12),
        are_times_derived=False,
        status="success",
        models=("gemini-2.5-pro",),
        parent=None,
        children=tuple(child.session.key for child in subagents),
        counts=count_messages(messages),
        usage=Totals(1200, 300, 0, 80, 20, 0, 1300, 2, estimated=False),
        cost_usd=Decimal("0.0123"),
        sources=(),
        coverage=Coverage(len(entries), 0),
        problems=(),
        view="full",
        extra={},
        timeline=entries,
    )
    told = msgspec.structs.replace(session, **more)
    return ExportSession(told, {child.session.key: child for child in subagents})


def message(role: Any, *parts: Part, prompt: str | None = None, **more: Any) -> Message:
    """Return a message, by default five seconds after the start."""
    given: dict[str, Any] = {
        "id": None,
        "at": START + timedelta(seconds=5),
        "fate": "live",
        "model": None,
        "usage": None,
    }
    return Message(role=role, prompt=prompt, parts=parts, **{**given, **more})


def user_message(text: str, *parts: Part, **more: Any) -> Message:
    """Return a user's message."""
    return message("user", Text(text), *parts, prompt=text, **more)


def assistant_message(*parts: Part | str, **more: Any) -> Message:
    """Return a model's message."""
    said = [Text(part) if isinstance(part, str) else part for part in parts]
    return message("assistant", *said, **{"model": "gemini-2.5-pro", **more})


def event(kind: Any, text: str = "", **more: Any) -> Event:
    """Return an event."""
    return Event(**{"id": None, "kind": kind, "at": START, "fate": "live", "text": text, **more})


def call(name: str, canonical: Any = "other", **more: Any) -> ToolCall:
    """Return a tool call, by default a successful one."""
    given: dict[str, Any] = {
        "id": "1", "category": "Other", "arguments": {}, "status": "success", "native_status": "success",
        "result": None, "error": None, "at": None, "child": None,
    }  # fmt: skip
    return ToolCall(name=name, canonical=canonical, **{**given, **more})


def everything() -> ExportSession:
    """Return a conversation with every kind of entry."""
    child = export_session(
        message("user", Context("task", "Count the loaves.")),
        assistant_message("There are **twelve**.", call("list_directory", "file_read", arguments={"path": "shelf"}, result="12")),
        key=CHILD,
        title="Count the loaves",
        kind="subagent",
    )  # fmt: skip
    return export_session(
        user_message("How many loaves are there? See @shelf.txt", Context("referenced_files", "--- shelf.txt ---\nrye, rye, spelt")),
        assistant_message(
            Thinking("Counting", "One should *look* first."),
            call("invoke_agent", "agent", arguments={"agent_name": "counter", "objective": "Count the loaves."}, result="Twelve.", child=CHILD),
            "## Twelve\n\n| bread | loaves |\n|---|--:|\n| rye | 9 |\n| spelt | 3 |\n\n```python\nloaves = 9 + 3  # rye and spelt\n```\n",
            usage=Usage("r1", 1000, 300, 0, 60, 20, 0, 1080),
        ),
        user_message("Throw the spelt away", fate="rewound"),
        assistant_message("Really?", fate="rewound"),
        event("compaction", "They count loaves."),
        user_message("Write it down", Attachment("photo.png", "image/png", PIXEL), Attachment("plan.svg", "image/svg+xml", "PHN2Zy8+")),
        assistant_message(
            call("write_file", "file_write", arguments={"file_path": "count.py", "content": "loaves = 12\n"},
                 display=DiffDisplay("count.py", "@@ -1 +1 @@\n-loaves = 11\n+loaves = 12", None, None), result="Written."),
            call("replace", "file_edit", arguments={"file_path": "a.md", "old_string": "eleven\nrye", "new_string": "twelve\nrye"},
                 status="error", error="eleven is not there"),
            call("run_shell_command", "shell_exec", arguments={"command": "make check\nmake bread"}, result="\x1b[31mburnt\x1b[0m", exit_code=2),
            call("write_todos", "planning", arguments={"todos": [{"description": "bake", "status": "completed"}]},
                 display=TodosDisplay((Todo("bake", "completed"), Todo("sell", "pending"))), result="ok"),
        ),
        event("error", "The oven is on fire"),
        event("info", "Update available"),
        assistant_message("Done.", at=START + timedelta(days=1)),
        subagents=[child],
    )  # fmt: skip


def session_with_text(text: str) -> ExportSession:
    """Return a conversation in which every field that can hold a text holds the given one."""
    child = export_session(user_message(text), assistant_message(text), key=text + "c", title=text)
    parts: list[Part] = [
        call(text, arguments={text: text, "nested": {text: [text]}, "n": 1}, result=text, error=text + "!", status="error"),
        call("edit", "file_edit", arguments={"file_path": text, "old_string": text, "new_string": text + "\n."}, other_results=(text,)),
        call("patch", "file_edit", arguments={"input": "*** Begin Patch\n" + text}, display=TextDisplay(text)),
        call("write", "file_write", arguments={"file_path": "a.py", "content": text}, display=DiffDisplay(text, text, text, text)),
        call("sh", "shell_exec", arguments={"command": text}, full_result=text, exit_code=3),
        call("plan", "planning", arguments={"why": text}, display=TodosDisplay((Todo(text, text),)), is_markdown=True, result=text),
        call("find", "file_search", arguments={"x": text}, display=FilesDisplay(text, (text, text)), attachments=(Attachment(text, text, text),)),
        call("agent", "agent", arguments={"prompt": text}, display=AgentDisplay(text, text, text), child=text + "c"),
        call("lost", "agent", arguments={"prompt": text}, child=text + "gone"),
    ]  # fmt: skip
    return export_session(
        user_message(text, Context("referenced_files", text), Context("tool_result", text, is_error=True), Attachment(text, text, text)),
        assistant_message(text, Thinking(text, text), Thinking(None, text), *parts, Opaque({text: text}), model=text),
        message("user", Context("hook", text), Context("shell", text)),
        message("system", Text(text)),
        event("error", text), event("compaction", text), event("notice", text, opaque=Opaque(text)),
        user_message(text, fate="rewound"), assistant_message(text, fate="superseded"), assistant_message(text, fate="compacted"), assistant_message(text, own=False),
        subagents=[child],
        title=text, key=text, agent=text, models=(text, text), tags=(text,), project=Project(text, text, text, "guessed"),
        problems=(Problem(text, "loss", text, text, 1, text),),
    )  # fmt: skip
