"""Claude Code: the transcripts that its versions from 1.0 to 2.1 keep of sessions and their subagents."""

from retold.agents import import_when_asked

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from retold.agents.claude.connect import connect_plan
    from retold.agents.claude.families import relate
    from retold.agents.claude.hooks import hook_plan
    from retold.agents.claude.join import group, join, log_folder
    from retold.agents.claude.places import clues, cluster_of, find, home_in, homes
    from retold.agents.claude.read import read
    from retold.agents.claude.remains import remains
    from retold.agents.claude.restore import restore, resume
    from retold.agents.claude.retention import ghosts, limit, retention

NAME = "claude"
PROGRAM, PACKAGE = "claude", "@anthropic-ai/claude-code"

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
    "relate": "families",
    "remains": "remains",
    "restore": "restore",
    "resume": "restore",
    "retention": "retention",
}
import_when_asked(__name__, _HOMES)
