"""What the palette offers: a piece that every page can show above itself."""

from __future__ import annotations

from retold.archive.database import IndexDamagedError
from retold.archive.store import Store
from retold.export.text.search_results import marked, speaker
from retold.export.text.table import project_name
from retold.search.quick_find import QuickFind, leap
from retold.web.answer import Answer, PageRequest, PageRoute, TemplatePage
from retold.web.looking import LONGEST, session_address
from retold.web.navigation import WAYS


def palette(asked: PageRequest, record: Store) -> Answer:
    """Answer with what is offered for what was typed so far."""
    text = asked.get("q").strip()[:LONGEST]
    try:
        offered = leap(record, text)
    except IndexDamagedError:
        offered = QuickFind()
    words = text.casefold()
    values = {
        "text": text,
        "offered": offered,
        "places": [
            (way.path, way.name) for way in WAYS if words and words in f"{way.name.casefold()} {way.also}"
        ],
        "marked": marked,
        "speaker": speaker,
        "project_name": project_name,
        "session_address": session_address,
    }
    return TemplatePage("palette.html", values)


PALETTE_PAGES = (PageRoute("/palette", palette),)
