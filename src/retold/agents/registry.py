"""The agents by name, and reading a file without knowing its agent."""

import os
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from retold.agents import NAMES
from retold.agents.protocol import Agent, Reading, Source
from retold.model.problem import Problem, problem
from retold.model.session import Session, View
from retold.reading.disk import printable_path

if TYPE_CHECKING:
    from retold.agents import claude, codex, gemini

    _CHECKED: tuple[Agent, ...] = (claude, codex, gemini)


class Agents(MutableMapping[str, Agent]):
    """The agents by name; an agent's module is imported at its first use."""

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
    """The file is missing or holds no conversation. `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.path}: {problem.message}")
        self.problem = problem


def read(path: str | os.PathLike[str], view: View = "full") -> Iterator[Session]:
    """Read a file that any agent or export of retold wrote, and yield its sessions; most files hold one.

    Raises NotASession. Faults inside a file never raise: they are in the sessions' `problems`.
    """
    from retold.reading.own_exports import read_own_export

    own = read_own_export(Path(path), view)
    if isinstance(own, list):
        return iter(own)
    found = own or read_any(Path(path))
    if isinstance(found, Problem):
        raise NotASession(found)
    agent, readings = found
    if not readings:
        raise NotASession(
            problem("not-a-session", "nothing was written into it yet", printable_path(Path(path)))
        )
    return (agent.join([reading], view) for reading in readings)


def read_any(path: Path) -> tuple[Agent, Sequence[Reading]] | Problem:
    """Return the first agent that recognises a file, with its readings; the last refusal if none does."""
    *others, last = AGENTS.values()
    for agent in others:
        found = agent.read(Source(path))
        if not isinstance(found, Problem):
            return agent, found
    found = last.read(Source(path))
    return found if isinstance(found, Problem) else (last, found)
