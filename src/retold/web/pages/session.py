"""One conversation: a part of it, its outline, and all that can be asked about it from there."""

from __future__ import annotations

from typing import Any

from retold.archive.store import Store
from retold.export.formats.registry import FORMATS
from retold.export.html.page import UNTITLED, facts, problems
from retold.export.minimap import LENGTH, kind_of, paths
from retold.search.related import state
from retold.sessions.pages import TimelineSlice, turns
from retold.web.answer import Answer, PageRequest, PageRoute, TemplatePage
from retold.web.parts import FARTHEST, part_at, part_from, part_until, told, view_of
from retold.web.shows import TOGGLES, TOOLS

FIRST_TURNS, MOST_TURNS = 40, 2_000
"""Lines of the outline at first, and when it is asked for; of a session with more, those around the place."""
_ABOVE = ("Agent", "Tags")
"""Facts that stand above the title."""
_LEDGER = ("Tokens", "Cost")
"""Facts behind which there is a ledger."""


def session(asked: PageRequest, record: Store) -> Answer:
    """Answer with a conversation, from its beginning or from a place on."""
    at = asked.number("at", 0, FARTHEST)
    part = part_at(record, asked.get("key"), at, view_of(asked))
    return TemplatePage(
        "session.html",
        {**told(asked, part), **_about(record, part), **_outline(record, part, at, FIRST_TURNS)},
    )


def part(asked: PageRequest, record: Store) -> Answer:
    """Answer with further entries: from a place on, or those before one."""
    key, view = asked.get("key"), view_of(asked)
    until = asked.number("until", 0, FARTHEST)
    if until:
        found = part_until(record, key, until, view)
    elif asked.get("at"):
        found = part_at(record, key, asked.number("at", 0, FARTHEST), view)
    else:
        found = part_from(record, key, asked.number("first", 0, FARTHEST), view)
    return TemplatePage("session_part.html", told(asked, found))


def outline(asked: PageRequest, record: Store) -> Answer:
    """Answer with the outline alone."""
    at = asked.number("at", 0, FARTHEST)
    found = part_from(record, asked.get("key"), at, view_of(asked), 0)
    return TemplatePage(
        "session_outline.html", {**told(asked, found), **_outline(record, found, at, MOST_TURNS)}
    )


def _about(record: Store, part: TimelineSlice) -> dict[str, Any]:
    session = part.session
    now = state(record, session.key)
    states = [source.state for source in session.sources]
    return {
        "session": session,
        "title": session.title or UNTITLED,
        "facts": [
            (fact, fact.name in _LEDGER) for fact in facts(session, has_zone=False) if fact.name not in _ABOVE
        ],
        "problems": problems(session),
        "fates": {} if now is None else now.fates,
        "copied": 0 if now is None else now.copied,
        "stamp": "" if now is None else now.stamp,
        "is_gone": bool(states) and "present" not in states,
        "homes": sorted({source.home for source in session.sources if source.home}),
        "formats": [(name, form.told) for name, form in FORMATS.items()],
        "toggles": TOGGLES,
        "tools": TOOLS,
    }


def _outline(record: Store, part: TimelineSlice, at: int, most: int) -> dict[str, Any]:
    found = turns(record, part.session.key, part.session.view)
    here = sum(turn.place <= at for turn in found)
    begin = max(0, min(here - most // 2, len(found) - most))
    return {
        "turns": [(turn, kind_of(turn)) for turn in found[begin : begin + most]],
        "begin": begin,
        "all_turns": len(found),
        "strip": paths(found, part.total),
        "strip_length": LENGTH,
    }


PAGES = (
    PageRoute("/session", session),
    PageRoute("/session/part", part),
    PageRoute("/session/outline", outline),
)
