"""Gemini CLI: every form in which its versions from 0.1 to 0.61 wrote conversations down."""

from retold.agents.gemini.families import relate
from retold.agents.gemini.ghosts import ghosts
from retold.agents.gemini.hooks import hook_plan
from retold.agents.gemini.join import group, join
from retold.agents.gemini.places import clues, find, home_in, homes
from retold.agents.gemini.read import read
from retold.agents.gemini.remains import remains
from retold.agents.gemini.restore import restore, resume
from retold.agents.gemini.retention import limit, retention

NAME = "gemini"
PROGRAM, PACKAGE = "gemini", "@google/gemini-cli"

__all__ = [
    "NAME",
    "PACKAGE",
    "PROGRAM",
    "clues",
    "find",
    "ghosts",
    "group",
    "home_in",
    "homes",
    "hook_plan",
    "join",
    "limit",
    "read",
    "relate",
    "remains",
    "restore",
    "resume",
    "retention",
]
