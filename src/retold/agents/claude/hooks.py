"""How Claude Code is told to call a command.

A group without a matcher is called always, and times are in seconds. Run with 2.1.325, on Linux; that the shell is bash
on Windows too, where it comes with Git, was only read, in reports of others (vercel/vercel-plugin#79).
"""

from retold.agents.connection import NAME
from retold.agents.protocol import AgentHome, HookCall, HookPlan

EVENTS = ("SessionEnd", "Stop")
PATIENCE = 30
PLUGIN = ("skills", NAME, "hooks", "hooks.json")
"""Where a plugin has its hooks."""


def hook_plan(home: AgentHome, call: HookCall) -> HookPlan | None:
    """Return what has to stand in `settings.json`."""
    hook = {"type": "command", "command": call.sh, "timeout": PATIENCE}
    return HookPlan(home.path / "settings.json", EVENTS, {"hooks": [hook]}, home.path.joinpath(*PLUGIN))
