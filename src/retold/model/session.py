"""One conversation, whatever the number of files it lies in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

import msgspec

from retold.model.problem import Problem
from retold.model.usage import Totals, Usage


class TextDisplay(msgspec.Struct, frozen=True, tag="text", gc=False):
    """Plain text, or a terminal's screen without its colours."""

    text: str


class DiffDisplay(msgspec.Struct, frozen=True, tag="diff", omit_defaults=True, gc=False):
    """A file before and after."""

    path: str | None
    diff: str | None
    before: str | None
    after: str | None
    is_new: bool | None = None
    extra: dict[str, Any] | None = None


class Todo(msgspec.Struct, frozen=True, gc=False):
    """One thing to do."""

    text: str
    status: str | None


class TodosDisplay(msgspec.Struct, frozen=True, tag="todos", omit_defaults=True, gc=False):
    """A list of things to do."""

    todos: tuple[Todo, ...]
    extra: dict[str, Any] | None = None


class FilesDisplay(msgspec.Struct, frozen=True, tag="files", omit_defaults=True, gc=False):
    """A summary, with the files or the matching lines it speaks of."""

    summary: str | None
    files: tuple[str, ...] = ()
    matches: tuple[dict[str, Any], ...] = ()
    extra: dict[str, Any] | None = None


class AgentDisplay(msgspec.Struct, frozen=True, tag="agent", omit_defaults=True, gc=False):
    """How a subagent went."""

    name: str | None
    state: str | None = None
    result: str | None = None
    activity: tuple[dict[str, Any], ...] = ()
    extra: dict[str, Any] | None = None


class OpaqueDisplay(msgspec.Struct, frozen=True, tag="opaque", gc=False):
    """A shape nobody understands yet, kept as it was."""

    value: Any


Display = TextDisplay | DiffDisplay | TodosDisplay | FilesDisplay | AgentDisplay | OpaqueDisplay


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


Role = Literal["user", "assistant", "system"]
Fate = Literal["live", "rewound", "compacted", "superseded"]
EventKind = Literal["compaction", "info", "warning", "error", "notice"]


class Message(msgspec.Struct, frozen=True, tag="message", omit_defaults=True, gc=False):
    """One message, in parts, with what became of it."""

    id: str | None
    """The record's own id; none where the record has none."""
    role: Role
    at: datetime | None
    fate: Fate
    prompt: str | None
    """The human's own words; none where no human spoke."""
    model: str | None
    usage: Usage | None
    parts: tuple[Part, ...]
    own: bool = True
    """False for an entry that was copied from another session."""
    response: str | None = None
    """The response of the model that this is a piece of, where one is recorded in several messages."""
    extra: dict[str, Any] | None = None
    """What else the agent recorded with this message, under its own names."""


class Event(msgspec.Struct, frozen=True, tag="event", omit_defaults=True, gc=False):
    """Something that happened between messages."""

    id: str | None
    kind: EventKind
    at: datetime | None
    fate: Fate
    text: str
    opaque: Opaque | None = None
    own: bool = True
    extra: dict[str, Any] | None = None
    """What else the agent recorded with this event, under its own names."""


Entry = Message | Event


def words_of(entry: Entry) -> str | None:
    """Return what a person said, here or in the session that it was copied from; None where nobody did."""
    if not isinstance(entry, Message) or entry.role != "user":
        return None
    return entry.prompt if entry.prompt is not None or entry.own else first_text(entry)


def is_copied_prompt(message: Message) -> bool:
    """Tell whether a person said it in another session: here nobody did."""
    return not message.own and first_text(message) is not None


def first_text(message: Message) -> str | None:
    """Return the first words of a message, whoever said them."""
    return next((part.text for part in message.parts if isinstance(part, Text)), None)


Evidence = Literal["recorded", "registry", "hash", "guessed", "none"]


class Project(msgspec.Struct, frozen=True, gc=False):
    """A project's root, with the evidence for it; never a bare guess."""

    root: str | None
    native_key: str | None
    """The agent's own name for the project: a folder's name in its home."""
    hash: str | None
    evidence: Evidence


class Clue(msgspec.Struct, frozen=True, gc=False):
    """A word about where a project lies: under the agent's own name for it, or under none."""

    root: str
    evidence: Evidence
    native_key: str | None = None


def root_hash(root: str) -> str:
    """Return the hash under which a project's root is known: of the text, exactly as it stands."""
    return hashlib.sha256(root.encode(errors="replace")).hexdigest()


VERSION = 1
"""The version of the JSON form: raised when something in it changes its meaning, not when it grows."""

Kind = Literal["main", "subagent", "fork", "checkpoint", "prompts-only", "capture"]
COPIES: tuple[Kind, ...] = ("checkpoint", "capture")
"""Kinds that are copies of what was said elsewhere: they cost nothing."""
SessionStatus = Literal["success", "failure", "interrupted"]
View = Literal["full", "active"]


