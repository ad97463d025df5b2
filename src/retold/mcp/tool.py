"""The interface of a tool: its arguments, its context and its definition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from retold.archive.queries.listing import Condition
from retold.archive.store import Store, as_text
from retold.mcp.reply import LEAST, MOST, USUAL, Passage, RequestError
from retold.redaction import Redactor
from retold.search.access import AccessScope
from retold.search.facets import filter_conditions
from retold.search.filters import UnknownChoice
from retold.search.scan_job import ScanJob, ScanResult

A = TypeVar("A", bound="ToolArguments")


class ToolArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Arguments of every tool."""

    budget: Annotated[
        int, msgspec.Meta(ge=LEAST, le=MOST, description="the most tokens that the answer may take")
    ] = USUAL
    cursor: Annotated[
        str, msgspec.Meta(description="to go on: the cursor that the last answer ended with", max_length=40)
    ] = ""


def parse_arguments(kind: type[A], given: Mapping[str, Any]) -> A:
    """Return the arguments of a call, without half surrogates, which cannot be searched; raises ValidationError."""
    clean = {name: as_text(value) if isinstance(value, str) else value for name, value in given.items()}
    return msgspec.convert(clean, kind)


class ToolContext(msgspec.Struct, frozen=True):
    """The archive, the scope and the redaction of one call."""

    store: Store
    scope: AccessScope
    redact: Callable[[str], str]
    """Removes secrets from a text."""
    make_redactor: Callable[[], Redactor] | None
    """Makes a redactor for one session; None if secrets may stay."""
    first_passage: int = 0
    """Number of the first passage that is needed."""
    scan_result: ScanResult | None = None
    """Result of the scan that the tool requested."""
    notes: list[str] = msgspec.field(default_factory=list)
    """Sentences about the search that follow the passages."""


class Tool(msgspec.Struct, frozen=True):
    """A tool. It only reads."""

    name: str
    title: str
    about: str
    """Its purpose and when to call it, written for agents."""
    arguments: type[ToolArguments]
    answer: Callable[[ToolContext, Any], Iterator[Passage]]
    """Yields passages from the first that is needed on, lazily."""
    empty_text: str
    """The answer if there are no passages."""
    scan: Callable[[Any], ScanJob | None] = lambda _arguments: None
    """Returns the scan of all text that another process must make before the tool can answer."""

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of its arguments, without references, which some agents cannot resolve."""
        _, components = msgspec.json.schema_components([self.arguments])
        schema = components[self.arguments.__name__]
        return {name: value for name, value in schema.items() if name not in ("title", "description")}


_NAMES = ("agent", "project", "since", "until")


class Filtered(ToolArguments, frozen=True, kw_only=True):
    """Arguments of tools that search many sessions."""

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
        """The filters that were given."""
        return {name: value for name in _NAMES if (value := getattr(self, name))}


def session_conditions(context: ToolContext, arguments: Filtered) -> list[Condition]:
    """Return the conditions of sessions: the scope, and the filters of a call."""
    return [*context.scope.conditions(), *parse_filters(arguments)]


def parse_filters(arguments: Filtered) -> list[Condition]:
    """Return the conditions of the filters; raises an error that names a malformed one."""
    try:
        return filter_conditions(arguments.filters)
    except UnknownChoice as unknown:
        raise RequestError(str(unknown)) from unknown
    except ValueError as error:
        given = " or ".join(repr(value) for value in (arguments.since, arguments.until) if value)
        raise RequestError(f"{given} is no date: write 2026-01-27, 7d, today or yesterday") from error
