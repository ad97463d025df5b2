"""The cron timer: lines in the crontab, between two marks."""

import shlex
from collections.abc import Sequence

from retold.archive.database import RetoldError
from retold.maintenance.file_changes import FileChangePlan
from retold.maintenance.timers.machine import MINUTES, NOT_RUN, Machine

NAME = "cron"
TABLE = "crontab"
BEGIN, END = "# retold keep: begin", "# retold keep: end"
_NONE = "no crontab"


def is_usable(machine: Machine) -> bool:
    """Return whether the crontab can be read."""
    return machine.platform != "win32" and _table(machine) is not None


def is_installed(machine: Machine) -> bool:
    """Return whether our lines are in the crontab."""
    table = _table(machine)
    return table is not None and without_lines(table) != table


is_enabled = is_installed


def changes(machine: Machine, words: Sequence[str] | None) -> list[FileChangePlan]:
    """Return the change of the crontab."""
    table = _table(machine) or ""
    after = without_lines(table) if words is None else with_lines(table, words)
    return [
        FileChangePlan(TABLE, *(text.encode(errors="surrogateescape") or None for text in (table, after)))
    ]


def install(machine: Machine, changes: Sequence[FileChangePlan]) -> list[str]:
    """Install the new crontab; remove it if it is empty."""
    for change in changes:
        has_lines = change.after is not None
        ran = machine.run("crontab", "-" if has_lines else "-r", stdin=change.after or b"")
        if ran.code:
            raise RetoldError(ran.error)
    return []


def remove(machine: Machine, changes: Sequence[FileChangePlan]) -> None:
    """Install the crontab without our lines."""
    install(machine, changes)


def with_lines(table: str, words: Sequence[str]) -> str:
    """Return a crontab with our lines at its end, and nowhere else."""
    table = without_lines(table)
    line = shlex.join(words).replace("%", "\\%")  # a bare one ends the command
    lines = f"{BEGIN}\n*/{MINUTES} * * * * {line} >/dev/null 2>&1\n{END}\n"
    return f"{table}{'' if not table or table.endswith(chr(10)) else chr(10)}{lines}"


def without_lines(table: str) -> str:
    """Return a crontab without our lines, and otherwise unchanged."""
    kept, is_ours = [], False
    lines = table.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if line.rstrip() == BEGIN and any(later.rstrip() == END for later in lines[number:]):
            is_ours = True
        if not is_ours:
            kept.append(line)
        if line.rstrip() == END:
            is_ours = False
    return "".join(kept)


def _table(machine: Machine) -> str | None:
    """Return the crontab: empty if there is none, None if it cannot be read."""
    ran = machine.run("crontab", "-l")
    if ran.code:
        return "" if ran.code < NOT_RUN and _NONE in ran.error else None
    return ran.out.decode(errors="surrogateescape")
