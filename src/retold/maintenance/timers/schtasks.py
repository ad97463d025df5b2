"""A scheduled task, on Windows. Written after Microsoft's description of `schtasks`; not run."""

import subprocess
from collections.abc import Sequence
from xml.sax.saxutils import escape

from retold.archive.database import RetoldError
from retold.maintenance.file_changes import FileChangePlan
from retold.maintenance.timers.machine import MINUTES, Machine

NAME = "scheduled task"
TASK = "retold-sync"


def is_usable(machine: Machine) -> bool:
    """Tell whether this is Windows."""
    return machine.platform == "win32" and machine.has("schtasks")


def is_there(machine: Machine) -> bool:
    """Tell whether our task is among the others."""
    return is_usable(machine) and machine.run("schtasks", "/Query", "/TN", TASK).code == 0


is_on = is_there


def changes(machine: Machine, words: Sequence[str] | None) -> list[FileChangePlan]:
    """Return the task as a line; of another than the wanted one, it is only known that it is there."""
    after = None if words is None else subprocess.list2cmdline(words).encode()
    ran = machine.run("schtasks", "/Query", "/TN", TASK, "/XML")
    told = ran.out.replace(b"\0", b"").decode(errors="replace")
    is_wanted = words is not None and all(escape(word) in told for word in words)
    before = None if ran.code else after if is_wanted else b"(another command)"
    return [FileChangePlan(f"scheduled task {TASK}", before, after)]


def install(machine: Machine, changes: Sequence[FileChangePlan]) -> list[str]:
    """Have the task made, in place of an older one."""
    for change in changes:
        line = (change.after or b"").decode()
        every = ("/SC", "MINUTE", "/MO", str(MINUTES))
        ran = machine.run("schtasks", "/Create", "/F", "/TN", TASK, *every, "/TR", line)
        if ran.code:
            raise RetoldError(ran.why)
    return []


def remove(machine: Machine, changes: Sequence[FileChangePlan]) -> None:  # noqa: ARG001 - as every timer has it
    """Have the task removed."""
    ran = machine.run("schtasks", "/Delete", "/F", "/TN", TASK)
    if ran.code:
        raise RetoldError(ran.why)
