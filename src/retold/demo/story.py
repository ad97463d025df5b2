"""A story: one conversation, before any agent has written it down."""

import json
from typing import Any, Literal

import msgspec

AgentName = Literal["claude", "codex", "gemini"]
Form = Literal["lines", "document", "hashed"]
"""How Gemini CLI writes: JSON lines (0.61), one document (0.38), one document below a hash (0.28)."""
Kind = Literal["run", "read", "list", "grep", "find", "edit", "write", "web", "fetch", "todo", "agent", "mcp"]
Fate = Literal["done", "failed", "stopped"]
LOOKING = frozenset(("read", "list", "grep", "find", "web", "fetch"))
"""Calls that change nothing: models make several of them at once."""
_STATES = {"x": "completed", ">": "in_progress", " ": "pending"}


class Ask(msgspec.Struct, frozen=True):
    """What the person types."""

    text: str


class Think(msgspec.Struct, frozen=True):
    """What the model thinks."""

    subject: str
    text: str


class Say(msgspec.Struct, frozen=True):
    """What the model answers."""

    text: str


class StoryCall(msgspec.Struct, frozen=True):
    """What the model does: a command, a path, a pattern or a query, and what came of it."""

    kind: Kind
    what: str
    body: str = ""
    fate: Fate = "done"
    beats: "tuple[Beat, ...]" = ()

    def todos(self) -> list[tuple[str, str]]:
        """Return things to do with their states, from lines such as `[x] done`, `[>] doing` and `[ ] to do`."""
        return [(row[4:], _STATES[row[1]]) for row in self.body.splitlines()]

    def on_server(self) -> tuple[str, str, dict[str, Any]]:
        """Return server, tool and arguments of `server.tool {...}`."""
        name, _, arguments = self.what.partition(" ")
        server, _, tool = name.partition(".")
        return server, tool, json.loads(arguments)

    def delegated(self) -> tuple[str, str]:
        """Return which agent was asked, and for what, of `agent: task`."""
        agent, _, task = self.what.partition(": ")
        return agent, task


class Notice(msgspec.Struct, frozen=True):
    """What the agent's program says itself."""

    kind: Literal["info", "error"]
    text: str


class Shell(msgspec.Struct, frozen=True):
    """A command that the person runs, beside the conversation."""

    command: str
    output: str


class Rewind(msgspec.Struct, frozen=True):
    """The person takes the last prompt back, with all that followed."""


class Compact(msgspec.Struct, frozen=True):
    """Everything so far gives way to a summary."""

    summary: str


class Save(msgspec.Struct, frozen=True):
    """The person saves a checkpoint."""

    tag: str


class Later(msgspec.Struct, frozen=True):
    """The conversation rests, and goes on."""

    hours: int


Beat = Ask | Think | Say | StoryCall | Notice | Shell | Rewind | Compact | Save | Later


class Story(msgspec.Struct, frozen=True):
    """A script, and where and when it was played."""

    id: str
    title: str
    agent: AgentName
    project: str
    model: str
    when: str
    beats: tuple[Beat, ...]
    form: Form = "lines"
    marks: frozenset[str] = frozenset()
    forked_from: str | None = None

    def prompts(self) -> tuple[str, ...]:
        """Return what the person typed, in its order."""
        return tuple(beat.text for beat in self.beats if isinstance(beat, Ask))
