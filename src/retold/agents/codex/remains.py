"""What lies in Codex CLI's home of which no session is read."""

from collections.abc import Iterator

from retold.agents.protocol import AgentHome, Remains


def remains(home: AgentHome) -> Iterator[Remains]:  # noqa: ARG001 - as every agent has it
    """Yield nothing: prompts whose rollout is gone are read as sessions, and all else can be made from the rollouts."""
    return iter(())
