"""`retold list`: one row per conversation."""

from __future__ import annotations

from retold.cli.options import add_filter_arguments, make_filters, parse_count, warn_of_unknown_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.archive.store import Store
    from retold.cli.console import Console
    from retold.search.filters import Filters


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `list`."""
    add_filter_arguments(parser)
    parser.add_argument(
        "--all",
        action="store_true",
        help="also subagents, checkpoints, captures, and sessions in which nobody spoke",
    )
    parser.add_argument("-n", "--limit", type=parse_count, metavar="N", help="at most this many")
    parser.add_argument(
        "--json", action="store_true", help="one JSON object per conversation, without its timeline"
    )


def run(options: Namespace, console: Console) -> int:
    """Print the list; 1 if it is empty."""
    from retold.cli.archive import open_archive
    from retold.search.listing import list_json

    with open_archive(console) as record:
        filters = make_filters(record, options, console)
        if options.json:
            code = 1
            for summary in list_json(record, filters, options.limit, every_kind=options.all):
                console.write_json(summary.encode())
                code = 0
            if code:
                console.notice("retold: no sessions found")
        else:
            code = print_list(record, console, filters, options.limit, every_kind=options.all)
        if code:
            warn_of_unknown_names(record, options, console)
    return code


def print_list(
    record: Store, console: Console, filters: Filters, limit: int | None, *, every_kind: bool
) -> int:
    """Print the table; 1 if it is empty."""
    from retold.export.text.formatting import format_session_table
    from retold.search.listing import list_sessions

    rows = list_sessions(record, filters, limit, every_kind=every_kind)
    if not rows:
        console.notice("retold: no sessions found")
        return 1
    heading, *lines = format_session_table(rows, console.columns)
    console.write_line(heading, "faint")
    console.write_lines(lines)
    return 0
