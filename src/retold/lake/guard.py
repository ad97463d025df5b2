"""A bug of ours, kept to what it happened in: it is logged, told as a problem, and costs nothing else."""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar, cast

from retold.agents.protocol import Agent, AgentHome, Source
from retold.lake.told import UnreadFile
from retold.model.problem import Problem, problem
from retold.model.session import Clue
from retold.reading.disk import printable

_LOG = logging.getLogger(__name__)
T = TypeVar("T")


def failed(agent: str, home: str | None, path: str, error: Exception) -> UnreadFile:
    """Return what a bug is told as; it is logged with where in the code it happened."""
    message = f"{type(error).__name__}: {error}"
    _LOG.error("%s: %s", path, message, exc_info=error)
    return UnreadFile(agent, home, problem("reader-failed", message, path))


def guarded(agent: Agent, refused: list[UnreadFile]) -> Agent:
    """Return an agent that looks through homes; one in which that fails is added to what was refused."""
    # Who looks through homes asks for no more than these three.
    return cast("Agent", _Guarded(agent, refused))


class _Guarded:
    """An agent as far as it looks through homes."""

    def __init__(self, agent: Agent, refused: list[UnreadFile]) -> None:
        self.NAME = agent.NAME
        self._agent, self._refused = agent, refused

    def clues(self, home: AgentHome) -> Iterator[Clue]:
        return self._held(home, lambda: self._agent.clues(home))

    def find(self, home: AgentHome) -> Iterator[Source | Problem]:
        return self._held(home, lambda: self._agent.find(home))

    def _held(self, home: AgentHome, found: Callable[[], Iterable[T]]) -> Iterator[T]:
        """Yield what is found in a home, up to where that fails."""
        try:
            yield from found()
        except Exception as error:  # noqa: BLE001 - the top of looking through a home
            self._refused.append(failed(self.NAME, home.label, printable(home.path), error))
