"""A timer of systemd, for one user."""

import contextlib
import os
from collections.abc import Sequence

from retold.archive.database import RetoldError
from retold.maintenance.file_changes import FileChangePlan, carry_out, content, remove_folders
from retold.maintenance.timers.machine import MINUTES, Machine

NAME = "systemd user timer"
UNIT = "retold-sync"
_SERVICE = """\
[Unit]
Description=Keep what coding agents wrote (retold)

[Service]
Type=oneshot
Nice=10
ExecStart={line}
"""
_TIMER = f"""\
[Unit]
Description=Keep what coding agents wrote, every {MINUTES} minutes (retold)

[Timer]
OnCalendar=*:0/{MINUTES}
RandomizedDelaySec=60
Persistent=true

[Install]
WantedBy=timers.target
"""


def is_usable(machine: Machine) -> bool:
    """Tell whether there is a systemd for this user: in a container there often is none."""
    return machine.platform == "linux" and machine.run("systemctl", "--user", "show-environment").code == 0


def is_there(machine: Machine) -> bool:
    """Tell whether one of our files is there."""
    return any(os.path.lexists(path) for path in (*_paths(machine), _link(machine)))


def is_on(machine: Machine) -> bool:
    """Tell whether the timer is enabled."""
    return is_there(machine) and _systemctl(machine, "is-enabled", f"{UNIT}.timer") is None


def changes(machine: Machine, words: Sequence[str] | None) -> list[FileChangePlan]:
    """Return the two units."""
    service = None if words is None else _SERVICE.format(line=" ".join(map(quoted, words))).encode()
    timer = None if words is None else _TIMER.encode()
    return [
        FileChangePlan(path, content(path), after)
        for path, after in zip(_paths(machine), (service, timer), strict=True)
    ]


def install(machine: Machine, changes: Sequence[FileChangePlan]) -> list[str]:
    """Write the units and switch the timer on."""
    folders = carry_out(changes)
    why = _systemctl(machine, "daemon-reload") or _systemctl(machine, "enable", "--now", f"{UNIT}.timer")
    if why is None:
        return folders
    carry_out([FileChangePlan(change.path, change.after, change.before) for change in changes])
    remove_folders(folders)
    _systemctl(machine, "daemon-reload")
    raise RetoldError(why)


def remove(machine: Machine, changes: Sequence[FileChangePlan]) -> None:
    """Switch the timer off and remove the units; what systemd cannot be asked to remove goes all the same."""
    _systemctl(machine, "disable", "--now", f"{UNIT}.timer")
    carry_out(changes)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_link(machine))
    remove_folders([os.path.dirname(_link(machine))])
    _systemctl(machine, "daemon-reload")


def quoted(word: str) -> str:
    """Return a word as systemd reads it in a command line."""
    told = (
        word.replace("\\", "\\\\")
        .replace('"', '\\"')
        .replace("%", "%%")
        .replace("$", "$$")
        .replace("\n", "\\n")
    )
    return f'"{told}"'


def _systemctl(machine: Machine, *words: str) -> str | None:
    """Ask systemd for something; return why it was not done."""
    ran = machine.run("systemctl", "--user", *words)
    return None if ran.code == 0 else ran.why


def _folder(machine: Machine) -> str:
    config = machine.env.get("XDG_CONFIG_HOME") or os.path.join(machine.user, ".config")
    return os.path.join(config, "systemd", "user")


def _paths(machine: Machine) -> tuple[str, str]:
    folder = _folder(machine)
    return os.path.join(folder, f"{UNIT}.service"), os.path.join(folder, f"{UNIT}.timer")


def _link(machine: Machine) -> str:
    """Return what `enable` makes."""
    return os.path.join(_folder(machine), "timers.target.wants", f"{UNIT}.timer")
