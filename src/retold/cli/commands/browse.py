"""`retold browse`: the terminal browser."""

import os
import sys
from argparse import ArgumentParser, Namespace

from retold.cli.console import Console
from retold.cli.options import add_filter_arguments


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `browse`."""
    parser.add_argument(
        "query", nargs="*", metavar="QUERY", help="what to begin with; it can be typed there too"
    )
    add_filter_arguments(parser)


def run(options: Namespace, console: Console) -> int:
    """Run the browser; if it ends with a conversation to resume, run that agent in the terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        console.notice(
            "retold: browse needs a terminal; without one there are `retold list` and `retold search`"
        )
        return 2
    from retold.cli.archive import open_archive
    from retold.cli.project_roots import find_project
    from retold.config import retold_home
    from retold.search.filters import FILTERS
    from retold.tui.app import Browser
    from retold.tui.data import ArchiveQueries

    with open_archive(console) as record:
        if options.project is not None:
            find_project(record, options.project, console)
    given = [(name, getattr(options, name, None)) for name in FILTERS]
    filters = tuple((name, value) for name, value in given if value is not None)
    archive = ArchiveQueries(retold_home(os.environ), filters, os.getcwd())
    app = Browser(archive, " ".join(options.query))
    key = app.run()
    if key is None:
        return app.return_code or 0
    from argparse import Namespace

    from retold.cli.commands.resume import run as resume

    return resume(Namespace(session=key, run=True), console)
