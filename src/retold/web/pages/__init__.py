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
    *palette.PALETTE_PAGES,
    *session.PAGES,
    *session_pieces.PIECE_PAGES,
    *session_ways.EXPORT_PAGES,
    *projects.PAGES,
    *files.PAGES,
    *spend.PAGES,
    *tools.TOOL_PAGES,
    *health.PAGES,
    *restore.RESTORE_PAGES,
)
