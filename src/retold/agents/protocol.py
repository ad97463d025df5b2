"""What every agent's module offers, and the values that pass through it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec

from retold.model.problem import Problem
from retold.model.session import Session, View
from retold.reading.files import printable


class Home(msgspec.Struct, frozen=True):
    """A folder in which an agent keeps its sessions; the label tells homes of several machines apart."""

    path: Path
    label: str | None = None


class Source(msgspec.Struct, frozen=True):
    """A file that may hold conversations."""

    path: Path
    home: Home | None = None

    @property
    def shown(self) -> str:
        """The path, as problems and sessions tell it."""
        return printable(self.path)


class Reading(msgspec.Struct, frozen=True):
    """What one file says about one conversation."""

    source: Source
    format: str
    native_id: str | None
    size: int
    """How many bytes of the file were read."""
    modified_at: datetime
    state: Any
    """What `read` folded the records into: the agent's own, passed back to it and to nobody else."""
    problems: tuple[Problem, ...]


class Agent(Protocol):
    """An agent is a module with these functions. `env` is passed in; nothing here looks at the process."""

    NAME: str

    def homes(self, env: Mapping[str, str]) -> Iterator[Home]:
        """Where this agent keeps its sessions, whether or not the folder is there."""

    def find(self, home: Home) -> Iterator[Source | Problem]:
        """Every file below the home that may hold conversations; nothing else is opened."""

    def read(self, source: Source, earlier: Sequence[Reading] = ()) -> Sequence[Reading] | Problem:
        """Read the file; given what an earlier call returned, only what was appended since.

        A file may hold several conversations; one that holds none is a Problem.
        """

    def group(self, reading: Reading) -> str:
        """A key that all readings of one conversation share."""

    def join(self, readings: Sequence[Reading], view: View = "full") -> Session:
        """Make one Session of all readings of one conversation."""
