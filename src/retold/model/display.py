"""What the agent showed its user of a tool's result, in typed shapes."""

from typing import Any

import msgspec


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
