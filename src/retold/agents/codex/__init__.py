"""Codex CLI: every form in which its versions, from the first in TypeScript to 0.166, wrote conversations down."""

from retold.agents.codex.hooks import hook_plan
from retold.agents.codex.join import group, join, relate
from retold.agents.codex.places import clues, find, home_in, homes
from retold.agents.codex.read import read
from retold.agents.codex.remains import remains
from retold.agents.codex.restore import restore, resume
from retold.agents.codex.retention import ghosts, limit, retention

NAME = "codex"
PROGRAM, PACKAGE = "codex", "@openai/codex"

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
