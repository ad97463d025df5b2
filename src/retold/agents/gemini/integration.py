"""How Gemini CLI is told to ask retold: an extension, and a policy of the user's.

Run with 0.61.0. An extension that lies in `extensions` is loaded without being asked for; but a tool of a server is not
even declared in a headless run unless a policy of the user's allows it, and what an extension allows itself is ignored.
"""

import json

from retold.agents.protocol import (
    NAME,
    AgentConnection,
    AgentHome,
    ConnectPlan,
    HookCall,
    HookPlan,
    OwnFile,
    as_json,
    signature,
)

CONTEXT = "RETOLD.md"
WRITTEN = signature("gemini")
POLICY = f"""\
# {WRITTEN}
# All tools of this server only read: the archive of your own conversations.

[[rule]]
mcpName = "{NAME}"
toolName = "*"
decision = "allow"
priority = 200
"""


def connect_plan(home: AgentHome, connection: AgentConnection) -> ConnectPlan:
    """Return the extension and the policy."""
    folder = home.path / "extensions" / NAME
    guide = connection.guide
    texts = {
        "gemini-extension.json": as_json(_manifest(connection)),
        CONTEXT: guide.context + f"\n<!-- {WRITTEN} -->\n",
        "commands/recall.toml": _command(connection),
        "skills/recall/SKILL.md": connection.guide.skill(WRITTEN),
    }
    if connection.hooks is not None:
        texts["hooks/hooks.json"] = as_json(connection.hooks)
    files = [OwnFile(folder / path, text) for path, text in texts.items()]
    policy = OwnFile(home.path / "policies" / f"{NAME}.toml", POLICY)
    return ConnectPlan(folder, (*files, policy), (), "/recall", is_trust_needed=True)


def _manifest(connection: AgentConnection) -> dict[str, object]:
    server = connection.server
    return {
        "name": NAME,
        "version": server.version,
        "description": f"{connection.guide.summary} {WRITTEN}",
        "mcpServers": {NAME: server.entry},
        "contextFileName": CONTEXT,
    }


def _command(connection: AgentConnection) -> str:
    guide = connection.guide
    return f"""\
# {WRITTEN}
description = {json.dumps(guide.summary, ensure_ascii=False)}
prompt = '''
{guide.recall}

What is asked: {{{{args}}}}
'''
"""


EVENTS = ("SessionEnd", "AfterAgent")
PATIENCE = 30_000
EXTENSION = ("extensions", NAME, "hooks", "hooks.json")
"""Where an extension has its hooks."""


def hook_plan(home: AgentHome, call: HookCall) -> HookPlan | None:
    """Return what has to stand in `settings.json`."""
    command = call.powershell if call.is_windows else call.sh
    hook = {"name": "retold", "type": "command", "command": command, "timeout": PATIENCE}
    return HookPlan(home.path / "settings.json", EVENTS, {"hooks": [hook]}, home.path.joinpath(*EXTENSION))
