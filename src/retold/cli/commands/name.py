"""`retold name`: give a session a title."""

from argparse import ArgumentParser, Namespace

from retold.cli.archive import add_session_argument
from retold.cli.console import Console


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `name`."""
    add_session_argument(parser)
    parser.add_argument(
        "text", metavar="TEXT", nargs="+", help="the title; an empty one brings back the agent's own"
    )


def run(options: Namespace, console: Console) -> int:
    """Set the title; 1 if there is no such session, 2 if the name means several."""
    from retold.cli.archive import change_session
    from retold.synchronization.user_changes import set_title

    title = " ".join(options.text).strip()
    return change_session(options.session, console, lambda record, key: set_title(record, key, title))
