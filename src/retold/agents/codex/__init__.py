"""Codex CLI: every form in which its versions, from the first in TypeScript to 0.166, wrote conversations down."""

from retold.agents.codex.join import group, join, relate
from retold.agents.codex.places import clues, find, home_in, homes
from retold.agents.codex.read import read
from retold.agents.codex.remains import remains
from retold.agents.codex.retention import ghosts, limit, retention

NAME = "codex"

__all__ = [
    "NAME",
    "clues",
    "find",
    "ghosts",
    "group",
    "home_in",
    "homes",
    "join",
    "limit",
    "read",
    "relate",
    "remains",
    "retention",
]
