"""Connects Gemini CLI with retold by an extension and a policy of the user.

Run with 0.61.0. The CLI loads an extension in `extensions` without a question. In a headless run it declares a tool of a
server only if a policy of the user allows it; permissions inside the extension are ignored.
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
    format_json,
    format_signature,
)

CONTEXT_FILE = "RETOLD.md"
SIGNATURE = format_signature("gemini")
POLICY = f"""\
# {SIGNATURE}
# All tools of this server only read: the archive of your own conversations.

[[rule]]
mcpName = "{NAME}"
toolName = "*"
decision = "allow"
priority = 200
"""


def plan_connection(home: AgentHome, connection: AgentConnection) -> ConnectPlan:
    """Return the extension and the policy."""
    folder = home.path / "extensions" / NAME
    guide = connection.guide
    texts = {
        "gemini-extension.json": format_json(_manifest(connection)),
        CONTEXT_FILE: guide.context + f"\n<!-- {SIGNATURE} -->\n",
        "commands/recall.toml": _command(connection),
        "skills/recall/SKILL.md": connection.guide.skill(SIGNATURE),
    }
    if connection.hooks is not None:
        texts["hooks/hooks.json"] = format_json(connection.hooks)
    files = [OwnFile(folder / path, text) for path, text in texts.items()]
    policy = OwnFile(home.path / "policies" / f"{NAME}.toml", POLICY)
    return ConnectPlan(folder, (*files, policy), (), "/recall", is_trust_needed=True)


def _manifest(connection: AgentConnection) -> dict[str, object]:
    server = connection.server
    return {
        "name": NAME,
        "version": server.version,
        "description": f"{connection.guide.summary} {SIGNATURE}",
        "mcpServers": {NAME: server.entry},
        "contextFileName": CONTEXT_FILE,
    }


def _command(connection: AgentConnection) -> str:
    guide = connection.guide
    return f"""\
# {SIGNATURE}
description = {json.dumps(guide.summary, ensure_ascii=False)}
prompt = '''
{guide.recall}

What is asked: {{{{args}}}}
'''
"""


HOOK_EVENTS = ("SessionEnd", "AfterAgent")
HOOK_TIMEOUT = 30_000
HOOKS_FILE = ("extensions", NAME, "hooks", "hooks.json")
"""The hooks file of an extension."""


def plan_hooks(home: AgentHome, call: HookCall) -> HookPlan | None:
    """Return the hooks for `settings.json`."""
    command = call.powershell if call.is_windows else call.sh
    hook = {"name": "retold", "type": "command", "command": command, "timeout": HOOK_TIMEOUT}
    return HookPlan(
        home.path / "settings.json", HOOK_EVENTS, {"hooks": [hook]}, home.path.joinpath(*HOOKS_FILE)
    )
