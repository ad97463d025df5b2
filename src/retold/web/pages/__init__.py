"""The pages: a module for each topic. `PAGES` lists their routes."""

from retold.web.pages import files, health, projects, session, sessions, spend

PAGES = (
    *sessions.PAGES,
    *sessions.PALETTE_PAGES,
    *session.PAGES,
    *session.PIECE_PAGES,
    *session.EXPORT_PAGES,
    *projects.PAGES,
    *files.PAGES,
    *spend.PAGES,
    *projects.TOOL_PAGES,
    *health.PAGES,
    *health.RESTORE_PAGES,
)
