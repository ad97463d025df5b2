"""The pages: each file has those of one thing, and names what answers where."""

from retold.web.pages import health, restore, sessions

PAGES = (*sessions.PAGES, *health.PAGES, *restore.PAGES)
