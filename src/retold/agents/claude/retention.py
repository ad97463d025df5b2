"""What Claude Code deletes by itself."""

from collections.abc import Iterator

from retold.agents.protocol import Ghost, Home


def ghosts(home: Home) -> Iterator[Ghost]:  # noqa: ARG001 - as every agent has it
    """Yield nothing: Claude Code leaves no files without conversation beside those that have one."""
    return iter(())
