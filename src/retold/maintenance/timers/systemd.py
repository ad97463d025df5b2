"""The systemd timer: two units of the user."""

import contextlib
import os
from collections.abc import Sequence

from retold.archive.database import RetoldError
from retold.maintenance.file_changes import FileChangePlan, apply_changes, read_content, remove_folders
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
    """Return whether systemd runs for this user: in a container it often does not."""
    return machine.platform == "linux" and machine.run("systemctl", "--user", "show-environment").code == 0


def is_installed(machine: Machine) -> bool:
    """Return whether one of our files exists."""
    return any(os.path.lexists(path) for path in (*_paths(machine), _link(machine)))


def is_enabled(machine: Machine) -> bool:
    """Return whether the timer is enabled."""
    return is_installed(machine) and _systemctl(machine, "is-enabled", f"{UNIT}.timer") is None


def changes(machine: Machine, words: Sequence[str] | None) -> list[FileChangePlan]:
    """Return the changes of the two units."""
    service = None if words is None else _SERVICE.format(line=" ".join(map(quote, words))).encode()
    timer = None if words is None else _TIMER.encode()
    return [
        FileChangePlan(path, read_content(path), after)
        for path, after in zip(_paths(machine), (service, timer), strict=True)
    ]


def install(machine: Machine, changes: Sequence[FileChangePlan]) -> list[str]:
    """Write the units and enable the timer."""
    folders = apply_changes(changes)
    why = _systemctl(machine, "daemon-reload") or _systemctl(machine, "enable", "--now", f"{UNIT}.timer")
    if why is None:
        return folders
    apply_changes([FileChangePlan(change.path, change.after, change.before) for change in changes])
    remove_folders(folders)
    _systemctl(machine, "daemon-reload")
    raise RetoldError(why)


def remove(machine: Machine, changes: Sequence[FileChangePlan]) -> None:
    """Disable the timer and remove the units, even if systemd cannot be reached."""
    _systemctl(machine, "disable", "--now", f"{UNIT}.timer")
    apply_changes(changes)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_link(machine))
    remove_folders([os.path.dirname(_link(machine))])
    _systemctl(machine, "daemon-reload")


def quote(word: str) -> str:
    """Return a word quoted for a command line in a unit of systemd."""
    escaped = (
        word.replace("\\", "\\\\")
        .replace('"', '\\"')
        .replace("%", "%%")
        .replace("$", "$$")
        .replace("\n", "\\n")
    )
    return f'"{escaped}"'


def _systemctl(machine: Machine, *words: str) -> str | None:
    """Run systemctl for the user; return its error, or None."""
    ran = machine.run("systemctl", "--user", *words)
    return None if ran.code == 0 else ran.error


def _folder(machine: Machine) -> str:
    config = machine.env.get("XDG_CONFIG_HOME") or os.path.join(machine.user_folder, ".config")
    return os.path.join(config, "systemd", "user")


def _paths(machine: Machine) -> tuple[str, str]:
    folder = _folder(machine)
    return os.path.join(folder, f"{UNIT}.service"), os.path.join(folder, f"{UNIT}.timer")


def _link(machine: Machine) -> str:
    """Return the link that `systemctl enable` makes."""
    return os.path.join(_folder(machine), "timers.target.wants", f"{UNIT}.timer")
