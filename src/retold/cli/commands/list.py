"""`retold list`: one row per conversation."""

from __future__ import annotations

from retold.cli.options import add_filters, count, filter_arguments, tell_unknown

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.archive.store import Store
    from retold.cli.console import Console
    from retold.search.filters import Filters


def arguments(parser: ArgumentParser) -> None:
    """Add what `list` understands."""
    filter_arguments(parser)
    parser.add_argument(
        "--all",
        action="store_true",
        help="also subagents, checkpoints, captures, and sessions in which nobody spoke",
    )
    parser.add_argument("-n", "--limit", type=count, metavar="N", help="at most this many")
    parser.add_argument(
        "--json", action="store_true", help="one JSON object per conversation, without its timeline"
    )


def run(options: Namespace, console: Console) -> int:
    """Print the list; 1 if there is nothing in it."""
    from retold.cli.archive import opened
    from retold.cli.project_names import project_finder
    from retold.search.filters import Filters
    from retold.search.listing import summaries

    with opened(console) as record:
        wanted = add_filters(Filters(find_project=project_finder(record, console)), options)
        if not options.json:
            code = print_list(record, console, wanted, options.limit, every_kind=options.all)
            if code:
                tell_unknown(record, options, console)
            return code
        code = 1
        for summary in summaries(record, wanted, options.limit, every_kind=options.all):
            console.record(summary.encode())
            code = 0
        if code:
            console.tell("retold: no sessions found")
            tell_unknown(record, options, console)
    return code


def print_list(
    record: Store, console: Console, wanted: Filters, limit: int | None, *, every_kind: bool
) -> int:
    """Print the table; 1 if there is nothing in it."""
    from retold.export.text.table import session_table
    from retold.search.listing import listed

    rows = listed(record, wanted, limit, every_kind=every_kind)
    if not rows:
        console.tell("retold: no sessions found")
        return 1
    heading, *lines = session_table(rows, console.columns)
    console.line(heading, "faint")
    console.lines(lines)
    return 0
