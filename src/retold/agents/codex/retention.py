"""What Codex CLI deletes by itself."""

from collections.abc import Iterator

from retold.agents.protocol import Ghost, Home


def ghosts(home: Home) -> Iterator[Ghost]:  # noqa: ARG001 - as every agent has it
    """Yield nothing: Codex CLI deletes no session."""
    return iter(())
