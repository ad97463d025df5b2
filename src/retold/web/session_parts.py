"""A part of a conversation, ready to be shown: what pages and their pieces have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from retold.archive.store import Store
from retold.export.formats.registry import ExportOptions, ExportSession
from retold.export.html.blocks import HEAD, TAIL, RenderContext
from retold.export.html.entries import Block
from retold.export.html.page import runs
from retold.export.html.tool_calls import CallView
from retold.model.session import View
from retold.sessions.pages import TimelineSlice, load_slice
from retold.web.page import NotFound, PageRequest, TemplatePage
from retold.web.url_state import shows

PAGE = 40
"""Entries that are sent at a time."""
FIRST = 12
"""Those of the first part, which somebody waits for."""
BEFORE = 6
"""Entries before the one that was asked for."""
LONG = 2_000
"""Characters of a call that is only sent when somebody opens it."""
CLIPPED = HEAD + TAIL
FARTHEST = 10**9
ALL = ExportOptions(thoughts=True, tokens=True, notices=True, is_redacted=False)
"""Everything is sent, and what is not to be seen is hidden: to show it takes no request."""


def view_of(asked: PageRequest) -> View:
    """Return the view that was asked for."""
    return "active" if asked.get("view") == "active" else "full"


def part_at(record: Store, key: str, at: int, view: View) -> TimelineSlice:
    """Return the part of a session around a place; raises Missing if there is no session."""
    part = part_from(record, key, max(0, at - BEFORE), view, FIRST)
    if part.first + len(part.session.timeline) <= at < part.total:  # what is before takes all the room
        part = part_from(record, key, at, view, FIRST)
    return part


def part_from(record: Store, key: str, first: int, view: View, count: int = PAGE) -> TimelineSlice:
    """Return the part of a session from a place on; raises Missing if there is no session."""
    part = load_slice(record, key, first, count, view)
    if part is None:
        raise NotFound(f"There is no session {key} in the archive.")
    return part


def part_until(record: Store, key: str, end: int, view: View) -> TimelineSlice:
    """Return the part of a session before a place; of large entries fewer."""
    count = min(PAGE, end)
    while True:
        part = part_from(record, key, end - count, view, count)
        if len(part.session.timeline) >= count or count <= 1:
            return part
        count //= 2


def told(
    asked: PageRequest, part: TimelineSlice, prefix: str = "e", level: int = 2, depth: int = 0
) -> dict[str, Any]:
    """Return a part as templates are given it."""
    frame = RenderContext(ExportSession(part.session), ALL, prefix, level, depth, part.first)
    end = part.first + len(part.session.timeline)
    return {
        "frame": frame,
        "runs": runs(frame),
        "first": part.first,
        "end": end,
        "total": part.total,
        "earlier": max(0, part.first - FIRST + BEFORE) if part.first else None,
        "later": end if end < part.total else None,
        "view": part.session.view,
        "shows": shows(asked),
        "show": asked.get("show"),
        "long": LONG,
        "clipped": CLIPPED,
        "grouped": grouped,
    }


def piece(asked: PageRequest, template: str, values: Mapping[str, Any]) -> TemplatePage:
    """Return a piece of a session's page; where no script asked for it, a page with nothing else on it."""
    given = {"key": asked.get("key"), **values}
    if asked.get("piece"):
        return TemplatePage(template, given)
    return TemplatePage("session_alone.html", {**given, "template": template})


def grouped(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Yield what an entry says; calls that were made beside each other, together."""
    for is_call, group in groupby(blocks, key=lambda block: isinstance(block, CallView)):
        if is_call:
            yield list(group)
        else:
            yield from ([block] for block in group)
