"""How Claude Code is told to call a command.

As its own reference of hooks has it: a group without a matcher is called always, times are in seconds, and the shell is
bash, also on Windows, where it comes with Git. Run with 2.1.325, on Linux.
"""

from retold.agents.protocol import Call, Home, HookPlan

EVENTS = ("SessionEnd", "Stop")
PATIENCE = 30


def hook_plan(home: Home, call: Call) -> HookPlan | None:
    """Return what has to stand in `settings.json`."""
    hook = {"type": "command", "command": call.sh, "timeout": PATIENCE}
    return HookPlan(home.path / "settings.json", EVENTS, {"hooks": [hook]})
