"""The machine as timers see it: its platform, its folders, and its programs."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from retold.maintenance.file_changes import FileChangePlan

PATIENCE = 30
NOT_RUN = 126
"""From this code on, a program was not there or could not be run."""
MINUTES = 15
"""How long it is from one sync to the next."""


class Machine(msgspec.Struct, frozen=True):
    """Where this runs, for whom."""

    env: Mapping[str, str]
    platform: str

    @property
    def user(self) -> str:
        """The person's own folder."""
        return self.env.get("HOME") or os.path.expanduser("~")

    def has(self, program: str) -> bool:
        """Tell whether there is a program of this name."""
        return shutil.which(program, path=self.env.get("PATH")) is not None

    def run(self, *command: str, told: bytes = b"") -> "Ran":
        """Run a program of the system's and return what it said."""
        program = shutil.which(command[0], path=self.env.get("PATH"))
        if program is None:
            return Ran(NOT_RUN, b"", f"there is no {command[0]}")
        try:
            done = subprocess.run(  # noqa: S603 - programs of the system, and no shell
                [program, *command[1:]],
                env=dict(self.env),
                input=told,
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Ran(NOT_RUN, b"", str(error))
        said = (done.stderr or done.stdout).decode(errors="replace").strip()
        return Ran(
            done.returncode, done.stdout, f"{command[0]}: {said.splitlines()[0] if said else 'failed'}"
        )


class Ran(msgspec.Struct, frozen=True):
    """What came of a program."""

    code: int
    out: bytes
    why: str
    """In one line, if it failed."""


class Timer(Protocol):
    """A kind of timer is a module with these functions."""

    NAME: str

    def is_usable(self, machine: Machine) -> bool:
        """Tell whether the machine has it, and lets us use it."""

    def is_there(self, machine: Machine) -> bool:
        """Tell whether anything of ours is in it, running or not."""

    def is_on(self, machine: Machine) -> bool:
        """Tell whether it will call retold."""

    def changes(self, machine: Machine, words: Sequence[str] | None) -> list[FileChangePlan]:
        """What has to be written so that it calls retold with these words; without any, what has to be removed."""

    def install(self, machine: Machine, changes: Sequence[FileChangePlan]) -> list[str]:
        """Make the changes and switch it on; return the folders made. Raises Stopped, with all as it was."""

    def remove(self, machine: Machine, changes: Sequence[FileChangePlan]) -> None:
        """Switch it off and make the changes; raises Stopped."""
