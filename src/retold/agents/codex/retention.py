"""What Codex CLI deletes by itself."""

from collections.abc import Iterator

from retold.agents.protocol import Ghost, Home, Limit, Threat


def ghosts(home: Home) -> Iterator[Ghost]:  # noqa: ARG001 - as every agent has it
    """Yield nothing: Codex CLI deletes no session."""
    return iter(())


def limit(home: Home) -> Limit:  # noqa: ARG001 - as every agent has it
    """Return none: Codex CLI keeps sessions for ever."""
    return Limit()


def retention(home: Home) -> Iterator[Threat]:  # noqa: ARG001 - as every agent has it
    """Yield nothing: Codex CLI deletes no session."""
    return iter(())
