"""Sessions from files named on the command line, and a word about those that are none."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from retold.cli.console import Console
from retold.model.problem import Problem
from retold.model.session import Session


def view_argument(parser: ArgumentParser) -> None:
    """Add the choice of view."""
    parser.add_argument(
        "--view",
        choices=("full", "active"),
        default="full",
        help="full: everything ever recorded (default); active: what the agent itself would load",
    )


def sessions(options: Namespace, console: Console) -> Iterator[Session | Problem]:
    """Yield the sessions of every file, or the Problem that it has none, which is told on stderr."""
    from retold.agents.registry import NotASession, read
    from retold.model.serialization import problem_json

    for file in options.files:
        try:
            yield from read(file, options.view)
        except NotASession as refusal:
            told = refusal.problem
            line = (
                problem_json(told).decode() if options.json else f"{told.path}: {told.message} [{told.code}]"
            )
            console.tell(line if options.json else f"retold: {line}")
            yield told
