"""How Codex CLI is told to ask retold: a server in `config.toml`, and a skill.

Run with 0.166.0. It has no place for a command of its own: a skill is called with `$recall`, or by the model.
"""

from retold.agents.connection import NAME, Connection, ConnectPlan, OwnFile, Table
from retold.agents.protocol import Home

WRITTEN = "Written by `retold connect codex`, and removed by `retold connect codex --remove`."


def connect_plan(home: Home, connection: Connection) -> ConnectPlan:
    """Return the server and the skill."""
    server = connection.server
    told = {"command": server.command, "args": list(server.arguments)}
    table = Table(
        home.path / "config.toml",
        ("mcp_servers", NAME),
        {**told, "env": server.env} if server.env else told,
    )
    folder = home.path / "skills" / "recall"
    return ConnectPlan(
        folder,
        (OwnFile(folder / "SKILL.md", _skill(connection)),),
        (table,),
        "$recall",
        is_trust_needed=False,
    )


def _skill(connection: Connection) -> str:
    guide = connection.guide
    return f"""\
---
name: recall
description: {guide.summary} {guide.occasions}
---

{guide.recall}

<!-- {WRITTEN} -->
"""
