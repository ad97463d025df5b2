"""How Codex CLI is told to ask retold: a server in `config.toml`, and a skill.

Run with 0.166.0. It has no place for a command of its own: a skill is called with `$recall`, or by the model.
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
    Limit,
    Lost,
    OwnFile,
    Restored,
    RestoreRefused,
    SettingsTable,
    Target,
    Threat,
    signature,
)
from retold.agents.restore_files import verbatim

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


def hook_plan(home: AgentHome, call: HookCall) -> HookPlan | None:  # noqa: ARG001 - as every agent has it
    """Return nothing: a timer has to do."""
    return None


def restore(lost: Lost, target: Target) -> Restored | RestoreRefused:
    """Return the files that a home lacks, byte for byte."""
    return verbatim(lost, target)


def resume(native_id: str) -> Sequence[str]:
    """Return the command that goes on with a session."""
    return ("codex", "resume", native_id)


def ghosts(home: AgentHome) -> Iterator[Ghost]:  # noqa: ARG001 - as every agent has it
    """Yield nothing: Codex CLI deletes no session."""
    return iter(())


def limit(home: AgentHome) -> Limit:  # noqa: ARG001 - as every agent has it
    """Return none: Codex CLI keeps sessions for ever."""
    return Limit()


def retention(home: AgentHome) -> Iterator[Threat]:  # noqa: ARG001 - as every agent has it
    """Yield nothing: Codex CLI deletes no session."""
    return iter(())
