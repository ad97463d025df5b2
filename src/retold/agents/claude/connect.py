"""How Claude Code is told to ask retold: a plugin in the folder of the user's skills, and a permission.

Run with 2.1.325. A folder in `skills` with a manifest in it is a plugin that is loaded without a marketplace, without
being installed and without being asked for; `plugin init` of that version puts new ones there. Its tools are asked about,
and so refused in a headless run, unless the user's settings allow them.
"""

from retold.agents.connection import NAME, AgentConnection, ConnectPlan, ListItem, OwnFile, as_json, signature
from retold.agents.protocol import AgentHome

WRITTEN = signature("claude")
TOOLS = f"mcp__plugin_{NAME}_{NAME}"
"""What the names of its tools begin with; as a permission, all of them."""
FRONT = ('argument-hint: "[what]"', f"allowed-tools: {TOOLS}")


def connect_plan(home: AgentHome, connection: AgentConnection) -> ConnectPlan:
    """Return the plugin and the permission."""
    folder = home.path / "skills" / NAME
    texts = {
        ".claude-plugin/plugin.json": as_json(_manifest(connection)),
        "skills/recall/SKILL.md": connection.guide.skill(WRITTEN, FRONT, "$ARGUMENTS"),
    }
    if connection.hooks is not None:
        texts["hooks/hooks.json"] = as_json(connection.hooks)
    files = tuple(OwnFile(folder / path, text) for path, text in texts.items())
    allowed = ListItem(home.path / "settings.json", ("permissions", "allow"), TOOLS)
    return ConnectPlan(folder, files, (allowed,), "/recall", is_trust_needed=False)


def _manifest(connection: AgentConnection) -> dict[str, object]:
    server = connection.server
    return {
        "name": NAME,
        "version": server.version,
        "description": f"{connection.guide.summary} {WRITTEN}",
        "author": {"name": NAME},
        "mcpServers": {NAME: server.entry},
    }
