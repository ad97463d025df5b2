"""A launch agent, on macOS."""

import os
import plistlib
from collections.abc import Sequence

from retold.archive.database import RetoldError
from retold.maintenance.file_changes import FileChangePlan, carry_out, content, remove_folders
from retold.maintenance.timers.machine import MINUTES, Machine

NAME = "launch agent"
LABEL = "retold.sync"


def is_usable(machine: Machine) -> bool:
    """Tell whether this is a Mac."""
    return machine.platform == "darwin" and machine.has("launchctl")


def is_there(machine: Machine) -> bool:
    """Tell whether our file is there."""
    return os.path.lexists(_path(machine))


def is_on(machine: Machine) -> bool:
    """Tell whether launchd knows it."""
    return is_there(machine) and machine.run("launchctl", "list", LABEL).code == 0


def changes(machine: Machine, words: Sequence[str] | None) -> list[FileChangePlan]:
    """Return the one file."""
    told = {
        "Label": LABEL,
        "ProgramArguments": list(words or ()),
        "StartInterval": MINUTES * 60,
        "RunAtLoad": True,
        "ProcessType": "Background",
    }
    path = _path(machine)
    return [
        FileChangePlan(path, content(path), None if words is None else plistlib.dumps(told, sort_keys=False))
    ]


def install(machine: Machine, changes: Sequence[FileChangePlan]) -> list[str]:
    """Write the file and have it loaded."""
    folders = carry_out(changes)
    machine.run("launchctl", "bootout", f"{_domain()}/{LABEL}")
    ran = machine.run("launchctl", "bootstrap", _domain(), _path(machine))
    if ran.code == 0 or machine.run("launchctl", "load", "-w", _path(machine)).code == 0:
        return folders
    carry_out([FileChangePlan(change.path, change.after, change.before) for change in changes])
    remove_folders(folders)
    raise RetoldError(ran.why)


def remove(machine: Machine, changes: Sequence[FileChangePlan]) -> None:
    """Have it unloaded and remove the file."""
    if machine.run("launchctl", "bootout", f"{_domain()}/{LABEL}").code:
        machine.run("launchctl", "unload", "-w", _path(machine))
    carry_out(changes)


def _domain() -> str:
    return f"gui/{os.getuid() if hasattr(os, 'getuid') else 0}"


def _path(machine: Machine) -> str:
    return os.path.join(machine.user, "Library", "LaunchAgents", f"{LABEL}.plist")
