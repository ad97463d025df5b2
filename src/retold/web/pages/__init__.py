"""The pages: each file has those of one thing, and names what answers where."""

from retold.web.pages import palette, sessions

PAGES = (*sessions.PAGES, *palette.PAGES)
