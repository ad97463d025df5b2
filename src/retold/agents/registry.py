"""The agents we know, by name, and the one among them whose file something is."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from retold.agents import claude, codex, gemini
from retold.agents.protocol import Agent, Reading, Source
from retold.model.problem import Problem, problem
from retold.model.session import Session, View
from retold.reading.files import printable

AGENTS: dict[str, Agent] = {"claude": claude, "codex": codex, "gemini": gemini}


class NotASession(Exception):  # noqa: N818 - it says what the file is, not what we did wrong
    """The file is missing or holds no conversation: the caller's mistake, with the Problem that says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.path}: {problem.message}")
        self.problem = problem


def read(path: str | os.PathLike[str], view: View = "full") -> Iterator[Session]:
    """Read a file as it is, whichever agent wrote it, and yield its sessions; most files hold one.

    Raises NotASession. What is wrong inside a file never raises: it is in the sessions' `problems`.
    """
    found = read_any(Path(path))
    if isinstance(found, Problem):
        raise NotASession(found)
    agent, readings = found
    if not readings:
        raise NotASession(problem("not-a-session", "nothing was written into it yet", printable(Path(path))))
    return (agent.join([reading], view) for reading in readings)


def read_any(path: Path) -> tuple[Agent, Sequence[Reading]] | Problem:
    """Return the readings of the agent that recognises a file; the last refusal, if none does."""
    *others, last = AGENTS.values()
    for agent in others:
        found = agent.read(Source(path))
        if not isinstance(found, Problem):
            return agent, found
    found = last.read(Source(path))
    return found if isinstance(found, Problem) else (last, found)
