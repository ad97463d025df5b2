"""`search_history`: sessions that match a query."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Literal

import msgspec

from retold.archive.index.reader import open_shared_index
from retold.mcp.passages import cite, format_places, is_result_hidden
from retold.mcp.reply import Passage, RequestError
from retold.mcp.tool import Filtered, Tool, ToolContext, parse_filters, session_conditions
from retold.projects.matching import matches_project
from retold.search.engine import Search
from retold.search.filters import Filters
from retold.search.listing import unknown_name_messages
from retold.search.pages import load_result_rows, parse_limited
from retold.search.query import SYNTAX, Query, QuerySyntaxError
from retold.search.scan_job import TIME_LIMIT, ResultItem, ScanJob, to_result_item

_MOST = 200
"""Results of a search for letters or a pattern, over all its pages."""
_FEW = 20
"""Results of a reply, about."""
_EARLY = "The search stopped early: a filter, or mode `letters`, may find more."


class Arguments(Filtered, frozen=True, kw_only=True):
    """The query, its mode and the filters."""

    query: Annotated[str, msgspec.Meta(description=SYNTAX, min_length=1, max_length=400)]
    mode: Annotated[
        Literal["words", "letters", "regex"],
        msgspec.Meta(description="`letters` finds a text anywhere and `regex` a pattern; both are slow"),
    ] = "words"


def _answer(context: ToolContext, arguments: Arguments) -> Iterator[Passage]:
    skipped, is_found = 0, False
    for holding in _holdings(context, arguments):
        if holding is None:
            skipped += 1
            continue
        for row in load_result_rows(context.store, [holding]):
            lines = "\n".join(format_places(context, row.summary.key, holding))
            yield Passage(cite(row.summary), lines, step=skipped + 1)
            skipped, is_found = 0, True
    if not is_found and context.first_passage == 0 and arguments.mode == "words":
        _refuse_unknown(context, arguments)


def _refuse_unknown(context: ToolContext, arguments: Arguments) -> None:
    """Raise RequestError for a name that no session within scope has; the message lists the known names.

    Projects are not checked: the error would reveal whether one exists beyond the scope.
    """
    fields = [
        (field.name, field.value)
        for field in _query(arguments).fields
        if not field.is_negated and field.name != "project"
    ]
    unknown = unknown_name_messages(context.store, fields, context.scope.conditions())
    if unknown:
        raise RequestError(context.redact("; ".join(unknown)))


def _holdings(context: ToolContext, arguments: Arguments) -> Iterator[ResultItem | None]:
    """Yield the results from `first_passage` on; None for one that the agent may not see."""
    if context.scan_result is not None:
        yield from context.scan_result.items[context.first_passage :]
        return
    query = _query(arguments)
    filters = Filters(query.fields)
    filters.sessions += session_conditions(context, arguments)
    search = Search(
        context.store, query, filters, open_shared_index(context.store, matches_project), context.redact
    )
    search.symbol_timeout = TIME_LIMIT
    found = islice(search.find_matches(_FEW, is_thorough=True), context.first_passage, None)
    for holding in map(to_result_item, search.load_results(found)):
        yield None if query.terms and is_result_hidden(context, holding) else holding
    if not search.is_complete:
        context.notes.append(_EARLY)


def _query(arguments: Arguments) -> Query:
    try:
        return parse_limited(arguments.query)
    except QuerySyntaxError as unclear:
        raise RequestError(f"{unclear.message} (character {unclear.offset + 1} of the query)") from unclear


def _scan(arguments: Arguments) -> ScanJob | None:
    if arguments.mode == "words":
        return None
    parse_filters(arguments)  # raises for a malformed date
    return ScanJob(arguments.query, arguments.mode == "regex", arguments.filters, _MOST)


SEARCH_HISTORY = Tool(
    name="search_history",
    title="Search past conversations",
    about="Find words in past conversations with coding agents: what was asked, answered, run and printed. The best come"
    " first, each with its session key and turns, which read_session takes. All words must occur; for a question in plain"
    " words, about an error or a decision, find_fix and find_decisions are better.",
    arguments=Arguments,
    answer=_answer,
    empty_text="Nothing was found. Fewer words, a prefix (migrat*) or mode `letters` may find more.",
    scan=_scan,
)
