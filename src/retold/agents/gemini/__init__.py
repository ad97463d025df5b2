"""Gemini CLI: every form in which its versions from 0.1 to 0.61 wrote conversations down."""

from retold.agents import load_lazily

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from retold.agents.gemini.conversation import group, join, log_folder, relate
    from retold.agents.gemini.discovery import clues, cluster_of, find, home_in, homes, remains
    from retold.agents.gemini.integration import connect_plan, hook_plan
    from retold.agents.gemini.reader import read
    from retold.agents.gemini.restore_plan import restore, resume
    from retold.agents.gemini.retention_rules import ghosts, limit, retention

NAME = "gemini"
PROGRAM, PACKAGE = "gemini", "@google/gemini-cli"

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
        "ghosts": "retention_rules",
        "group": "conversation",
        "home_in": "discovery",
        "homes": "discovery",
        "hook_plan": "integration",
        "join": "conversation",
        "limit": "retention_rules",
        "log_folder": "conversation",
        "read": "reader",
        "relate": "conversation",
        "remains": "discovery",
        "restore": "restore_plan",
        "resume": "restore_plan",
        "retention": "retention_rules",
    },
)
