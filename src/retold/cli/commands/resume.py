"""`retold resume`: go on with a conversation."""

from __future__ import annotations

import os

from retold.cli.archive import no_such_session, opened, session_argument

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.archive.store import Store
    from retold.cli.console import Console


def arguments(parser: ArgumentParser) -> None:
    """Add what `resume` understands."""
    session_argument(parser)
    parser.add_argument(
        "--run",
        action="store_true",
        help="archive, write back what is missing, start the agent, archive again, and remove what would make it delete the session",
    )


def run(options: Namespace, console: Console) -> int:
    """Print the command, or run it; 1 if no session is meant, 2 if several are; else the agent's own exit code."""
    from retold.search.listing import named

    if options.run:
        from retold.cli.progress import run_sync

        run_sync(console)
    with opened(console) as record:
        found = named(record, options.session)
        if len(found) != 1:
            return no_such_session(console, options.session, found)
        key = found[0][0]
        return _run(record, key, console) if options.run else _print(record, key, console)


def _print(record: Store, key: str, console: Console) -> int:
    from retold.maintenance.restore import endangered, quoted, way_on, whole_line

    plan = way_on(record, key, os.environ)
    if plan.additions:
        console.tell(
            "retold: the agent has it no more, or would not resume it well: it is written back first, beside what is there"
        )
    elif endangered(plan):
        console.tell(
            "retold: a file without conversation lies beside it, for which the agent deletes it at its next start:"
            f" `{quoted(('retold', 'resume', key, '--run'))}` removes that"
        )
    console.line(whole_line(plan, key))
    return 0


def _run(record: Store, key: str, console: Console) -> int:
    from retold.cli.progress import run_sync
    from retold.maintenance.restore import clear_ghosts, command_line, way_on, write
    from retold.maintenance.restore import run as run_agent

    plan = way_on(record, key, os.environ)
    for addition in plan.additions:
        console.tell(f"retold: writing {addition.path}")
    write(plan)
    clear_ghosts(record, os.environ)
    console.tell(f"retold: {command_line(plan)}")
    try:
        return run_agent(plan, os.environ)
    finally:
        run_sync(console)
        if count := clear_ghosts(record, os.environ):
            console.tell(f"retold: removed {count} file{'s' if count > 1 else ''} without conversation")
