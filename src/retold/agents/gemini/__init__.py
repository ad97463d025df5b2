"""Gemini CLI: every form in which its versions from 0.1 to 0.61 wrote conversations down."""

from retold.agents import import_when_asked

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from retold.agents.gemini.connect import connect_plan
    from retold.agents.gemini.families import relate
    from retold.agents.gemini.ghosts import ghosts
    from retold.agents.gemini.hooks import hook_plan
    from retold.agents.gemini.join import group, join, log_folder
    from retold.agents.gemini.places import clues, cluster_of, find, home_in, homes
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

_HOMES = {
    "cluster_of": "places",
    "clues": "places",
    "connect_plan": "connect",
    "find": "places",
    "ghosts": "ghosts",
    "group": "join",
    "home_in": "places",
    "homes": "places",
    "hook_plan": "hooks",
    "join": "join",
    "limit": "retention",
    "log_folder": "join",
    "read": "read",
    "relate": "families",
    "remains": "remains",
    "restore": "restore",
    "resume": "restore",
    "retention": "retention",
}
import_when_asked(__name__, _HOMES)
