"""Timers of the operating system that call retold, one module for each kind."""

from retold.maintenance.timers import cron, launchd, schtasks, systemd
from retold.maintenance.timers.machine import Machine, Timer

TIMERS: tuple[Timer, ...] = (systemd, launchd, schtasks, cron)


def usable_timer(machine: Machine) -> Timer | None:
    """Return the first kind of timer that the machine has."""
    return next((timer for timer in TIMERS if timer.is_usable(machine)), None)
