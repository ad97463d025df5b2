"""Which files were changed: most often, by whom, and how."""

from __future__ import annotations

from retold.archive.store import Store
from retold.export.html.tool_calls import edits
from retold.export.svg import length
from retold.projects.matching import in_project
from retold.reports.dashboards import changed, changers
from retold.sessions.pages import slices
from retold.web.page import Answer, NotFound, PageRequest, PageRoute, TemplatePage
from retold.web.session_parts import part_from
from retold.web.templating import address
from retold.web.url_state import PAGE, chosen_in, page_of


def files(asked: PageRequest, record: Store) -> Answer:
    """Answer with the files that were changed most, or with the sessions that changed one."""
    return _file(asked, record) if asked.get("path") else _files(asked, record)


def _files(asked: PageRequest, record: Store) -> Answer:
    chosen, page, part = chosen_in(asked, record, "all"), page_of(asked), asked.get("q").strip()
    found = changed(chosen.question(record), part, PAGE + 1, page * PAGE)
    most = max((one.changes for one in found), default=0)
    values = {
        "chosen": chosen,
        "part": part,
        "rows": [(one, length(one.changes, most)) for one in found[:PAGE]],
        "page": page,
        "has_more": len(found) > PAGE,
        "turned": lambda to: chosen.address("/files", q=part, page=to),
    }
    return TemplatePage("files.html", values)


def _file(asked: PageRequest, record: Store) -> Answer:
    chosen, page, path = chosen_in(asked, record, "all"), page_of(asked), asked.get("path")
    found = changers(chosen.question(record), path, PAGE + 1, page * PAGE)
    if not found:
        raise NotFound("No session changed a file of this name.")
    values = {
        "path": path,
        "name": in_project(path, found[0].root),
        "changers": found[:PAGE],
        "page": page,
        "has_more": len(found) > PAGE,
        "turned": lambda to: chosen.address("/files", path=path, page=to),
    }
    return TemplatePage("file.html", values)


def changes(asked: PageRequest, record: Store) -> Answer:
    """Answer with what one session changed in a file: a piece of that file's page, and a page of its own."""
    path, key = asked.get("path"), asked.get("key")
    session = part_from(record, key, 0, "full", 0).session
    found, left = edits(slices(record, key), path)
    values = {
        "path": path,
        "key": key,
        "name": in_project(path, session.project.root),
        "title": session.title,
        "edits": found,
        "left": left,
        "here": "/files",
        "back": address("/files", path=path),
    }
    return TemplatePage("changes_piece.html" if asked.get("piece") else "changes.html", values)


PAGES = (PageRoute("/files", files), PageRoute("/files/changes", changes))
