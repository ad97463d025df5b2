"""How Claude Code is told to ask retold: a plugin in the folder of the user's skills, and a permission.

Run with 2.1.325. A folder in `skills` with a manifest in it is a plugin that is loaded without a marketplace, without
being installed and without being asked for; `plugin init` of that version puts new ones there. Its tools are asked about,
and so refused in a headless run, unless the user's settings allow them.
"""

import json

from retold.agents.connection import NAME, Connection, ConnectPlan, ListItem, OwnFile
from retold.agents.protocol import Home

WRITTEN = "Written by `retold connect claude`, and removed by `retold connect claude --remove`."
TOOLS = f"mcp__plugin_{NAME}_{NAME}"
"""What the names of its tools begin with; as a permission, all of them."""


def connect_plan(home: Home, connection: Connection) -> ConnectPlan:
    """Return the plugin and the permission."""
    folder = home.path / "skills" / NAME
    texts = {
        ".claude-plugin/plugin.json": _json(_manifest(connection)),
        "skills/recall/SKILL.md": _skill(connection),
    }
    if connection.hooks is not None:
        texts["hooks/hooks.json"] = _json(connection.hooks)
    files = tuple(OwnFile(folder / path, text) for path, text in texts.items())
    allowed = ListItem(home.path / "settings.json", ("permissions", "allow"), TOOLS)
    return ConnectPlan(folder, files, (allowed,), "/recall", is_trust_needed=False)


def _manifest(connection: Connection) -> dict[str, object]:
    server = connection.server
    told = {"command": server.command, "args": list(server.arguments)}
    return {
        "name": NAME,
        "version": server.version,
        "description": f"{connection.guide.summary} {WRITTEN}",
        "author": {"name": NAME},
        "mcpServers": {NAME: {**told, "env": server.env} if server.env else told},
    }


def _skill(connection: Connection) -> str:
    guide = connection.guide
    return f"""\
---
name: recall
description: {guide.summary} {guide.occasions}
argument-hint: "[what]"
allowed-tools: {TOOLS}
---

{guide.recall}

What is asked: $ARGUMENTS

<!-- {WRITTEN} -->
"""


def _json(value: dict[str, object]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
