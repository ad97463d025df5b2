"""The agents' homes, as commands read them until there is an archive."""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from retold.cli.config import keep_home, labelled_homes
from retold.cli.console import Console
from retold.cli.home import retold_home
from retold.ingest.census import Census, census
from retold.model.problem import Problem
from retold.model.session import Session, View

QUIET = ("not-a-session", "foreign-format")
"""Problems that only say that a file is something else: counted, not told one by one."""


def home_argument(parser: ArgumentParser) -> None:
    """Add the choice of further homes."""
    parser.add_argument(
        "--home",
        action="append",
        default=[],
        metavar="[LABEL=]DIR",
        help="also read this home folder: another machine's, or a backup's; with a LABEL it is remembered; a bare LABEL lists only what came from it",
    )


def given_homes(options: Namespace) -> Iterator[tuple[str | None, Path]]:
    """Yield each `--home` that names a folder, with its label."""
    for given in options.home:
        label, equals, folder = given.partition("=")
        if equals or Path(given).is_dir():
            yield (label, Path(folder)) if equals else (None, Path(given))


def home_label(options: Namespace) -> str | None:
    """Return the label to list by, if a `--home` is nothing but one."""
    labels = [given for given in options.home if "=" not in given and not Path(given).is_dir()]
    return labels[-1] if labels else None


def take_census(options: Namespace, console: Console) -> Census:
    """Find what there is, in the homes that are given and those that are remembered."""
    from retold.agents.registry import AGENTS
    from retold.projects.memory import remembered

    agents, own = list(AGENTS.values()), Path(retold_home(os.environ))
    given = list(given_homes(options))
    for _, folder in given:
        if all(agent.home_in(folder) is None for agent in agents):
            console.tell(f"retold: {folder}: no agent's home")
    known = _remembered_homes(given, own, console)
    return census(agents, os.environ, [*given, *known], remembered(own))


def _remembered_homes(
    given: Sequence[tuple[str | None, Path]], own: Path, console: Console
) -> list[tuple[str | None, Path]]:
    """Return the labelled homes of earlier times, and remember those of this time."""
    try:
        known = labelled_homes(own)
        for label, folder in given:
            if label is not None:
                keep_home(own, label, folder)
    except (OSError, ValueError) as error:
        console.tell(f"retold: labelled homes are not remembered: {error}")
        return []
    labels = {label for label, _ in given}
    return [(label, Path(folder)) for label, folder in known.items() if label not in labels]


def read_sessions(
    taken: Census, console: Console, view: View = "full", *, is_outline: bool = False
) -> Iterator[Session]:
    """Yield every session, showing how far it is, and telling afterwards what could not be read."""
    progress = _Progress(taken.files, console)
    before = dict(taken.atlas.by_hash)
    yield from taken.sessions(progress.hear, view, is_outline=is_outline)
    progress.end()
    proven = {name: root for name, root in taken.atlas.by_hash.items() if name not in before}
    if proven:
        keep_roots(proven, console)


def keep_roots(roots: Mapping[str, str], console: Console) -> None:
    """Keep proven roots for next time; that this fails must not cost the answer."""
    from retold.projects.memory import remember

    try:
        remember(Path(retold_home(os.environ)), roots)
    except OSError as error:
        console.tell(f"retold: roots that were found could not be kept: {error}")


class _Progress:
    """How far the reading is: on a terminal only, on one line."""

    def __init__(self, files: int, console: Console) -> None:
        self.files, self.console, self.read, self.other = files, console, 0, 0
        self.is_shown = sys.stderr.isatty()

    def hear(self, news: object) -> None:
        if not isinstance(news, Problem):
            self.read += 1
            if self.is_shown and self.read % 50 == 0:
                self.console.err.write(f"\r{self.read:,} of {self.files:,} files")
        elif news.code in QUIET:
            self.other += 1
        else:
            self.console.tell(f"{self._clean()}retold: {news.path}: {news.message} [{news.code}]")

    def end(self) -> None:
        self.console.err.write(self._clean())
        if self.other:
            self.console.tell(f"retold: {self.other} files in the sessions' folders hold no conversation")

    def _clean(self) -> str:
        return "\r\x1b[K" if self.is_shown else ""
