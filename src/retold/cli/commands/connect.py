"""`retold connect`: set an agent up to search and read earlier conversations."""

from __future__ import annotations

import os
import sys

from retold import __version__
from retold.cli.commands.mcp import SCOPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.cli.console import Console
    from retold.maintenance.connect import ConnectWork
    from retold.maintenance.timers.machine import Machine


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `connect`."""
    from retold.agents import NAMES

    parser.description = (
        "Set an agent up so that it can search and read earlier conversations, with tools that only read, and so that"
        " what is said in it is archived when a session ends. Every change is shown first, and made when you agree."
    )
    parser.add_argument("agent", metavar="AGENT", type=str.lower, choices=NAMES, help=", ".join(NAMES))
    parser.add_argument(
        "--remove", action="store_true", help="the same the other way round: no trace is left"
    )
    parser.add_argument(
        "--scope",
        choices=SCOPES,
        default=SCOPES[0],
        help="what the agent may see: the conversations of the project that it works in, or of all; default: project",
    )
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="only show")


def run(options: Namespace, console: Console) -> int:
    """Connect or disconnect an agent; 1 if it is not installed or nobody agreed."""
    from retold.extras import require
    from retold.maintenance.connect import find_agent_homes, plan_connection, plan_disconnection
    from retold.maintenance.invocation import make_tool_server
    from retold.maintenance.timers.machine import Machine

    machine = Machine(os.environ, sys.platform)
    if options.remove:
        work = plan_disconnection(options.agent, machine)
        code = _apply(work, machine, options, console)
        if code == 0 and not options.dry_run:
            _print_removed(work, console)
        return code
    if not find_agent_homes(options.agent, machine):
        console.notice(
            f"retold: {options.agent} is not installed: it has no folder of its own here yet; run it once"
        )
        return 1
    require("mcp")
    started = make_tool_server(os.environ, options.scope, __version__)
    work = plan_connection(options.agent, machine, started)
    code = _apply(work, machine, options, console)
    if code == 0 and not options.dry_run:
        _sync(console)
        _print_next_steps(machine, options, console)
    return code


def _apply(work: ConnectWork, machine: Machine, options: Namespace, console: Console) -> int:
    """Show the changes, ask, and make them; return the exit code."""
    from retold.cli.console import confirm
    from retold.maintenance.connect import apply_work
    from retold.maintenance.file_changes import diff_lines

    if not work.changes:
        state = "not connected" if options.remove else "connected"
        console.notice(f"retold: nothing to do: {work.agent} is {state}")
        return 0
    for change in work.changes:
        console.write_lines(diff_lines(change))
    console.out.flush()
    if options.dry_run:
        console.notice("retold: nothing was changed")
        return 0
    if not confirm(console, "Make these changes?", yes=options.yes):
        return 1
    backups = apply_work(work, machine)
    for change in work.changes:
        what = "removed" if change.after is None else "written" if change.before is None else "changed"
        kept = f"; as it was, it is kept in {backups[change.path]}" if change.path in backups else ""
        console.notice(f"retold: {what} {change.path}{kept}")
    return 0


def _sync(console: Console) -> None:
    """Sync, so that the agent finds conversations at once."""
    from retold.archive.store import archive_exists
    from retold.cli.progress import format_coverage, run_sync
    from retold.config import retold_home

    if not archive_exists(retold_home(os.environ)):
        console.notice("retold: no archive yet: reading what your agents have kept")
    console.notice(format_coverage(run_sync(console)))


def _print_next_steps(machine: Machine, options: Namespace, console: Console) -> None:
    """Print how to try it, what else it needs, and how to undo it."""
    from retold.agents.registry import AGENTS
    from retold.maintenance.connect import connect_plans

    plan = next(connect_plans(options.agent, machine, None))
    program = AGENTS[options.agent].PROGRAM
    console.notice(
        f"retold: try it: start `{program}` again in a project, and type `{plan.recall} what did we do last week?`, or just ask"
    )
    if plan.is_trust_needed:
        console.notice(
            f"retold: in a folder that you have not told {options.agent} to trust, it starts neither tools nor hooks"
        )
    seen = "the project that it is started in" if options.scope == SCOPES[0] else "all projects"
    console.notice(
        f"retold: {options.agent} sees the conversations of {seen}, without secrets that retold knows"
    )
    console.notice(f"retold: undo it: `retold connect {options.agent} --remove`")


def _print_removed(work: ConnectWork, console: Console) -> None:
    if work.has_hook:
        console.notice(
            f"retold: {work.agent} no longer has its sessions archived at their end: `retold keep --install` does that alone"
        )
