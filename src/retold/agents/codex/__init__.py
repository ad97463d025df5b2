"""Codex CLI: every form in which its versions, from the first in TypeScript to 0.166, wrote conversations down."""

from typing import TYPE_CHECKING

from retold.agents.protocol import load_lazily

if TYPE_CHECKING:
    from retold.agents.codex.bookmarks import find_bookmarks, open_bookmark
    from retold.agents.codex.discovery import (
        cluster_of,
        find_clues,
        find_home,
        find_homes,
        find_leftovers,
        find_sources,
        read_retention_limit,
    )
    from retold.agents.codex.integration import (
        find_ghosts,
        find_threats,
        plan_connection,
        plan_hooks,
        plan_restore,
        resume_command,
    )
    from retold.agents.codex.reader import read
    from retold.agents.codex.session import group_key, join, log_folder, relate

NAME = "codex"
PROGRAM, PACKAGE = "codex", "@openai/codex"
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
    integration="find_ghosts find_threats plan_connection plan_hooks plan_restore resume_command",
    reader="read",
    session="group_key join log_folder relate",
)
