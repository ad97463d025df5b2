"""`retold restore`: write a conversation back, so that its agent lists and resumes it."""

from __future__ import annotations

import os

from retold.cli.archive import add_session_argument, open_archive, resolve_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.cli.console import Console
    from retold.maintenance.restore import RestorePlan


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `restore`."""
    add_session_argument(parser)
    parser.add_argument("--home", metavar="DIR", help="into this home folder, not the agent's own")
    parser.add_argument("--project", metavar="DIR", help="where the project lies now, if not where it lay")
    parser.add_argument(
        "--view",
        choices=("active", "full"),
        help="write it even if the agent still has it: what it held last, or everything ever said, rewound and cancelled turns too",
    )
    parser.add_argument(
        "--clean", action="store_true", help="also if the agent has it, but would not resume it well"
    )
    parser.add_argument(
        "--for", dest="version", metavar="VERSION", help="of the agent; the installed one, else the newest"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be written")


def run(options: Namespace, console: Console) -> int:
    """Write the conversation back; 1 if there is none, 2 if the name means several, 4 if it cannot be written."""
    from retold.maintenance.restore import RestoreOptions, plan_restore, write_plan

    wish = RestoreOptions(options.home, options.project, options.version, options.view, options.clean)
    with open_archive(console) as record:
        key = resolve_session(record, options.session, console)
        if isinstance(key, int):
            return key
        plan = plan_restore(record, key, wish, os.environ)
        if not options.dry_run:
            write_plan(plan)
    _print_plan(plan, console, is_dry=options.dry_run)
    return 0


def _print_plan(plan: RestorePlan, console: Console, *, is_dry: bool) -> None:
    from retold.maintenance.restore import format_command

    if not plan.additions:
        console.notice("retold: the agent has it: nothing to write")
    for addition in plan.additions:
        console.write_line(f"{'would write ' if is_dry else ''}{addition.path}")
    if plan.restored.view == "full":
        console.notice(
            "retold: everything that was ever said, as the agent itself held nothing more of it, or as asked"
        )
    console.notice(f"retold: go on with it: {format_command(plan)}")
