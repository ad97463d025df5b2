"""Codex CLI: every form in which its versions, from the first in TypeScript to 0.166, wrote conversations down."""

from retold.agents import load_lazily

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from retold.agents.codex.discovery import clues, cluster_of, find, home_in, homes, remains
    from retold.agents.codex.integration import (
        connect_plan,
        ghosts,
        hook_plan,
        limit,
        restore,
        resume,
        retention,
    )
    from retold.agents.codex.reader import read
    from retold.agents.codex.session import group, join, log_folder, relate

NAME = "codex"
PROGRAM, PACKAGE = "codex", "@openai/codex"

__all__ = [
    "NAME",
    "PACKAGE",
    "PROGRAM",
    "clues",
    "cluster_of",
    "connect_plan",
    "find",
    "ghosts",
    "group",
    "home_in",
    "homes",
    "hook_plan",
    "join",
    "limit",
    "log_folder",
    "read",
    "relate",
    "remains",
    "restore",
    "resume",
    "retention",
]

__getattr__ = load_lazily(
    __name__,
    {
        "cluster_of": "discovery",
        "clues": "discovery",
        "connect_plan": "integration",
        "find": "discovery",
        "ghosts": "integration",
        "group": "session",
        "home_in": "discovery",
        "homes": "discovery",
        "hook_plan": "integration",
        "join": "session",
        "limit": "integration",
        "log_folder": "session",
        "read": "reader",
        "relate": "session",
        "remains": "discovery",
        "restore": "integration",
        "resume": "integration",
        "retention": "integration",
    },
)
