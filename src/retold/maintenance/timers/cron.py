"""Lines in a crontab, between two marks."""

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
    """Tell whether there is a crontab that may be read."""
    return machine.platform != "win32" and _table(machine) is not None


def is_there(machine: Machine) -> bool:
    """Tell whether our lines are in it."""
    table = _table(machine)
    return table is not None and without_lines(table) != table


is_on = is_there


def changes(machine: Machine, words: Sequence[str] | None) -> list[FileChangePlan]:
    """Return the crontab as it is and as it is to be."""
    table = _table(machine) or ""
    after = without_lines(table) if words is None else with_lines(table, words)
    return [
        FileChangePlan(TABLE, *(text.encode(errors="surrogateescape") or None for text in (table, after)))
    ]


def install(machine: Machine, changes: Sequence[FileChangePlan]) -> list[str]:
    """Hand cron the new table; one without a line is removed."""
    for change in changes:
        ran = (
            machine.run("crontab", "-r")
            if change.after is None
            else machine.run("crontab", "-", told=change.after)
        )
        if ran.code:
            raise RetoldError(ran.why)
    return []


def remove(machine: Machine, changes: Sequence[FileChangePlan]) -> None:
    """Do the same."""
    install(machine, changes)


def with_lines(table: str, words: Sequence[str]) -> str:
    """Return a table with our lines at its end, and nowhere else."""
    table = without_lines(table)
    line = shlex.join(words).replace("%", "\\%")  # a bare one ends the command
    told = f"{BEGIN}\n*/{MINUTES} * * * * {line} >/dev/null 2>&1\n{END}\n"
    return f"{table}{'' if not table or table.endswith(chr(10)) else chr(10)}{told}"


def without_lines(table: str) -> str:
    """Return a table without our lines; all else as it stands."""
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
    """Return the crontab; an empty one where there is none, None where it cannot be read."""
    ran = machine.run("crontab", "-l")
    if ran.code:
        return "" if ran.code < NOT_RUN and _NONE in ran.why else None
    return ran.out.decode(errors="surrogateescape")
