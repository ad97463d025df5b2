"""The Session model: messages, events, parts, tokens, projects and files of one conversation."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Any, Literal

import msgspec

from retold.model import FIGURES
from retold.model.problem import Problem


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
    """A task of a list."""

    text: str
    status: str | None


class TodosDisplay(msgspec.Struct, frozen=True, tag="todos", omit_defaults=True, gc=False):
    """A list of tasks."""

    todos: tuple[Todo, ...]
    extra: dict[str, Any] | None = None


class FilesDisplay(msgspec.Struct, frozen=True, tag="files", omit_defaults=True, gc=False):
    """A summary with files or matching lines."""

    summary: str | None
    files: tuple[str, ...] = ()
    matches: tuple[dict[str, Any], ...] = ()
    extra: dict[str, Any] | None = None


class AgentDisplay(msgspec.Struct, frozen=True, tag="agent", omit_defaults=True, gc=False):
    """The state of a subagent."""

    name: str | None
    state: str | None = None
    result: str | None = None
    activity: tuple[dict[str, Any], ...] = ()
    extra: dict[str, Any] | None = None


class OpaqueDisplay(msgspec.Struct, frozen=True, tag="opaque", gc=False):
    """A display of unknown shape, as it was recorded."""

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
    """The words of a person or a model."""

    text: str
    signature: str | None = None


class Thinking(msgspec.Struct, frozen=True, tag="thinking", omit_defaults=True, gc=False):
    """A thought of a model."""

    subject: str | None
    text: str
    at: datetime | None = None
    signature: str | None = None


class Attachment(msgspec.Struct, frozen=True, tag="attachment", omit_defaults=True, gc=False):
    """A referenced file by its path, or data by its media type."""

    path: str | None = None
    media_type: str | None = None
    data: str | None = None
    """Base64, as recorded."""


class Context(msgspec.Struct, frozen=True, tag="context", omit_defaults=True, gc=False):
    """Text that the agent added to a message. None if the call holds the same text."""

    kind: ContextKind
    text: str | None
    call: str | None = None
    """The id of the tool call of a `tool_result`."""
    is_error: bool = False
    attachments: tuple[Attachment, ...] = ()


class Opaque(msgspec.Struct, frozen=True, tag="opaque", gc=False):
    """A value of unknown kind, as it was recorded."""

    value: Any


class Usage(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The tokens of one request to a model.

    `input` is the whole prompt, cache reads (`cached`) and writes included; `reasoning` is not in `output`.
    """

    request: str
    """The agent's own request id, else `<native session id>/<message id>`: the same in every copy."""
    input: int | None
    cached: int | None
    cache_write: int | None
    output: int | None
    reasoning: int | None
    tool: int | None
    total: int | None
    estimated: bool = False
    cache_write_1h: int | None = None
    """The part of `cache_write` that was written to last an hour, at a higher price."""


