"""The pages: a module for each topic. `PAGES` lists their routes."""

from retold.web.pages import files, health, projects, session, sessions, spend

PAGES = (*sessions.PAGES, *session.PAGES, *projects.PAGES, *files.PAGES, *spend.PAGES, *health.PAGES)
