"""Gemini CLI: every form in which its versions from 0.1 to 0.61 wrote conversations down."""

from typing import TYPE_CHECKING

from retold.agents.protocol import load_lazily

if TYPE_CHECKING:
    from retold.agents.gemini.bookmarks import find_bookmarks, open_bookmark
    from retold.agents.gemini.discovery import (
        cluster_of,
        find_clues,
        find_home,
        find_homes,
        find_leftovers,
        find_sources,
        read_retention_limit,
    )
    from retold.agents.gemini.integration import plan_connection, plan_hooks
    from retold.agents.gemini.reader import read
    from retold.agents.gemini.restore import plan_restore, resume_command
    from retold.agents.gemini.retention import find_ghosts, find_threats
    from retold.agents.gemini.session import group_key, join, log_folder, relate

NAME = "gemini"
PROGRAM, PACKAGE = "gemini", "@google/gemini-cli"
__all__ = [
    "NAME", "PACKAGE", "PROGRAM", "cluster_of", "find_bookmarks", "find_clues", "find_ghosts", "find_home", "find_homes",
    "find_leftovers", "find_sources", "find_threats", "group_key", "join", "log_folder", "open_bookmark",
    "plan_connection", "plan_hooks", "plan_restore", "read", "read_retention_limit", "relate",
    "resume_command",
]  # fmt: skip
__getattr__ = load_lazily(
    __name__,
    bookmarks="find_bookmarks open_bookmark",
    discovery="cluster_of find_clues find_home find_homes find_leftovers find_sources read_retention_limit",
    integration="plan_connection plan_hooks",
    reader="read",
    restore="plan_restore resume_command",
    retention="find_ghosts find_threats",
    session="group_key join log_folder relate",
)