class Totals(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The tokens of several requests, each counted once."""

    input: int | None
    cached: int | None
    cache_write: int | None
    output: int | None
    reasoning: int | None
    tool: int | None
    total: int | None
    requests: int
    estimated: bool
    cache_write_1h: int | None = None


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call", omit_defaults=True, gc=False):
    """A use of a tool with its result."""

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
    """The key of the subagent's session that this call started."""
    title: str | None = None
    description: str | None = None
    display: Display | None = None
    is_markdown: bool = False
    """Whether the agent showed the result as Markdown."""
    exit_code: int | None = None
    server: str | None = None
    """The MCP server and its own name of the tool."""
    server_tool: str | None = None
    attachments: tuple[Attachment, ...] = ()
    full_result: str | None = None
    """The whole output, if the agent moved it to a file and left an extract."""
    other_results: tuple[str, ...] = ()
    """Other results that the agent recorded for this call, as when it masks old output."""
    signature: str | None = None
    extra: dict[str, Any] | None = None
    """Other recorded fields of the call."""
    took_ms: int | None = None
    """The duration of the call: recorded, or from its request to its result; None if neither is known.

    The latter includes the wait for a person's consent and for calls of the same request.
    """


Part = Text | Thinking | ToolCall | Attachment | Context | Opaque
Role = Literal["user", "assistant", "system"]
Fate = Literal["live", "rewound", "compacted", "superseded"]
EventKind = Literal["compaction", "info", "warning", "error", "notice"]


class Message(msgspec.Struct, frozen=True, tag="message", omit_defaults=True, gc=False):
    """A message in parts, with its fate."""

    id: str | None
    """The id of the record; None if it has none."""
    role: Role
    at: datetime | None
    fate: Fate
    prompt: str | None
    """The person's own words; None if no person spoke."""
    model: str | None
    usage: Usage | None
    parts: tuple[Part, ...]
    own: bool = True
    """False for an entry that was copied from another session."""
    response: str | None = None
    """The model's response that this is a piece of, if one is recorded in several messages."""
    extra: dict[str, Any] | None = None
    """Other recorded fields of the message, under the agent's names."""


class Event(msgspec.Struct, frozen=True, tag="event", omit_defaults=True, gc=False):
    """An event between messages."""

    id: str | None
    kind: EventKind
    at: datetime | None
    fate: Fate
    text: str
    opaque: Opaque | None = None
    own: bool = True
    extra: dict[str, Any] | None = None
    """Other recorded fields of the event, under the agent's names."""


Entry = Message | Event


def prompt_words(entry: Entry) -> str | None:
    """Return a person's words in an entry, also in a copy from another session; None if there are none."""
    if not isinstance(entry, Message) or entry.role != "user":
        return None
    return entry.prompt if entry.prompt is not None or entry.own else first_text(entry)


def is_copied_prompt(message: Message) -> bool:
    """Return whether an entry is a copy of a person's words in another session."""
    return not message.own and first_text(message) is not None


def first_text(message: Message) -> str | None:
    """Return the first text of a message, None if it has none."""
    return next((part.text for part in message.parts if isinstance(part, Text)), None)


Evidence = Literal["recorded", "registry", "hash", "guessed", "none"]


class Project(msgspec.Struct, frozen=True, gc=False):
    """A project's root with the evidence for it."""

    root: str | None
    native_key: str | None
    """The agent's name of the project: that of a folder in its home."""
    hash: str | None
    evidence: Evidence


class Clue(msgspec.Struct, frozen=True, gc=False):
    """A statement about a project's root, under the agent's name of the project if there is one."""

    root: str
    evidence: Evidence
    native_key: str | None = None


def root_hash(root: str) -> str:
    """Return the hash of a project's root: of its text, exactly as it stands."""
    return hashlib.sha256(root.encode(errors="replace")).hexdigest()


VERSION = 1
"""The version of the JSON form, raised when the meaning of a field changes, but not for new fields."""
Kind = Literal["main", "subagent", "fork", "checkpoint", "prompts-only", "capture"]
COPY_KINDS: tuple[Kind, ...] = ("checkpoint", "capture")
"""Kinds of sessions that repeat others, and so cost nothing."""
SessionStatus = Literal["success", "failure", "interrupted"]
View = Literal["full", "active"]
SourceState = Literal["present", "gone", "earlier"]


class SourceFile(msgspec.Struct, frozen=True, gc=False):
    """A file of the conversation."""

    home: str | None
    path: str
    format: str
    bytes: int
    state: SourceState = "present"
    """`gone`: only the archive has it; `earlier`: an earlier content of a rewritten file."""


class Counts(msgspec.Struct, frozen=True, gc=False):
    """The numbers of prompts, messages and calls in the view of the session."""

    prompts: int
    messages: int
    tool_calls: int
    tool_errors: int


class Coverage(msgspec.Struct, frozen=True, gc=False):
    """The number of records, and of values among them that were kept as Opaque."""

    records: int
    opaque: int


class Session(msgspec.Struct, frozen=True, gc=False):
    """A conversation with its timeline, in one of two views."""

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
    """Whether no time was recorded: then they come from the name or the age of the file."""
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
    """Other recorded fields of the session, under the agent's names. Values of more than 4096 bytes are left out;
    `left_out` holds their names and sizes.
    """
    timeline: tuple[Entry, ...]


def is_spoken(session: Session) -> bool:
    """Return whether a session is a conversation.

    Starting an agent leaves a session without messages, or with the agent's own instructions: it is archived, but neither listed
    nor counted. A title or an unreadable part may belong to a conversation. Unknown fields do not count: a later version of the
    agent may describe an empty session with more of them.
    """
    is_unread = any(problem.code != "unknown-part" for problem in session.problems)
    return bool(session.title or is_unread or any(map(_is_conversation, session.timeline)))


_SET_UP = frozenset(("acknowledgement", "command", "environment", "hook", "ide", "notification", "reminder"))
"""Kinds of context that agents add without a request."""


def _is_conversation(entry: Entry) -> bool:
    return isinstance(entry, Message) and not (
        entry.parts and all(isinstance(part, Context) and part.kind in _SET_UP for part in entry.parts)
    )


PATH_ARGUMENTS = frozenset(
    (
        "absolute_path", "dir_path", "directory", "file", "file_name", "file_path", "filename", "files", "include",
        "notebook_path", "path", "paths", "target_file",
    )
)  # fmt: skip
"""The names of arguments with paths."""
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)
PATCH = "*** Begin Patch"
_WORD = re.compile(
    r"(?<![\w:/.])[~\w.@+-]{0,1000}[/\\][\w.@+~/\\-]{0,1000}\w|(?<![\w/.])[\w-]{1,1000}\.[A-Za-z]\w{0,7}\b"
)
"""A word of a command that may be a path: it has a separator or an ending. Longer commands are not searched."""
_NO_PATH = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters in no name that a person gives a file: line ends, and halves of surrogate pairs. Other spaces occur."""
_LONGEST = 1_000
_MOST = 50


def touched_paths(call: ToolCall) -> Iterator[str]:
    """Yield the paths in a call's arguments, as they are written."""
    return (path for path in _named_paths(call) if _NO_PATH.search(path) is None)


