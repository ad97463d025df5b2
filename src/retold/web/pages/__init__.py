"""The pages: each file has those of one thing, and names what answers where."""

from retold.web.pages import files, projects, sessions, spend, tools

PAGES = (*sessions.PAGES, *projects.PAGES, *files.PAGES, *spend.PAGES, *tools.PAGES)
