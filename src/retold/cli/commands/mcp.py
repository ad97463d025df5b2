"""`retold mcp`: the history as tools for agents."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.cli.console import Console

SCOPES = ("project", "all")


def arguments(parser: ArgumentParser) -> None:
    """Add what `mcp` understands."""
    parser.description = "A server of the Model Context Protocol over stdin and stdout: agents start it by themselves, see `retold connect`."
    parser.add_argument(
        "--scope",
        choices=SCOPES,
        default=SCOPES[0],
        help="the widest that is given: the project of the folder it is started in (the usual), or all",
    )
    parser.add_argument("--no-redact", action="store_true", help="leave secrets in what is quoted")


def run(options: Namespace, console: Console) -> int:
    """Serve until whoever started it lets go."""
    from retold.ingest.home import retold_home
    from retold.mcp.desk import Desk, Place
    from retold.mcp.server import serve_stdio

    place = Place(
        retold_home(os.environ),
        os.getcwd(),
        options.scope == "all",
        not options.no_redact,
        os.environ.get("PWD"),
    )
    if sys.stdin.isatty():
        console.tell(
            "retold: waiting for an agent to speak; `retold connect` lets one start this; Ctrl-D ends"
        )
    desk = Desk(place)
    try:
        serve_stdio(desk)
    finally:
        desk.close()
    return 0
