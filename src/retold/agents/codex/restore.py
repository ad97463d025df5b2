"""A session written back: Codex CLI finds it by its file, as it was."""

from collections.abc import Sequence

from retold.agents.protocol import Lost, Restored, RestoreRefused, Target
from retold.agents.verbatim import verbatim


def restore(lost: Lost, target: Target) -> Restored | RestoreRefused:
    """Return the files that a home lacks, byte for byte."""
    return verbatim(lost, target)


def resume(native_id: str) -> Sequence[str]:
    """Return the command that goes on with a session."""
    return ("codex", "resume", native_id)
