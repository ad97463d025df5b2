"""The agents we know, by name, and the one among them whose file something is."""

import os
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from retold.agents import NAMES
from retold.agents.protocol import Agent, Reading, Source
from retold.model.problem import Problem, problem
from retold.model.session import Session, View
from retold.reading.disk import printable
from retold.reading.own_exports import told_sessions

if TYPE_CHECKING:
    from retold.agents import claude, codex, gemini

    _CHECKED: tuple[Agent, ...] = (claude, codex, gemini)


class Agents(MutableMapping[str, Agent]):
    """The agents by name; a module is imported when it is first asked for."""

    def __init__(self, names: Iterable[str]) -> None:
        self._known: dict[str, Agent | None] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> Agent:
        known = self._known[name]
        if known is None:
            known = self._known[name] = cast("Agent", import_module(f"retold.agents.{name}"))
        return known

    def __setitem__(self, name: str, agent: Agent) -> None:
        self._known[name] = agent

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


AGENTS = Agents(NAMES)


class NotASession(Exception):  # noqa: N818 - it says what the file is, not what we did wrong
    """The file is missing or holds no conversation: the caller's mistake, with the Problem that says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.path}: {problem.message}")
        self.problem = problem


def read(path: str | os.PathLike[str], view: View = "full") -> Iterator[Session]:
    """Read a file as it is, whichever agent or export of ours wrote it, and yield its sessions; most files hold one.

    Raises NotASession. What is wrong inside a file never raises: it is in the sessions' `problems`.
    """
    own = told_sessions(Path(path), view)
    if isinstance(own, list):
        return iter(own)
    found = own or read_any(Path(path))
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