def _named_paths(call: ToolCall) -> Iterator[str]:
    for name, value in call.arguments.items():
        if name in PATH_ARGUMENTS:
            yield from _paths(value)
        elif type(value) is str and "*** " in value and call.canonical in ("file_edit", "shell_exec"):
            yield from patched_paths(value)
        elif type(value) is str and call.canonical == "shell_exec" and len(value) <= _LONGEST:
            yield from _WORD.findall(value)[:_MOST]


def _paths(value: Any) -> Iterator[str]:
    found = value if type(value) is list else [value]
    yield from (path for path in found if type(path) is str and 0 < len(path) <= _LONGEST)


def patched_paths(text: str) -> list[str]:
    """Return the files of a patch in the form of Codex CLI."""
    return [added or moved for added, moved in _PATCHED.findall(text)]


_get_figures = attrgetter(*FIGURES)


def sum_usage(usages: Iterable[Usage]) -> Totals:
    """Return the sums of the recorded figures, each request counted once; a figure without a record stays unknown."""
    once = tuple({usage.request: usage for usage in usages}.values())
    rows: Iterable[tuple[int | None, ...]] = (
        zip(*map(_get_figures, once), strict=True) if once else [()] * len(FIGURES)
    )
    given, cached, cache_write, output, reasoning, tool, total, hourly = map(_sum, rows)
    estimated = any([usage.estimated for usage in once])
    return Totals(given, cached, cache_write, output, reasoning, tool, total, len(once), estimated, hourly)


def add_totals(first: Totals, second: Totals) -> Totals:
    """Return the sums of two totals of different requests."""
    figures = [_sum(pair) for pair in zip(_get_figures(first), _get_figures(second), strict=True)]
    given, cached, cache_write, output, reasoning, tool, total, hourly = figures
    requests, estimated = first.requests + second.requests, first.estimated or second.estimated
    return Totals(given, cached, cache_write, output, reasoning, tool, total, requests, estimated, hourly)


def _sum(figures: tuple[int | None, ...]) -> int | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None


LARGEST_INTEGER = 2**63 - 1
"""The largest integer of SQLite."""
MOST_TOKENS = 10**12
"""The most tokens that a request may claim, so that millions of such requests still have a sum."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
Figures = tuple[
    int | None, int | None, int | None, int | None, int | None, int | None, int | None, int | None
]
"""The tokens of a request, in the order of `FIGURES`."""


class Request(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A request: its name, which all its copies share, and its tokens."""

    name: str
    model: str | None
    at: int | None
    """Microseconds since 1970."""
    figures: Figures
    estimated: bool = False
    copied: bool = False
    """Whether the session's own file says that another session made it."""


def clamp_figure(figure: int | None, largest: int = MOST_TOKENS) -> int | None:
    """Return a count that can be stored and summed."""
    return None if figure is None else max(min(figure, largest), 0)


def to_micros(at: datetime | None) -> int | None:
    """Return a time in microseconds since 1970."""
    return None if at is None else (at - _EPOCH) // _MICROSECOND
