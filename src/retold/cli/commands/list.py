"""`retold list`: one row per conversation."""

import shutil
from argparse import ArgumentParser, Namespace

from retold.cli.console import Console
from retold.cli.filters import count, filter_arguments


def arguments(parser: ArgumentParser) -> None:
    """Add what `list` understands."""
    filter_arguments(parser)
    parser.add_argument("--all", action="store_true", help="also checkpoints, captures and subagents")
    parser.add_argument("-n", "--limit", type=count, metavar="N", help="at most this many")
    parser.add_argument(
        "--json", action="store_true", help="one JSON object per conversation, without its timeline"
    )


def run(options: Namespace, console: Console) -> int:
    """Print the list; 1 if there is nothing in it."""
    from retold.cli.census import read_sessions, take_census
    from retold.cli.filters import parse_filter
    from retold.export.table import session_table
    from retold.ingest.kinship import Kinship
    from retold.model.wire import summary_json
    from retold.query.listing import listing

    kinship = Kinship()
    sessions = kinship.watch(read_sessions(take_census(options, console), console, is_outline=True))
    found = listing(sessions, parse_filter(options), every_kind=options.all)[: options.limit]
    rows = [kinship.told(session) for session in found]
    if not rows:
        console.tell("retold: no sessions found")
    elif options.json:
        for session in rows:
            console.record(summary_json(session))
    else:
        for line in session_table(rows, shutil.get_terminal_size().columns):
            console.line(line.text, line.style)
    return 0 if rows else 1
