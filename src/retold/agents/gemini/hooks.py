"""How Gemini CLI is told to call a command.

A start is too late: expired files are deleted before its hooks run. The end of a turn and of a session are not.
Run with 0.33.2, 0.38.2, 0.51.0 and 0.61.0; times are in milliseconds. On Windows the shell is PowerShell
(`getShellConfiguration` of 0.61.0, read, not run).
"""

from retold.agents.connection import NAME
from retold.agents.protocol import AgentHome, HookCall, HookPlan

EVENTS = ("SessionEnd", "AfterAgent")
PATIENCE = 30_000
EXTENSION = ("extensions", NAME, "hooks", "hooks.json")
"""Where an extension has its hooks."""


def hook_plan(home: AgentHome, call: HookCall) -> HookPlan | None:
    """Return what has to stand in `settings.json`."""
    command = call.powershell if call.is_windows else call.sh
    hook = {"name": "retold", "type": "command", "command": command, "timeout": PATIENCE}
    return HookPlan(home.path / "settings.json", EVENTS, {"hooks": [hook]}, home.path.joinpath(*EXTENSION))
