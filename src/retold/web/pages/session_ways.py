"""Ways on from a conversation: the command that resumes it, and documents of it."""

from __future__ import annotations

import os

from retold.archive.database import RetoldError
from retold.archive.store import Store
from retold.export.files import file_name
from retold.export.formats.registry import FORMATS
from retold.maintenance.restore import endangered, way_on, whole_line
from retold.redaction import Redactor
from retold.web.answer import Answer, Download, NotFound, PageRequest, PageRoute
from retold.web.exporting import exported
from retold.web.parts import part_from, piece, view_of

_BINARY = "application/octet-stream"
_TYPES = {
    ".md": "text/markdown; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
}


def resume(asked: PageRequest, record: Store) -> Answer:
    """Answer with the command that goes on with a session; it is never run from here."""
    key = asked.get("key")
    values = {"line": "", "why": "", "is_missing": False, "is_endangered": False}
    try:
        plan = way_on(record, key, os.environ)
    except RetoldError as stopped:
        values["why"] = str(stopped)
    else:
        values["line"] = whole_line(plan, key)
        values["is_missing"] = bool(plan.additions)
        values["is_endangered"] = not plan.additions and endangered(plan)
    return piece(asked, "session_resume.html", values)


def export(asked: PageRequest, record: Store) -> Answer:
    """Answer with a session as a file: without its secrets, unless they are to stay."""
    name = asked.get("format", "md")
    form = FORMATS.get(name)
    if form is None:
        raise NotFound("There is no such form of a document.")
    session = part_from(record, asked.get("key"), 0, "full", 0).session
    options = ["--format", name, "--view", view_of(asked)]
    options += ["--thoughts"] if asked.get("thoughts") else []
    if asked.get("secrets") == "keep":
        options.append("--no-redact")
    else:
        session = Redactor(home=os.path.expanduser("~")).redacted(
            session
        )  # a title goes into the file's name
    pieces = exported(record.folder, asked.get("key"), options)
    return Download(file_name(session, form.suffix), _TYPES.get(form.suffix, _BINARY), pieces)


EXPORT_PAGES = (PageRoute("/session/resume", resume), PageRoute("/session/export", export))
