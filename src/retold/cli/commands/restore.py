"""`retold restore`: a conversation written back, so that its agent lists and resumes it."""

from __future__ import annotations

import os

from retold.cli.archive import no_such_session, opened, session_argument

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.cli.console import Console
    from retold.maintenance.restore import RestorePlan


def arguments(parser: ArgumentParser) -> None:
    """Add what `restore` understands."""
    session_argument(parser)
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
    """Write it back; 1 if no session is meant, 2 if several are, 4 if it cannot be."""
    from retold.maintenance.restore import Wish, planned, write
    from retold.search.listing import named

    wish = Wish(options.home, options.project, options.version, options.view, options.clean)
    with opened(console) as record:
        found = named(record, options.session)
        if len(found) != 1:
            return no_such_session(console, options.session, found)
        plan = planned(record, found[0][0], wish, os.environ)
        if not options.dry_run:
            write(plan)
    _tell(plan, console, is_dry=options.dry_run)
    return 0


def _tell(plan: RestorePlan, console: Console, *, is_dry: bool) -> None:
    from retold.maintenance.restore import command_line

    if not plan.additions:
        console.tell("retold: the agent has it: nothing to write")
    for addition in plan.additions:
        console.line(f"{'would write ' if is_dry else ''}{addition.path}")
    if plan.restored.view == "full":
        console.tell(
            "retold: everything that was ever said, as the agent itself held nothing more of it, or as asked"
        )
    console.tell(f"retold: go on with it: {command_line(plan)}")
