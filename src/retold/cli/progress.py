"""A sync as a person sees it: how far it is while it lasts, and what it came to."""

from __future__ import annotations

import os
import sys
import time

from retold.cli.archive import tell_if_emptied
from retold.cli.console import terminal_columns
from retold.config import NAME as CONFIG
from retold.config import SETTINGS, keep_home, read_config, retold_home
from retold.synchronization.update import Task, update

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Sequence

    from retold.cli.console import Console
    from retold.config import Config
    from retold.synchronization.fingerprints import CoverageCount


BAR = 24
_STEP = 0.1


def home_arguments(parser: ArgumentParser, home: str) -> None:
    """Add which homes, and which agents', are meant; `home` says what is done with a further one."""
    from retold.agents import NAMES

    parser.add_argument("--home", action="append", type=_named_home, metavar="[LABEL=]DIR", help=home)
    parser.add_argument(
        "--agent", action="append", type=str.lower, choices=NAMES, help="only this agent's; repeatable"
    )


def _named_home(text: str) -> str:
    """Return what names a home; a variable of the shell that is not set names none."""
    from argparse import ArgumentTypeError

    if not text or (text.endswith("=") and not os.path.isdir(text)):
        raise ArgumentTypeError(f"{text!r} names no folder: write [LABEL=]DIR")
    return text


def run_sync(
    console: Console, homes: Sequence[str] = (), agents: Sequence[str] = (), *, reindex: bool = False
) -> CoverageCount:
    """Bring the archive up to date, and tell what stood in the way."""
    task = asked_task(console, homes, agents, reindex=reindex)
    progress = Progress(console)
    coverage, problems = update(task, progress.tell_wait, progress.show, progress.tell_damage)
    progress.end()
    for problem in problems:
        progress.tell_problem(problem)
    return coverage


def asked_task(
    console: Console, homes: Sequence[str] = (), agents: Sequence[str] = (), *, reindex: bool = False
) -> Task:
    """Return what is to be synced; homes with a label are remembered, and what is no home is told."""
    folder = retold_home(os.environ)
    tell_if_emptied(console, folder)
    given = [_labelled(home) for home in homes]
    for label, home in given:
        if not os.path.isdir(home):
            console.tell(f"retold: {home}: no such folder")
            continue
        if not _is_home(home):
            console.tell(f"retold: {home}: no agent's home")
        if label is not None:
            keep_home(folder, label, home)
    config = told_config(console, folder)
    labels = {label for label, _ in given}
    known = [(label, home) for label, home in config.homes.items() if label not in labels]
    return Task(folder, os.environ, [*given, *known], agents, config.excluded, reindex=reindex)


def told_config(console: Console, folder: str) -> Config:
    """Return what `config.toml` says; name the settings in it that do not exist."""
    config = read_config(folder)
    tell_unknown_settings(console, folder, config)
    return config


def tell_unknown_settings(console: Console, folder: str, config: Config) -> None:
    """Name the settings in `config.toml` that do not exist, and those that do."""
    for name in config.unknown:
        there = " and ".join(SETTINGS)
        console.tell(
            f"retold: {os.path.join(folder, CONFIG)}: no setting is called {name}: there are {there}"
        )


def missing_homes(homes: Sequence[str]) -> list[str]:
    """Return the given homes that do not exist."""
    return [folder for _, folder in map(_labelled, homes) if not os.path.isdir(folder)]


def _labelled(home: str) -> tuple[str | None, str]:
    label, equals, folder = home.partition("=")
    is_labelled = bool(equals and label) and not os.path.isdir(home)
    # A file is known by its path: that by which its home is remembered, wherever the next sync is run.
    return (label, os.path.realpath(folder)) if is_labelled else (None, os.path.realpath(home))


def _is_home(folder: str) -> bool:
    from pathlib import Path

    from retold.agents.registry import AGENTS

    return any(agent.home_in(Path(folder)) is not None for agent in AGENTS.values())


def coverage_line(coverage: CoverageCount) -> str:
    """Return what a sync came to, on one line."""
    new = f", {_counted(coverage.new_sessions, 'new session')}" if coverage.new_sessions else ""
    return (
        f"{_counted(coverage.found, 'file')} found: {coverage.read:,} read, {coverage.unchanged:,} unchanged{new};"
        f" {_counted(coverage.problems, 'problem')}; {coverage.seconds:.1f} s"
    )


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


class Progress:
    """How far it is: a bar on a terminal, nothing elsewhere."""

    def __init__(self, console: Console, *, is_of_bytes: bool = True) -> None:
        """Take whether what is done is told in bytes, or counted."""
        self._console, self._is_shown, self._shown_at = console, sys.stderr.isatty(), 0.0
        self._is_of_bytes, self._began = is_of_bytes, time.monotonic()

    def tell_wait(self) -> None:
        """Tell that another has the archive."""
        self._console.tell("retold: another retold is bringing the archive up to date; waiting for it")

    def tell_problem(self, problem: object) -> None:
        """Tell what stood in the way."""
        told = f"{problem.path}: {problem.message} [{problem.code}]"  # type: ignore[attr-defined]
        self._console.tell(f"retold: {' '.join(told.splitlines())}")  # a path may hold the end of a line

    def tell_damage(self, damage: str) -> None:
        """Tell that the text index is made anew, and why."""
        self._console.tell(f"retold: {damage}: rebuilding the text index from the archive")

    def show(self, done: int, size: int) -> None:
        """Draw the bar."""
        now = time.monotonic()
        if not self._is_shown or (now - self._shown_at < _STEP and done < size):
            return
        self._shown_at = now
        part = min(done / size, 1.0)
        full = round(part * BAR)
        left = (now - self._began) * (1 - part) / part if part else 0.0
        sizes = f"{done / 1e6:,.0f} of {size / 1e6:,.0f} MB" if self._is_of_bytes else f"{done:,} of {size:,}"
        told = f"reading {'█' * full}{'░' * (BAR - full)} {sizes}"
        told += f", {left:.0f} s left" if left >= 1 else ""
        # What does not fit would go on in the next line, and could not be wiped.
        columns = terminal_columns(os.environ, self._console.err)
        self._console.err.write(f"\r\x1b[K{told[: columns - 1]}")
        self._console.err.flush()

    def end(self) -> None:
        """Wipe it."""
        if self._shown_at:
            self._console.err.write("\r\x1b[K")
