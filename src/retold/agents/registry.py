"""The agents we know, by name, and the one among them whose file something is."""

from collections.abc import Sequence
from pathlib import Path

from retold.agents import gemini
from retold.agents.protocol import Agent, Reading, Source
from retold.model.problem import Problem

AGENTS: dict[str, Agent] = {"gemini": gemini}


def read_any(path: Path) -> tuple[Agent, Sequence[Reading]] | Problem:
    """Read a file of whichever agent recognises it; the last refusal, if none does."""
    refusal: Problem | None = None
    for agent in AGENTS.values():
        found = agent.read(Source(path))
        if not isinstance(found, Problem):
            return agent, found
        refusal = found
    assert refusal is not None  # noqa: S101 - there is at least one agent
    return refusal
