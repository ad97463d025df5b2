"""What an agent can ask: a name, what it is for, what it takes, and who answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from retold.archive.store import Store, as_text
from retold.mcp.budget import LEAST, MOST, USUAL
from retold.mcp.passage import Passage
from retold.redaction import Redactor
from retold.search.access import AccessScope
from retold.search.scan_job import ScanJob, Scanned

Budget = Annotated[
    int, msgspec.Meta(ge=LEAST, le=MOST, description="the most tokens that the answer may take")
]
From = Annotated[
    str, msgspec.Meta(description="to go on: the cursor that the last answer ended with", max_length=40)
]


A = TypeVar("A", bound="Arguments")


class Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every tool takes."""

    budget: Budget = USUAL
    cursor: From = ""


def understood(kind: type[A], given: Mapping[str, Any]) -> A:
    """Return arguments as they were given, but for halves of characters, with which nothing can be asked; raises ValidationError."""
    told = {name: as_text(value) if isinstance(value, str) else value for name, value in given.items()}
    return msgspec.convert(told, kind)


class ToolContext(msgspec.Struct, frozen=True):
    """What a question is answered from."""

    record: Store
    reach: AccessScope
    clean: Callable[[str], str]
    """Takes secrets out of a text."""
    redactors: Callable[[], Redactor] | None
    """Makes what takes them out of one conversation; None where they may stay."""
    first: int = 0
    """The number of the passage that is wanted first."""
    scanned: Scanned | None = None
    """What a scan has found, where one was asked for."""
    notes: list[str] = msgspec.field(default_factory=list)
    """Facts about the search that the answer states behind its passages."""


class Tool(msgspec.Struct, frozen=True):
    """One tool. It only reads."""

    name: str
    title: str
    about: str
    """For the agent: what it is good for, and when to ask it."""
    arguments: type[Arguments]
    answer: Callable[[ToolContext, Any], Iterator[Passage]]
    """Yields passages from the first that is wanted on; no more of them are made than are told."""
    nothing: str
    """What is told where there are none."""
    scan: Callable[[Any], ScanJob | None] = lambda _arguments: None
    """What has to be looked for by a process of its own before it can be answered."""

    def schema(self) -> dict[str, Any]:
        """Return what it takes, as JSON Schema without references: some agents resolve none."""
        _, found = msgspec.json.schema_components([self.arguments])
        told = dict(found[self.arguments.__name__])
        return {name: value for name, value in told.items() if name not in ("title", "description")}
