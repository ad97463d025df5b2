"""Connects Codex CLI with retold by a server in `config.toml` and a skill; restores rollouts.

Run with 0.166.0. It has no commands of one's own: a person calls a skill with `$recall`, and a model calls it too.
"""

from collections.abc import Iterator, Sequence

from retold.agents.protocol import (
    NAME,
    AgentConnection,
    AgentHome,
    ConnectPlan,
    Ghost,
    HookCall,
    HookPlan,
    LostSession,
    OwnFile,
    RestoreAdditions,
    RestoreRefusal,
    SettingsTable,
    Target,
    Threat,
    format_signature,
)
from retold.agents.restore_files import plan_same_files

SIGNATURE = format_signature("codex")


def plan_connection(home: AgentHome, connection: AgentConnection) -> ConnectPlan:
    """Return the server and the skill."""
    table = SettingsTable(home.path / "config.toml", ("mcp_servers", NAME), connection.server.entry)
    folder = home.path / "skills" / "recall"
    return ConnectPlan(
        folder,
        (OwnFile(folder / "SKILL.md", connection.guide.skill(SIGNATURE)),),
        (table,),
        "$recall",
        is_trust_needed=False,
    )


def plan_hooks(home: AgentHome, call: HookCall) -> HookPlan | None:  # noqa: ARG001 - as every agent has it
    """Return None: Codex has no hooks, and a timer replaces them."""
    return None


def plan_restore(lost: LostSession, target: Target) -> RestoreAdditions | RestoreRefusal:
    """Return the files that a home lacks, byte for byte."""
    return plan_same_files(lost, target)


def resume_command(native_id: str) -> Sequence[str]:
    """Return the command that resumes a session."""
    return ("codex", "resume", native_id)


def find_ghosts(home: AgentHome) -> Iterator[Ghost]:  # noqa: ARG001 - as every agent has it
    """Yield nothing: Codex CLI deletes no session."""
    return iter(())


def find_threats(home: AgentHome) -> Iterator[Threat]:  # noqa: ARG001 - as every agent has it
    """Yield nothing: Codex CLI deletes no session."""
    return iter(())
