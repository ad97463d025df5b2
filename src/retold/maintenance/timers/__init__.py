"""Timers of the system, one module for each kind: whichever the machine has calls retold now and then."""

from retold.maintenance.timers import cron, launchd, schtasks, systemd
from retold.maintenance.timers.machine import Machine, Timer

TIMERS: tuple[Timer, ...] = (systemd, launchd, schtasks, cron)


def usable_timer(machine: Machine) -> Timer | None:
    """Return the first that the machine has."""
    return next((timer for timer in TIMERS if timer.is_usable(machine)), None)
