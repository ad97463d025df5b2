"""The machine as timers see it: its platform, folders and programs; and the protocol of timers."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from retold.maintenance.file_changes import FileChangePlan

TIMEOUT = 30
NOT_RUN = 126
"""The exit code of a program that does not exist or cannot be run."""
MINUTES = 15
"""Minutes between two syncs."""


class Machine(msgspec.Struct, frozen=True):
    """The environment and the platform."""

    env: Mapping[str, str]
    platform: str

    @property
    def user_folder(self) -> str:
        """The user's home folder."""
        return self.env.get("HOME") or os.path.expanduser("~")

    def has(self, program: str) -> bool:
        """Return whether a program is on PATH."""
        return shutil.which(program, path=self.env.get("PATH")) is not None

    def run(self, *command: str, stdin: bytes = b"") -> "ProgramResult":
        """Run a program and return its result."""
        program = shutil.which(command[0], path=self.env.get("PATH"))
        if program is None:
            return ProgramResult(NOT_RUN, b"", f"there is no {command[0]}")
        try:
            done = subprocess.run(  # noqa: S603 - programs of the system, and no shell
                [program, *command[1:]],
                env=dict(self.env),
                input=stdin,
                capture_output=True,
                timeout=TIMEOUT,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return ProgramResult(NOT_RUN, b"", str(error))
        message = (done.stderr or done.stdout).decode(errors="replace").strip()
        line = message.splitlines()[0] if message else "failed"
        return ProgramResult(done.returncode, done.stdout, f"{command[0]}: {line}")


class ProgramResult(msgspec.Struct, frozen=True):
    """The exit code and the output of a program."""

    code: int
    out: bytes
    error: str
    """One line, for a program that failed."""


class Timer(Protocol):
    """The functions of a module for a kind of timer."""

    NAME: str

    def is_usable(self, machine: Machine) -> bool:
        """Return whether the machine has this kind of timer and lets us use it."""

    def is_installed(self, machine: Machine) -> bool:
        """Return whether any part of our timer is installed, running or not."""

    def is_enabled(self, machine: Machine) -> bool:
        """Return whether the timer is going to call retold."""

    def changes(self, machine: Machine, words: Sequence[str] | None) -> list[FileChangePlan]:
        """Return the changes after which the timer runs this command; for None, those that remove it."""

    def install(self, machine: Machine, changes: Sequence[FileChangePlan]) -> list[str]:
        """Make the changes and enable the timer, or raise RetoldError and change nothing; return the created folders."""

    def remove(self, machine: Machine, changes: Sequence[FileChangePlan]) -> None:
        """Disable the timer and make the changes; raise RetoldError."""
