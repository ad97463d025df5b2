"""`retold keep`: everything archived without being asked."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.cli.console import Console
    from retold.maintenance.hooks import Done, HookWork
    from retold.maintenance.timers.machine import Machine

HOOKS = {
    "yes": "hook: yes",
    "no": "hook: no",
    "old": "hook: yes, but it calls another retold: `retold keep --install` renews it",
    "connected": "hook: yes, by what `retold connect` has set up",
    "stale": "hook: yes, but it calls another retold: `retold connect` renews it",
    "none": "no hook: the timer has to do",
}


def arguments(parser: ArgumentParser) -> None:
    """Add what `keep` understands."""
    from argparse import SUPPRESS

    parser.description = (
        "Without an option: tell what is installed. The hooks bring the archive up to date after every turn and at the"
        " end of every session, and remove what would make the agent delete it; the timer does the same now and then."
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--install", action="store_true", help="show every change to settings and timers, then make it"
    )
    what.add_argument("--remove", action="store_true", help="the same the other way round: no trace is left")
    what.add_argument("--hook", action="store_true", help=SUPPRESS)  # what agents call
    what.add_argument("--now", action="store_true", help=SUPPRESS)  # what a hook starts, and what timers call
    parser.add_argument("--dry-run", action="store_true", help="only show")
    parser.add_argument("--with", dest="told", action="append", default=[], help=SUPPRESS)


def run(options: Namespace, console: Console) -> int:
    """Tell, install or remove."""
    if options.hook or options.now:
        return _served(options)
    from retold.maintenance.hooks import installation, removal
    from retold.maintenance.timers.machine import Machine

    machine = Machine(os.environ, sys.platform)
    if options.install:
        return _installed(installation(machine), machine, console, is_dry=options.dry_run)
    if options.remove:
        return _removed(removal(machine), machine, console, is_dry=options.dry_run)
    if options.dry_run:
        console.tell("retold: --dry-run goes with --install or --remove")
        return 2
    _tell_state(machine, console)
    return 0


def _served(options: Namespace) -> int:
    """Do what a hook or a timer has called for; an agent must never fail because of it."""
    from retold.config import retold_home
    from retold.maintenance.hooks import ask, log
    from retold.maintenance.hooks import run as run_errand
    from retold.maintenance.invocation import NOW, as_environment, own_command

    for name, value in as_environment(options.told).items():
        os.environ.setdefault(name, value)
    try:
        if options.hook:
            ask([*own_command(), "keep", NOW], os.environ)
        else:
            run_errand(os.environ)
    except Exception as error:  # noqa: BLE001 - nobody is there to hear of it, and the agent goes on
        log(retold_home(os.environ), error)
    return 0


def _tell_state(machine: Machine, console: Console) -> None:
    from retold.maintenance.hooks import hooks, timer

    for hook in hooks(machine):
        if hook.home is None:
            console.line(f"{hook.agent:8}not installed")
        else:
            console.line(
                f"{hook.agent:8}{HOOKS.get(hook.state, f'hook: not known: {hook.state}')}  ({hook.home})"
            )
    name, is_on = timer(machine)
    kind = name or "this machine has neither systemd for users, launchd, cron nor scheduled tasks"
    console.line(f"{'timer':8}{'yes' if is_on else 'no'}  ({kind})")


def _installed(work: HookWork, machine: Machine, console: Console, *, is_dry: bool) -> int:
    from retold.maintenance.hooks import carry_out_installation, hooks, timer

    for hook in hooks(machine):
        if hook.home is None:
            console.tell(f"retold: {hook.agent} is not installed: skipped")
        elif hook.state == "none":
            console.tell(f"retold: {hook.agent} has no hook that is safe to add: the timer has to do")
    if timer(machine)[0] is None:
        console.tell(
            "retold: no timer: neither systemd for users, launchd, cron nor scheduled tasks are to be had here"
        )
    if not work.is_any:
        console.tell("retold: nothing to do: all is installed")
        return 0
    _show(work, console)
    if is_dry:
        console.tell("retold: nothing was changed")
        return 0
    _tell_done(carry_out_installation(work, machine), console, "installed")
    _catch_up(console)
    return 0


def _removed(work: HookWork, machine: Machine, console: Console, *, is_dry: bool) -> int:
    from retold.maintenance.hooks import carry_out_removal

    if not work.is_any:
        console.tell("retold: nothing to do: nothing is installed")
        return 0
    _show(work, console)
    if is_dry:
        console.tell("retold: nothing was changed")
        return 0
    _tell_done(carry_out_removal(work, machine), console, "removed")
    return 0


def _show(work: HookWork, console: Console) -> None:
    """Print every change before it is made."""
    from retold.maintenance.file_changes import difference

    for change in (*work.settings, *(one for _, changes in work.timers for one in changes)):
        console.lines(difference(change))
    console.out.flush()


def _tell_done(done: Done, console: Console, what: str) -> None:
    for path, backup in done.backups:
        console.tell(f"retold: {path} was changed; as it was, it is kept in {backup}")
    for name in done.timers:
        console.tell(f"retold: {name} {what}")
    for name, why in done.refused:
        console.tell(f"retold: {name} not {what}: {why}")


def _catch_up(console: Console) -> None:
    """Archive what there is, so that a hook has little to do, and remove the ghosts that are there already."""
    from retold.archive.store import Store
    from retold.cli.progress import coverage_line, run_sync
    from retold.config import retold_home
    from retold.maintenance.restore import own_homes, remove_ghosts

    console.tell(coverage_line(run_sync(console)))
    with Store(retold_home(os.environ)) as record:
        remove_ghosts(record, own_homes(os.environ))
