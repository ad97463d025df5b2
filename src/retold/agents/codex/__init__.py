"""Codex CLI: every form in which its versions, from the first in TypeScript to 0.166, wrote conversations down."""

from retold.agents import import_when_asked

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from retold.agents.codex.connect import connect_plan
    from retold.agents.codex.hooks import hook_plan
    from retold.agents.codex.join import group, join, log_folder, relate
    from retold.agents.codex.places import clues, cluster_of, find, home_in, homes
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
    "ghosts": "retention",
    "group": "join",
    "home_in": "places",
    "homes": "places",
    "hook_plan": "hooks",
    "join": "join",
    "limit": "retention",
    "log_folder": "join",
    "read": "read",
    "relate": "join",
    "remains": "remains",
    "restore": "restore",
    "resume": "restore",
    "retention": "retention",
}
import_when_asked(__name__, _HOMES)
