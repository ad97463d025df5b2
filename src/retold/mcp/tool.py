"""What an agent can ask: a name, what it is for, what it takes, and who answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from retold.archive.queries.conditions import Condition
from retold.archive.store import Store, as_text
from retold.mcp.reply import LEAST, MOST, USUAL, BadCursor, Passage
from retold.redaction import Redactor
from retold.search.access import AccessScope
from retold.search.facets import conditions_of
from retold.search.filters import UnknownChoice
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


_NAMES = ("agent", "project", "since", "until")


class Filtered(Arguments, frozen=True, kw_only=True):
    """Arguments of tools that look at many conversations."""

    agent: Annotated[
        str,
        msgspec.Meta(description="only conversations with this one: gemini, claude or codex", max_length=40),
    ] = ""
    project: Annotated[
        str, msgspec.Meta(description="only of this project: its name or its folder", max_length=400)
    ] = ""
    since: Annotated[
        str,
        msgspec.Meta(
            description="only from then on: 2026-01-27, 7d, yesterday; days are local, times in answers are UTC",
            max_length=40,
        ),
    ] = ""
    until: Annotated[str, msgspec.Meta(description="only until then, as `since`", max_length=40)] = ""

    @property
    def filters(self) -> Mapping[str, str]:
        """Those that were given."""
        return {name: value for name in _NAMES if (value := getattr(self, name))}


def narrowed(asking: ToolContext, arguments: Filtered) -> list[Condition]:
    """Return what must hold of sessions: that they are within reach, and what was asked for."""
    return [*asking.reach.conditions(), *filtered(arguments)]


def filtered(arguments: Filtered) -> list[Condition]:
    """Return what the filters ask for."""
    try:
        return conditions_of(arguments.filters)
    except UnknownChoice as unknown:
        raise BadCursor(str(unknown)) from unknown
    except ValueError as error:
        given = " or ".join(repr(value) for value in (arguments.since, arguments.until) if value)
        raise BadCursor(f"{given} is no date: write 2026-01-27, 7d, today or yesterday") from error
