"""`retold connect`: an agent that can ask what was said before."""

from __future__ import annotations

import os
import sys

from retold import __version__
from retold.cli.commands.mcp import SCOPES

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.cli.console import Console
    from retold.maintenance.connect import ConnectWork
    from retold.maintenance.timers.machine import Machine


def arguments(parser: ArgumentParser) -> None:
    """Add what `connect` understands."""
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
    """Connect or disconnect; 1 if the agent is not there, or nobody agreed."""
    from retold.maintenance.connect import connection, disconnection, homes_of
    from retold.maintenance.invocation import server
    from retold.maintenance.timers.machine import Machine

    machine = Machine(os.environ, sys.platform)
    if options.remove:
        work = disconnection(options.agent, machine)
        code = _done(work, machine, options, console)
        if code == 0 and not options.dry_run:
            _tell_removed(work, console)
        return code
    if not homes_of(options.agent, machine):
        console.tell(
            f"retold: {options.agent} is not installed: it has no folder of its own here yet; run it once"
        )
        return 1
    started = server(os.environ, options.scope, __version__)
    work = connection(options.agent, machine, started)
    code = _done(work, machine, options, console)
    if code == 0 and not options.dry_run:
        _catch_up(console)
        _tell_connected(machine, options, console)
    return code


def _done(work: ConnectWork, machine: Machine, options: Namespace, console: Console) -> int:
    """Show what is to be done, and do it if that is wanted."""
    from retold.cli.console import is_confirmed
    from retold.maintenance.connect import carry_out_work
    from retold.maintenance.file_changes import difference

    if not work.changes:
        told = "not connected" if options.remove else "connected"
        console.tell(f"retold: nothing to do: {work.agent} is {told}")
        return 0
    for change in work.changes:
        console.lines(difference(change))
    console.out.flush()
    if options.dry_run:
        console.tell("retold: nothing was changed")
        return 0
    if not is_confirmed(console, "Make these changes?", yes=options.yes):
        return 1
    backups = dict(carry_out_work(work, machine))
    for change in work.changes:
        what = "removed" if change.after is None else "written" if change.before is None else "changed"
        kept = f"; as it was, it is kept in {backups[change.path]}" if change.path in backups else ""
        console.tell(f"retold: {what} {change.path}{kept}")
    return 0


def _catch_up(console: Console) -> None:
    """Archive what there is, so that there is something to ask for."""
    from retold.archive.store import exists
    from retold.cli.progress import coverage_line, run_sync
    from retold.config import retold_home

    if not exists(retold_home(os.environ)):
        console.tell("retold: no archive yet: reading what your agents have kept")
    console.tell(coverage_line(run_sync(console)))


def _tell_connected(machine: Machine, options: Namespace, console: Console) -> None:
    """Tell how to try it, what else it needs, and how to undo it."""
    from retold.agents.registry import AGENTS
    from retold.maintenance.connect import plans

    plan = next(plans(options.agent, machine, None))
    program = AGENTS[options.agent].PROGRAM
    console.tell(
        f"retold: try it: start `{program}` anew in a project, and type `{plan.recall} what did we do last week?`, or just ask"
    )
    if plan.is_trust_needed:
        console.tell(
            f"retold: in a folder that you have not told {options.agent} to trust, it starts neither tools nor hooks"
        )
    seen = "the project that it is started in" if options.scope == SCOPES[0] else "all projects"
    console.tell(
        f"retold: {options.agent} sees the conversations of {seen}, without secrets that retold knows"
    )
    console.tell(f"retold: undo it: `retold connect {options.agent} --remove`")


def _tell_removed(work: ConnectWork, console: Console) -> None:
    if work.has_hook:
        console.tell(
            f"retold: {work.agent} no longer has its sessions archived at their end: `retold keep --install` does that alone"
        )
