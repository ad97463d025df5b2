"""The launchd timer: a launch agent, on macOS."""

import os
import plistlib
from collections.abc import Sequence

from retold.archive.database import RetoldError
from retold.maintenance.file_changes import FileChangePlan, apply_changes, read_content, remove_folders
from retold.maintenance.timers.machine import MINUTES, Machine

NAME = "launch agent"
LABEL = "retold.sync"


def is_usable(machine: Machine) -> bool:
    """Return whether this is a Mac."""
    return machine.platform == "darwin" and machine.has("launchctl")


def is_installed(machine: Machine) -> bool:
    """Return whether our file exists."""
    return os.path.lexists(_path(machine))


def is_enabled(machine: Machine) -> bool:
    """Return whether launchd has loaded our file."""
    return is_installed(machine) and machine.run("launchctl", "list", LABEL).code == 0


def changes(machine: Machine, words: Sequence[str] | None) -> list[FileChangePlan]:
    """Return the change of our file."""
    settings = {
        "Label": LABEL,
        "ProgramArguments": list(words or ()),
        "StartInterval": MINUTES * 60,
        "RunAtLoad": True,
        "ProcessType": "Background",
    }
    path = _path(machine)
    after = None if words is None else plistlib.dumps(settings, sort_keys=False)
    return [FileChangePlan(path, read_content(path), after)]


def install(machine: Machine, changes: Sequence[FileChangePlan]) -> list[str]:
    """Write the file and load it."""
    folders = apply_changes(changes)
    machine.run("launchctl", "bootout", f"{_domain()}/{LABEL}")
    ran = machine.run("launchctl", "bootstrap", _domain(), _path(machine))
    if ran.code == 0 or machine.run("launchctl", "load", "-w", _path(machine)).code == 0:
        return folders
    apply_changes([FileChangePlan(change.path, change.after, change.before) for change in changes])
    remove_folders(folders)
    raise RetoldError(ran.error)


def remove(machine: Machine, changes: Sequence[FileChangePlan]) -> None:
    """Unload the file and remove it."""
    if machine.run("launchctl", "bootout", f"{_domain()}/{LABEL}").code:
        machine.run("launchctl", "unload", "-w", _path(machine))
    apply_changes(changes)


def _domain() -> str:
    return f"gui/{os.getuid() if hasattr(os, 'getuid') else 0}"


def _path(machine: Machine) -> str:
    return os.path.join(machine.user_folder, "Library", "LaunchAgents", f"{LABEL}.plist")
