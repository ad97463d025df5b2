"""Claude Code: the transcripts that its versions from 1.0 to 2.1 keep of sessions and their subagents."""

from retold.agents.claude.families import relate
from retold.agents.claude.join import group, join
from retold.agents.claude.places import clues, find, home_in, homes
from retold.agents.claude.read import read
from retold.agents.claude.remains import remains
from retold.agents.claude.retention import ghosts, limit, retention

NAME = "claude"

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
