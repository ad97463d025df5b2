"""The page of changed files, the page of one file, and the changes that a session made to it."""

from __future__ import annotations

from retold.archive.store import Store
from retold.export.html.tool_calls import edit_blocks
from retold.export.svg import draw_length
from retold.projects.matching import path_in_project
from retold.reports.dashboards import report_changed_files, report_changing_sessions
from retold.sessions.slices import load_slices
from retold.web.pages.session import load_part
from retold.web.templating import Answer, NotFound, PageRequest, PageRoute, TemplatePage, address
from retold.web.url_state import PAGE, parse_page_number, parse_report_url


def files(request: PageRequest, store: Store) -> Answer:
    """Answer with the most changed files, or with the sessions that changed one."""
    return _file(request, store) if request.get("path") else _files(request, store)


def _files(request: PageRequest, store: Store) -> Answer:
    url, page = parse_report_url(request, store, "all"), parse_page_number(request)
    part = request.get("q").strip()
    found = report_changed_files(url.query(store), part, PAGE + 1, page * PAGE)
    most = max((one.changes for one in found), default=0)
    values = {
        "url": url,
        "part": part,
        "rows": [(one, draw_length(one.changes, most)) for one in found[:PAGE]],
        "page": page,
        "has_more": len(found) > PAGE,
        "turned": lambda to: url.address("/files", q=part, page=to),
    }
    return TemplatePage("files.html", values)


def _file(request: PageRequest, store: Store) -> Answer:
    url, page, path = parse_report_url(request, store, "all"), parse_page_number(request), request.get("path")
    found = report_changing_sessions(url.query(store), path, PAGE + 1, page * PAGE)
    if not found:
        raise NotFound("No session changed a file of this name.")
    values = {
        "path": path,
        "name": path_in_project(path, found[0].root),
        "changers": found[:PAGE],
        "page": page,
        "has_more": len(found) > PAGE,
        "turned": lambda to: url.address("/files", path=path, page=to),
    }
    return TemplatePage("file.html", values)


def session_changes(request: PageRequest, store: Store) -> Answer:
    """Answer with the changes of one session to a file, as a page or as a piece of the file's page."""
    path, key = request.get("path"), request.get("key")
    session = load_part(store, key, 0, "full", 0).session
    blocks, left = edit_blocks(load_slices(store, key), path)
    values = {
        "path": path,
        "key": key,
        "name": path_in_project(path, session.project.root),
        "title": session.title,
        "edits": blocks,
        "left": left,
        "here": "/files",
        "back": address("/files", path=path),
    }
    return TemplatePage("changes_piece.html" if request.get("piece") else "changes.html", values)


PAGES = (PageRoute("/files", files), PageRoute("/files/changes", session_changes))