SourceState = Literal["present", "gone", "earlier"]


class SourceFile(msgspec.Struct, frozen=True, gc=False):
    """A file that this conversation was read from."""

    home: str | None
    path: str
    format: str
    bytes: int
    state: SourceState = "present"
    """`gone`: only the archive has it; `earlier`: the file was written anew, and this is what it held before."""


class Counts(msgspec.Struct, frozen=True, gc=False):
    """How much there is, in the view that was asked for."""

    prompts: int
    messages: int
    tool_calls: int
    tool_errors: int


class Coverage(msgspec.Struct, frozen=True, gc=False):
    """How much of the files was understood: records met, and how many things in them were kept as Opaque."""

    records: int
    opaque: int


class Session(msgspec.Struct, frozen=True, gc=False):
    """One conversation with its timeline, in one of its two views."""

    version: int
    key: str
    agent: str
    native_id: str | None
    kind: Kind
    project: Project
    title: str | None
    summary: str | None
    first_prompt: str | None
    last_prompt: str | None
    tags: tuple[str, ...]
    started_at: datetime | None
    ended_at: datetime | None
    are_times_derived: bool
    """True where nothing recorded a time: they come from the name or the age of the file."""
    status: SessionStatus
    models: tuple[str, ...]
    parent: str | None
    children: tuple[str, ...]
    counts: Counts
    usage: Totals
    cost_usd: Decimal | None
    sources: tuple[SourceFile, ...]
    coverage: Coverage
    problems: tuple[Problem, ...]
    view: View
    extra: dict[str, Any]
    """What the agent recorded about the session besides, under its own names. Values of more than 4096 bytes are left out;
    `left_out` holds their names and sizes."""
    timeline: tuple[Entry, ...]


def is_spoken(session: Session) -> bool:
    """Tell whether a session is a conversation.

    An agent that was only started leaves a session without messages, or with what the agent itself told the model: it is
    archived, and neither listed nor counted. One with a title, or with something that could not be read, may have been a
    conversation. Unknown fields do not make it one: a later version of the agent may describe a session with more of them.
    """
    is_unread = any(problem.code != "unknown-part" for problem in session.problems)
    return bool(session.title or is_unread or any(map(_is_conversation, session.timeline)))


_SET_UP = frozenset(("acknowledgement", "command", "environment", "hook", "ide", "notification", "reminder"))
"""What agents tell the model without being asked."""


def _is_conversation(entry: Entry) -> bool:
    return isinstance(entry, Message) and not (
        entry.parts and all(isinstance(part, Context) and part.kind in _SET_UP for part in entry.parts)
    )


CATEGORIES: dict[Canonical, Category] = {
    "shell_exec": "Execute",
    "file_write": "Edit",
    "file_edit": "Edit",
    "file_read": "Read",
    "file_search": "Search",
    "web_access": "Fetch",
    "memory": "Think",
    "planning": "Plan",
    "skill": "Other",
    "agent": "Other",
    "mcp": "Other",
    "ask_user": "Other",
    "other": "Other",
}


NAMES = frozenset(
    (
        "absolute_path", "dir_path", "directory", "file", "file_name", "file_path", "filename", "files", "include",
        "notebook_path", "path", "paths", "target_file",
    )
)  # fmt: skip
"""The arguments in which agents name files and folders."""
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)
PATCH = "*** Begin Patch"
_WORD = re.compile(
    r"(?<![\w:/.])[~\w.@+-]{0,1000}[/\\][\w.@+~/\\-]{0,1000}\w|(?<![\w/.])[\w-]{1,1000}\.[A-Za-z]\w{0,7}\b"
)
"""A word of a command that may be a path: with a separator in it, or an ending. No command that is read is longer."""
_NO_PATH = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")
"""What is in no name that a person gives a file: lines of a text, and halves of characters. Any other space is in some."""
_LONGEST = 1_000
_MOST = 50


def touched(call: ToolCall) -> Iterator[str]:
    """Yield the paths that a call names, as it names them."""
    return (path for path in _named(call) if _NO_PATH.search(path) is None)


def _named(call: ToolCall) -> Iterator[str]:
    for name, value in call.arguments.items():
        if name in NAMES:
            yield from _paths(value)
        elif type(value) is str and "*** " in value and call.canonical in ("file_edit", "shell_exec"):
            yield from patched(value)
        elif type(value) is str and call.canonical == "shell_exec" and len(value) <= _LONGEST:
            yield from _WORD.findall(value)[:_MOST]


def _paths(value: Any) -> Iterator[str]:
    found = value if type(value) is list else [value]
    yield from (path for path in found if type(path) is str and 0 < len(path) <= _LONGEST)


def patched(text: str) -> list[str]:
    """Return the files that a patch in the form of Codex CLI is about."""
    return [added or moved for added, moved in _PATCHED.findall(text)]
