"""`search_history`: find what was said."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Literal

import msgspec

from retold.archive.index.reader import kept_index
from retold.mcp.passages import cited, is_untold, place_lines
from retold.mcp.reply import BadCursor, Passage
from retold.mcp.tool import Filtered, Tool, ToolContext, filtered, narrowed
from retold.projects.matching import is_meant
from retold.search.engine import Search
from retold.search.filters import Filters
from retold.search.listing import unknown_names
from retold.search.pages import held_rows, short_query
from retold.search.query import SYNTAX, Query, QuerySyntaxError
from retold.search.scan_job import BOUND, ResultItem, ScanJob, holding_of

_MOST = 200
"""Conversations that a search for letters or a pattern tells of, over all its pages."""
_FEW = 20
"""Conversations that an answer tells of at most, or nearly so."""
_EARLY = "The search stopped early: a filter, or mode `letters`, may find more."


class Arguments(Filtered, frozen=True, kw_only=True):
    """What is looked for, and where."""

    query: Annotated[
        str,
        msgspec.Meta(
            description=SYNTAX,
            min_length=1,
            max_length=400,
        ),
    ]
    mode: Annotated[
        Literal["words", "letters", "regex"],
        msgspec.Meta(description="`letters` finds a text anywhere and `regex` a pattern; both are slow"),
    ] = "words"


def _answer(asking: ToolContext, arguments: Arguments) -> Iterator[Passage]:
    skipped, is_found = 0, False
    for holding in _holdings(asking, arguments):
        if holding is None:
            skipped += 1
            continue
        for row in held_rows(asking.record, [holding]):
            lines = "\n".join(place_lines(asking, row.card.key, holding))
            yield Passage(cited(row.card), lines, numbers=skipped + 1)
            skipped, is_found = 0, True
    if not is_found and asking.first == 0 and arguments.mode == "words":
        _refuse_unknown(asking, arguments)


def _refuse_unknown(asking: ToolContext, arguments: Arguments) -> None:
    """Raise Refused for a name that no session within reach has; the message lists the names there are.

    Of a project nothing is said: whether there is one beyond reach is not told.
    """
    fields = [
        (field.name, field.value)
        for field in _query(arguments).fields
        if not field.is_negated and field.name != "project"
    ]
    unknown = unknown_names(asking.record, fields, asking.reach.conditions())
    if unknown:
        raise BadCursor(asking.clean("; ".join(unknown)))


def _holdings(asking: ToolContext, arguments: Arguments) -> Iterator[ResultItem | None]:
    """Yield results from the first one wanted; None for one the agent may not see."""
    if asking.scanned is not None:
        yield from asking.scanned.holdings[asking.first :]
        return
    query = _query(arguments)
    wanted = Filters(query.fields)
    wanted.sessions += narrowed(asking, arguments)
    search = Search(asking.record, query, wanted, kept_index(asking.record, is_meant), asking.clean)
    search.patience = BOUND
    found = islice(search.matches(_FEW, is_thorough=True), asking.first, None)
    for holding in map(holding_of, search.told(found)):
        yield None if query.terms and is_untold(asking, holding) else holding
    if not search.is_complete:
        asking.notes.append(_EARLY)


def _query(arguments: Arguments) -> Query:
    try:
        return short_query(arguments.query)
    except QuerySyntaxError as unclear:
        raise BadCursor(f"{unclear.message} (character {unclear.place + 1} of the query)") from unclear


def _scan(arguments: Arguments) -> ScanJob | None:
    if arguments.mode == "words":
        return None
    filtered(arguments)  # so that a date that is none is told
    return ScanJob(arguments.query, arguments.mode == "regex", arguments.filters, _MOST)


SEARCH_HISTORY = Tool(
    name="search_history",
    title="Search past conversations",
    about="Find words in past conversations with coding agents: what was asked, answered, run and printed. The best come"
    " first, each with its session key and turns, which read_session takes. All words must occur; for a question in plain"
    " words, about an error or a decision, find_fix and find_decisions are better.",
    arguments=Arguments,
    answer=_answer,
    nothing="Nothing was found. Fewer words, a prefix (migrat*) or mode `letters` may find more.",
    scan=_scan,
)
