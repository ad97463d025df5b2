"""Codex CLI is not told to call anything.

`notify` in its `config.toml` takes one program only, which may be somebody's already. It deletes no session, so that a
timer is early enough.
"""

from retold.agents.protocol import AgentHome, HookCall, HookPlan


def hook_plan(home: AgentHome, call: HookCall) -> HookPlan | None:  # noqa: ARG001 - as every agent has it
    """Return nothing: a timer has to do."""
    return None
