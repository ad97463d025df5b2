"""What Codex CLI deletes by itself."""

from collections.abc import Iterator

from retold.agents.protocol import AgentHome, Ghost, Limit, Threat


def ghosts(home: AgentHome) -> Iterator[Ghost]:  # noqa: ARG001 - as every agent has it
    """Yield nothing: Codex CLI deletes no session."""
    return iter(())


def limit(home: AgentHome) -> Limit:  # noqa: ARG001 - as every agent has it
    """Return none: Codex CLI keeps sessions for ever."""
    return Limit()


def retention(home: AgentHome) -> Iterator[Threat]:  # noqa: ARG001 - as every agent has it
    """Yield nothing: Codex CLI deletes no session."""
    return iter(())
