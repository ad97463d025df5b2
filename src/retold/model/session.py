"""One conversation, whatever the number of files it lies in."""

from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

import msgspec

from retold.model.entries import Entry, Message
from retold.model.parts import Context
from retold.model.problem import Problem
from retold.model.project import Project
from retold.model.usage import Totals

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
