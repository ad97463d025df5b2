"""How long Gemini CLI keeps sessions: `general.sessionRetention` in its settings.

Evidence: `sessionCleanup` and the settings' schema in the bundle of `@google/gemini-cli` 0.61.0; on by default since 0.33.
"""

import re
from datetime import timedelta
from typing import Any

import msgspec

from retold.agents.protocol import AgentHome
from retold.model.problem import Problem, problem
from retold.reading.disk import printable, read_settings

_PERIOD = re.compile(r"([0-9]{1,18})([dhwm])")
_UNITS = {"h": 3600, "d": 86_400, "w": 7 * 86_400, "m": 30 * 86_400}
_AGE, _LEAST = "30d", "1d"
_LONGEST = 100 * 365 * 86_400
"""Seconds; no calendar has to reckon with more."""


class Rules(msgspec.Struct, frozen=True):
    """What the settings of a home come to."""

    is_on: bool
    """Off, nothing is deleted, whatever a file is like."""
    max_age: timedelta | None = None
    max_count: int | None = None
    problems: tuple[Problem, ...] = ()


def rules(home: AgentHome) -> Rules:
    """Return the rules of a home; the usual ones where its settings cannot be understood.

    Settings of a project or of the whole machine, which may say otherwise, are not looked for.
    """
    path = home.path / "settings.json"
    found = read_settings(path, home.disk)
    if isinstance(found, Problem):
        return Rules(is_on=True, max_age=_period(_AGE), problems=(found,))
    general = found.get("general", {})
    told = general.get("sessionRetention", {}) if type(general) is dict else None
    if type(told) is not dict:
        odd = problem("unexpected-shape", "no object", printable(path), pointer="/general/sessionRetention")
        return Rules(is_on=True, max_age=_period(_AGE), problems=(odd,))
    return _rules({"enabled": True, "maxAge": _AGE, "minRetention": _LEAST} | told)


def _rules(told: dict[str, Any]) -> Rules:
    """Return what the CLI makes of it: settings that contradict themselves turn the deleting off."""
    off = Rules(is_on=False)
    age, told_count = told["maxAge"], told.get("maxCount")
    max_age = _period(age)
    least = _period(told["minRetention"]) or _period(_LEAST)
    count = told_count if isinstance(told_count, int | float) else None
    if not told["enabled"] or (age and (max_age is None or (least is not None and max_age < least))):
        return off
    if (count is not None and count < 1) or (not age and count is None):
        return off
    return Rules(is_on=True, max_age=max_age, max_count=None if count is None else int(count))


def _period(text: object) -> timedelta | None:
    """Return a period such as `30d`; a month has 30 days."""
    match = _PERIOD.fullmatch(text) if type(text) is str else None
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    return timedelta(seconds=min(seconds, _LONGEST)) if seconds else None
