"""Ways on from a conversation: the command that resumes it, and documents of it."""

from __future__ import annotations

import os

from retold.archive.database import Stopped
from retold.archive.record import Record
from retold.care.resume import command_line, endangered, quoted, way_on
from retold.export.document import document
from retold.export.formats import FORMATS
from retold.export.telling import Choice
from retold.web.answer import Answer, Asked, Missing, Page, Sent
from retold.web.parts import piece, view_of

_BINARY = "application/octet-stream"
_TYPES = {
    ".md": "text/markdown; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
}


def resume(asked: Asked, record: Record) -> Answer:
    """Answer with the command that goes on with a session; it is never run from here."""
    key = asked.get("key")
    values = {"line": "", "why": "", "is_missing": False, "is_endangered": False}
    try:
        plan = way_on(record, key, os.environ)
    except Stopped as stopped:
        values["why"] = str(stopped)
    else:
        restored = f"{quoted(('retold', 'restore', key, '--clean'))} && " if plan.additions else ""
        values["line"] = restored + command_line(plan)
        values["is_missing"] = bool(plan.additions)
        values["is_endangered"] = not plan.additions and endangered(plan)
    return piece(asked, "session_resume.html", values)


def export(asked: Asked, record: Record) -> Answer:
    """Answer with a session as a file: without its secrets, unless they are to stay."""
    form = FORMATS.get(asked.get("format", "md"))
    if form is None:
        raise Missing("There is no such form of a document.")
    is_redacted = asked.get("secrets") != "keep"
    choice = Choice(thoughts=bool(asked.get("thoughts")), is_redacted=is_redacted)
    made = document(record, asked.get("key"), asked.get("format", "md"), choice, view_of(asked))
    if made is None:
        raise Missing("There is no such session in the archive.")
    return Sent(made.name, _TYPES.get(form.suffix, _BINARY), made.pieces)


PAGES = (Page("/session/resume", resume), Page("/session/export", export))
