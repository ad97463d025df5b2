"""`retold keep`: hooks in the agents and a timer that sync automatically."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.cli.console import Console
    from retold.maintenance.hooks import HookResult, HookWork
    from retold.maintenance.timers.machine import Machine

HOOKS = {
    "yes": "hook: yes",
    "no": "hook: no",
    "old": "hook: yes, but it calls another retold: `retold keep --install` renews it",
    "connected": "hook: yes, by what `retold connect` has set up",
    "stale": "hook: yes, but it calls another retold: `retold connect` renews it",
    "none": "no hook: the timer has to do",
}
"""A line for each `Hook.state`."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `keep`."""
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
    what.add_argument("--hook", action="store_true", help=SUPPRESS)  # agents call this
    what.add_argument("--now", action="store_true", help=SUPPRESS)  # hooks and timers call this
    parser.add_argument("--dry-run", action="store_true", help="only show")
    parser.add_argument("--with", dest="variables", action="append", default=[], help=SUPPRESS)


def run(options: Namespace, console: Console) -> int:
    """Install or remove hooks and timer, or print which are installed."""
    if options.hook or options.now:
        return _serve_call(options)
    from retold.maintenance.hooks import plan_installation, plan_removal
    from retold.maintenance.timers.machine import Machine

    machine = Machine(os.environ, sys.platform)
    if options.install:
        return _install(plan_installation(machine), machine, console, is_dry=options.dry_run)
    if options.remove:
        return _remove(plan_removal(machine), machine, console, is_dry=options.dry_run)
    if options.dry_run:
        console.notice("retold: --dry-run goes with --install or --remove")
        return 2
    _print_state(machine, console)
    return 0


def _serve_call(options: Namespace) -> int:
    """Serve the call of a hook or a timer; errors go to a log, because an agent must not fail by them."""
    from retold.config import retold_home
    from retold.maintenance.hooks import log_error, request_sync, run_requested_syncs
    from retold.maintenance.invocation import NOW, own_command, parse_environment

    for name, value in parse_environment(options.variables).items():
        os.environ.setdefault(name, value)
    try:
        if options.hook:
            request_sync([*own_command(), "keep", NOW], os.environ)
        else:
            run_requested_syncs(os.environ)
    except Exception as error:  # noqa: BLE001 - the agent must go on
        log_error(retold_home(os.environ), error)
    return 0


def _print_state(machine: Machine, console: Console) -> None:
    from retold.maintenance.hooks import find_hooks, timer_status

    for hook in find_hooks(machine):
        if hook.home is None:
            console.write_line(f"{hook.agent:8}not installed")
        else:
            state = HOOKS.get(hook.state, f"hook: not known: {hook.state}")
            console.write_line(f"{hook.agent:8}{state}  ({hook.home})")
    timer = timer_status(machine)
    kind = timer.name or "this machine has neither systemd for users, launchd, cron nor scheduled tasks"
    console.write_line(f"{'timer':8}{'yes' if timer.is_enabled else 'no'}  ({kind})")


def _install(work: HookWork, machine: Machine, console: Console, *, is_dry: bool) -> int:
    from retold.maintenance.hooks import find_hooks, install, timer_status

    for hook in find_hooks(machine):
        if hook.home is None:
            console.notice(f"retold: {hook.agent} is not installed: skipped")
        elif hook.state == "none":
            console.notice(f"retold: {hook.agent} has no hook that is safe to add: the timer has to do")
    if timer_status(machine).name is None:
        console.notice(
            "retold: no timer: neither systemd for users, launchd, cron nor scheduled tasks are to be had here"
        )
    if not work.is_needed:
        console.notice("retold: nothing to do: all is installed")
    elif _show(work, console, is_dry=is_dry):
        _print_result(install(work, machine), console, "installed")
        _sync_and_clean(console)
    return 0


def _remove(work: HookWork, machine: Machine, console: Console, *, is_dry: bool) -> int:
    from retold.maintenance.hooks import remove

    if not work.is_needed:
        console.notice("retold: nothing to do: nothing is installed")
    elif _show(work, console, is_dry=is_dry):
        _print_result(remove(work, machine), console, "removed")
    return 0


def _show(work: HookWork, console: Console, *, is_dry: bool) -> bool:
    """Print every change; return whether to make it."""
    from retold.maintenance.file_changes import diff_lines

    for change in (*work.settings, *(one for timer in work.timers for one in timer.changes)):
        console.write_lines(diff_lines(change))
    console.out.flush()
    if is_dry:
        console.notice("retold: nothing was changed")
    return not is_dry


def _print_result(result: HookResult, console: Console, verb: str) -> None:
    for path, backup in result.backups.items():
        console.notice(f"retold: {path} was changed; as it was, it is kept in {backup}")
    for name in result.timers:
        console.notice(f"retold: {name} {verb}")
    for name, error in result.refused.items():
        console.notice(f"retold: {name} not {verb}: {error}")


def _sync_and_clean(console: Console) -> None:
    """Sync, so that the first hook has little to do, and remove existing ghosts."""
    from retold.archive.store import Store
    from retold.cli.progress import format_coverage, run_sync
    from retold.config import retold_home
    from retold.maintenance.restore import find_own_homes, remove_ghosts

    console.notice(format_coverage(run_sync(console)))
    with Store(retold_home(os.environ)) as record:
        remove_ghosts(record, find_own_homes(os.environ))
