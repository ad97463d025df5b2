"""By what an agent can narrow down what it asks for. Whatever it gives, it sees no more than the server's reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from retold.archive.queries.conditions import Condition
from retold.mcp.cursor import BadCursor
from retold.mcp.tool import Arguments, ToolContext
from retold.search.facets import conditions_of
from retold.search.filters import UnknownChoice

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
