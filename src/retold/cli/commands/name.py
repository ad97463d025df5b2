"""`retold name`: a title of your own."""

from __future__ import annotations

from retold.cli.archive import session_argument

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.cli.console import Console


def arguments(parser: ArgumentParser) -> None:
    """Add what `name` understands."""
    session_argument(parser)
    parser.add_argument(
        "text", metavar="TEXT", nargs="+", help="the title; an empty one brings back the agent's own"
    )


def run(options: Namespace, console: Console) -> int:
    """Give the session its title; 1 if none is meant, 2 if several are."""
    from retold.cli.archive import changed
    from retold.synchronization.user_changes import name_session

    return changed(
        options.session, console, lambda hand, key: name_session(hand, key, " ".join(options.text).strip())
    )
