"""The pages: each file has those of one thing, and names what answers where."""

from retold.web.pages import session, session_pieces, session_ways, sessions

PAGES = (*sessions.PAGES, *session.PAGES, *session_pieces.PAGES, *session_ways.PAGES)
