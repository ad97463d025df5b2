"""How Codex CLI is told to ask retold: a server in `config.toml`, and a skill.

Run with 0.166.0. It has no place for a command of its own: a skill is called with `$recall`, or by the model.
"""

from retold.agents.connection import NAME, AgentConnection, ConnectPlan, OwnFile, SettingsTable, signature
from retold.agents.protocol import AgentHome

WRITTEN = signature("codex")


def connect_plan(home: AgentHome, connection: AgentConnection) -> ConnectPlan:
    """Return the server and the skill."""
    table = SettingsTable(home.path / "config.toml", ("mcp_servers", NAME), connection.server.entry)
    folder = home.path / "skills" / "recall"
    return ConnectPlan(
        folder,
        (OwnFile(folder / "SKILL.md", connection.guide.skill(WRITTEN)),),
        (table,),
        "$recall",
        is_trust_needed=False,
    )
