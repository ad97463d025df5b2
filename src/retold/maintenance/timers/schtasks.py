"""The timer of Windows: a scheduled task. Written from Microsoft's description of `schtasks`; not run."""

import subprocess
from collections.abc import Sequence
from xml.sax.saxutils import escape

from retold.archive.database import RetoldError
from retold.maintenance.file_changes import FileChangePlan
from retold.maintenance.timers.machine import MINUTES, Machine

NAME = "scheduled task"
TASK = "retold-sync"


def is_usable(machine: Machine) -> bool:
    """Return whether this is Windows."""
    return machine.platform == "win32" and machine.has("schtasks")


def is_installed(machine: Machine) -> bool:
    """Return whether our task exists."""
    return is_usable(machine) and machine.run("schtasks", "/Query", "/TN", TASK).code == 0


is_enabled = is_installed


def changes(machine: Machine, words: Sequence[str] | None) -> list[FileChangePlan]:
    """Return the change of the task as a command line; the command of another task is not known."""
    after = None if words is None else subprocess.list2cmdline(words).encode()
    ran = machine.run("schtasks", "/Query", "/TN", TASK, "/XML")
    task = ran.out.replace(b"\0", b"").decode(errors="replace")
    is_same = words is not None and all(escape(word) in task for word in words)
    before = None if ran.code else after if is_same else b"(another command)"
    return [FileChangePlan(f"scheduled task {TASK}", before, after)]


def install(machine: Machine, changes: Sequence[FileChangePlan]) -> list[str]:
    """Create the task, or replace an older one."""
    for change in changes:
        line = (change.after or b"").decode()
        every = ("/SC", "MINUTE", "/MO", str(MINUTES))
        ran = machine.run("schtasks", "/Create", "/F", "/TN", TASK, *every, "/TR", line)
        if ran.code:
            raise RetoldError(ran.error)
    return []


def remove(machine: Machine, changes: Sequence[FileChangePlan]) -> None:  # noqa: ARG001 - as every timer has it
    """Delete the task."""
    ran = machine.run("schtasks", "/Delete", "/F", "/TN", TASK)
    if ran.code:
        raise RetoldError(ran.error)
