"""`retold browse`: the terminal browser."""

from __future__ import annotations

import os
import sys

from retold.cli.options import filter_arguments

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.cli.console import Console


def arguments(parser: ArgumentParser) -> None:
    """Add what `browse` understands."""
    parser.add_argument(
        "query", nargs="*", metavar="QUERY", help="what to begin with; it can be typed there too"
    )
    filter_arguments(parser)


def run(options: Namespace, console: Console) -> int:
    """Show the browser; where a conversation is to be resumed, its agent then has the terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        console.tell(
            "retold: browse needs a terminal; without one there are `retold list` and `retold search`"
        )
        return 2
    from retold.cli.archive import opened
    from retold.cli.project_names import find_project
    from retold.config import retold_home
    from retold.search.filters import FILTERS
    from retold.tui.app import Browser
    from retold.tui.data import ArchiveQueries

    with opened(console) as record:
        if options.project is not None:
            find_project(record, options.project, console)
    given = [(name, getattr(options, name, None)) for name in FILTERS]
    filters = tuple((name, value) for name, value in given if value is not None)
    archive = ArchiveQueries(retold_home(os.environ), filters, os.getcwd())
    app = Browser(archive, " ".join(options.query))
    key = app.run()
    if key is not None:
        return _resume(key, console)
    return app.return_code or 0


def _resume(key: str, console: Console) -> int:
    from argparse import Namespace

    from retold.cli.commands.resume import run as resume

    return resume(Namespace(session=key, run=True), console)
