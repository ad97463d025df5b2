"""What a message is made of: typed parts, and nothing dropped."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from retold.model.display import Display

Status = Literal["success", "error", "cancelled", "unknown"]
Canonical = Literal[
    "shell_exec", "file_write", "file_edit", "file_read", "file_search", "web_access", "memory", "planning",
    "skill", "agent", "mcp", "ask_user", "other",
]  # fmt: skip
Category = Literal["Execute", "Edit", "Read", "Search", "Fetch", "Think", "Plan", "Other"]
ContextKind = Literal[
    "acknowledgement", "background", "code", "code_result", "command", "continuation", "environment", "hook", "ide",
    "notification", "referenced_files", "reminder", "shell", "skill", "snapshot", "steering", "task", "tool_result",
]  # fmt: skip


class Text(msgspec.Struct, frozen=True, tag="text", omit_defaults=True, gc=False):
    """Words that a person or a model said."""

    text: str
    signature: str | None = None


class Thinking(msgspec.Struct, frozen=True, tag="thinking", omit_defaults=True, gc=False):
    """Words that a model thought."""

    subject: str | None
    text: str
    at: datetime | None = None
    signature: str | None = None


class Attachment(msgspec.Struct, frozen=True, tag="attachment", omit_defaults=True, gc=False):
    """Something that came along: a referenced file by its path, or data by its media type."""

    path: str | None = None
    media_type: str | None = None
    data: str | None = None
    """Base64, as recorded."""


class Context(msgspec.Struct, frozen=True, tag="context", omit_defaults=True, gc=False):
    """Text that the agent put into a message; nobody said it. `None` where the call holds the same text."""

    kind: ContextKind
    text: str | None
    call: str | None = None
    """The id of the tool call that a `tool_result` belongs to."""
    is_error: bool = False
    attachments: tuple[Attachment, ...] = ()


class Opaque(msgspec.Struct, frozen=True, tag="opaque", gc=False):
    """What nobody understands yet, kept as it was."""

    value: Any


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call", omit_defaults=True, gc=False):
    """One use of a tool, with its result inside."""

    id: str
    name: str
    canonical: Canonical
    category: Category
    arguments: dict[str, Any]
    status: Status
    native_status: str | None
    result: str | None
    error: str | None
    at: datetime | None
    child: str | None
    """The key of the session of the subagent that this call started."""
    title: str | None = None
    description: str | None = None
    display: Display | None = None
    is_markdown: bool = False
    """Whether the agent showed the result as Markdown."""
    exit_code: int | None = None
    server: str | None = None
    """The MCP server, and the tool's name on it."""
    server_tool: str | None = None
    attachments: tuple[Attachment, ...] = ()
    full_result: str | None = None
    """The whole output where the agent moved it to a file and left only an extract."""
    other_results: tuple[str, ...] = ()
    """What the agent wrote in place of the result at another time, as when it masks old output."""
    signature: str | None = None
    extra: dict[str, Any] | None = None
    """What else the agent recorded of this call."""
    took_ms: int | None = None
    """How long it ran, as the agent recorded it, else from when it was asked for to its result; None where neither is known.

    The latter holds what no record tells apart: waiting for a person's consent, and for calls that were made beside it.
    """


Part = Text | Thinking | ToolCall | Attachment | Context | Opaque
