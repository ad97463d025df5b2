"""Run a sync for a command: the homes to read, the progress bar, the problems, and the result on one line."""

from __future__ import annotations

import os
import sys
import time

from retold.cli.archive import warn_if_emptied
from retold.cli.console import terminal_columns
from retold.config import CONFIG_FILE as CONFIG
from retold.config import SETTINGS, read_config, retold_home, save_home
from retold.synchronization.update import SyncOptions, update

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Sequence

    from retold.cli.console import Console
    from retold.config import Config
    from retold.synchronization.fingerprints import CoverageCount


BAR = 24
_STEP = 0.1


def add_home_arguments(parser: ArgumentParser, home: str) -> None:
    """Add `--home`, with `home` as its help text, and `--agent`."""
    from retold.agents import NAMES

    parser.add_argument("--home", action="append", type=_parse_home, metavar="[LABEL=]DIR", help=home)
    parser.add_argument(
        "--agent", action="append", type=str.lower, choices=NAMES, help="only this agent's; repeatable"
    )


def _parse_home(text: str) -> str:
    """Return the value of `--home`; an empty one, as of a shell variable that is not set, is wrong usage."""
    from argparse import ArgumentTypeError

    if not text or (text.endswith("=") and not os.path.isdir(text)):
        raise ArgumentTypeError(f"{text!r} names no folder: write [LABEL=]DIR")
    return text


def run_sync(
    console: Console, homes: Sequence[str] = (), agents: Sequence[str] = (), *, reindex: bool = False
) -> CoverageCount:
    """Bring the archive up to date and print the problems."""
    task = sync_task(console, homes, agents, reindex=reindex)
    progress = Progress(console)
    coverage, problems = update(task, progress.notice_wait, progress.show, progress.notice_damage)
    progress.end()
    for problem in problems:
        progress.notice_problem(problem)
    return coverage


def sync_task(
    console: Console, homes: Sequence[str] = (), agents: Sequence[str] = (), *, reindex: bool = False
) -> SyncOptions:
    """Return the options of a sync; remember homes with a label, and print a notice for what is not a home."""
    folder = retold_home(os.environ)
    warn_if_emptied(console, folder)
    given = [_split_label(home) for home in homes]
    for label, home in given:
        if not os.path.isdir(home):
            console.notice(f"retold: {home}: no such folder")
            continue
        if not _is_home(home):
            console.notice(f"retold: {home}: no agent's home")
        if label is not None:
            save_home(folder, label, home)
    config = load_config(console, folder)
    labels = {label for label, _ in given}
    known = [(label, home) for label, home in config.homes.items() if label not in labels]
    return SyncOptions(folder, os.environ, [*given, *known], agents, config.excluded, reindex=reindex)


def load_config(console: Console, folder: str) -> Config:
    """Return the settings in `config.toml`, and print a notice for each that does not exist."""
    config = read_config(folder)
    warn_of_unknown_settings(console, folder, config)
    return config


def warn_of_unknown_settings(console: Console, folder: str, config: Config) -> None:
    """Print a notice for each setting in `config.toml` that does not exist."""
    for name in config.unknown:
        there = " and ".join(SETTINGS)
        console.notice(
            f"retold: {os.path.join(folder, CONFIG)}: no setting is called {name}: there are {there}"
        )


def missing_homes(homes: Sequence[str]) -> list[str]:
    """Return the given homes that do not exist."""
    return [folder for _, folder in map(_split_label, homes) if not os.path.isdir(folder)]


def _split_label(home: str) -> tuple[str | None, str]:
    label, equals, folder = home.partition("=")
    has_label = bool(equals and label) and not os.path.isdir(home)
    # The archive knows files by their paths, so the path of a home must not depend on the working directory.
    return (label, os.path.realpath(folder)) if has_label else (None, os.path.realpath(home))


def _is_home(folder: str) -> bool:
    from pathlib import Path

    from retold.agents.registry import AGENTS

    return any(agent.find_home(Path(folder)) is not None for agent in AGENTS.values())


def format_coverage(coverage: CoverageCount) -> str:
    """Return the result of a sync on one line."""
    new = f", {_format_count(coverage.new_sessions, 'new session')}" if coverage.new_sessions else ""
    return (
        f"{_format_count(coverage.found, 'file')} found: {coverage.read:,} read, {coverage.unchanged:,} unchanged{new};"
        f" {_format_count(coverage.problems, 'problem')}; {coverage.seconds:.1f} s"
    )


def _format_count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class Progress:
    """A progress bar on a terminal, in bytes or things; elsewhere it prints nothing."""

    def __init__(self, console: Console, *, is_of_bytes: bool = True) -> None:
        self._console, self._is_shown, self._shown_at = console, sys.stderr.isatty(), 0.0
        self._is_of_bytes, self._began = is_of_bytes, time.monotonic()

    def notice_wait(self) -> None:
        """Print that another process has the lock of the archive."""
        self._console.notice("retold: another retold is bringing the archive up to date; waiting for it")

    def notice_problem(self, problem: object) -> None:
        """Print a problem on one line; its path may contain line ends."""
        text = f"{problem.path}: {problem.message} [{problem.code}]"  # type: ignore[attr-defined]
        self._console.notice(f"retold: {' '.join(text.splitlines())}")

    def notice_damage(self, damage: str) -> None:
        """Print that the text index is rebuilt, and why."""
        self._console.notice(f"retold: {damage}: rebuilding the text index from the archive")

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
        bar = f"reading {'█' * full}{'░' * (BAR - full)} {sizes}"
        bar += f", {left:.0f} s left" if left >= 1 else ""
        # A bar that wraps into the next line could not be erased.
        columns = terminal_columns(os.environ, self._console.err)
        self._console.err.write(f"\r\x1b[K{bar[: columns - 1]}")
        self._console.err.flush()

    def end(self) -> None:
        """Erase the bar."""
        if self._shown_at:
            self._console.err.write("\r\x1b[K")
