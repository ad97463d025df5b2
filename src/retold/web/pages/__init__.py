"""The pages: each file has those of one thing, and names what answers where."""

from retold.web.pages import (
    files,
    health,
    palette,
    projects,
    restore,
    session,
    session_pieces,
    session_ways,
    sessions,
    spend,
    tools,
)

PAGES = (
    *sessions.PAGES,
    *palette.PAGES,
    *session.PAGES,
    *session_pieces.PAGES,
    *session_ways.PAGES,
    *projects.PAGES,
    *files.PAGES,
    *spend.PAGES,
    *tools.PAGES,
    *health.PAGES,
    *restore.PAGES,
)
