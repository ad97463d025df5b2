"""`retold resume`: print or run the command that continues a conversation."""

import os
from argparse import ArgumentParser, Namespace

from retold.archive.store import Store
from retold.cli.archive import add_session_argument, open_archive, resolve_session
from retold.cli.console import Console


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `resume`."""
    add_session_argument(parser)
    parser.add_argument(
        "--run",
        action="store_true",
        help="archive, write back what is missing, start the agent, archive again, and remove what would make it delete the session",
    )


def run(options: Namespace, console: Console) -> int:
    """Print the command, or run it; 1 if there is no such session, 2 if the name means several, or the agent's exit code."""
    if options.run:
        from retold.cli.progress import run_sync

        run_sync(console)
    with open_archive(console) as record:
        key = resolve_session(record, options.session, console)
        if isinstance(key, int):
            return key
        return _run(record, key, console) if options.run else _print(record, key, console)


def _print(record: Store, key: str, console: Console) -> int:
    from retold.maintenance.restore import format_full_command, is_endangered, plan_resume, quote_words

    plan = plan_resume(record, key, os.environ)
    if plan.additions:
        console.notice(
            "retold: the agent has it no more, or would not resume it well: it is written back first, beside what is there"
        )
    elif is_endangered(plan):
        console.notice(
            "retold: a file without conversation lies beside it, for which the agent deletes it at its next start:"
            f" `{quote_words(('retold', 'resume', key, '--run'))}` removes that"
        )
    console.write_line(format_full_command(plan, key))
    return 0


def _run(record: Store, key: str, console: Console) -> int:
    from retold.cli.progress import run_sync
    from retold.maintenance.restore import (
        find_own_homes,
        format_command,
        plan_resume,
        remove_ghosts,
        run_agent,
        write_plan,
    )

    plan = plan_resume(record, key, os.environ)
    for addition in plan.additions:
        console.notice(f"retold: writing {addition.path}")
    write_plan(plan)
    remove_ghosts(record, find_own_homes(os.environ))
    console.notice(f"retold: {format_command(plan)}")
    try:
        return run_agent(plan, os.environ)
    finally:
        run_sync(console)
        if count := len(remove_ghosts(record, find_own_homes(os.environ))):
            console.notice(f"retold: removed {count} file{'s' if count > 1 else ''} without conversation")
