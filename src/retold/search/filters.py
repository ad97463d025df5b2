"""Filters: conditions on sessions and messages, from options and from the fields of a query."""

from __future__ import annotations

from retold.agents import NAMES
from retold.archive.queries.listing import (
    HAS_FAILURE,
    OF_MESSAGES,
    OF_SESSIONS,
    Condition,
    call_condition,
    folder_condition,
    or_hashes_condition,
)

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from retold.search.listing import ProjectSummary
    from retold.search.query import Field

    FindProject = Callable[[str], Iterable[str]]
    """Returns the hashes of projects with a name that the archive does not know."""


ALIASES = {"since": "after", "until": "before"}
"""Names of options, and of the fields of a query with the same meaning."""
FILTERS = ("agent", "project", "model", "tool", "file", "role", "status", "tag", "home", "since", "until")
"""The filters of lists and searches."""
CHOICES = {
    "agent": NAMES,
    "is": (
        "error", "live", "rewound", "compacted", "superseded", "subagent", "fork", "lost", "checkpoint", "capture",
    ),
    "role": ("user", "assistant", "system"),
    "status": ("success", "failure", "interrupted"),
}  # fmt: skip
"""The values of some filters and fields, in any case."""
_KINDS = {
    "lost": "prompts-only", "subagent": "subagent", "fork": "fork", "checkpoint": "checkpoint", "capture": "capture",
}  # fmt: skip
_DATES = ("after", "before")


class Filters:
    """Conditions on sessions, and on the messages that a search finds."""

    def __init__(self, fields: Iterable[Field] = (), *, find_project: FindProject | None = None) -> None:
        """Take the fields of a query; `find_project` is called for each project."""
        self._find_project = find_project
        self.sessions: list[Condition] = []
        self.messages: list[Condition] = []
        for field in fields:
            self.add(field.name, field.value, is_negated=field.is_negated)

    def add(self, name: str, value: str, *, is_negated: bool = False, in_messages: bool = True) -> None:
        """Add a filter. With `in_messages`, some filters are conditions on messages instead of whole sessions."""
        name = ALIASES.get(name, name)
        value = parse_choice(name, value)
        of_message = self._of_message(name, value) if in_messages else None
        condition = of_message or self._of_session(name, value)
        if name == "project" and self._find_project is not None and (hashes := self._find_project(value)):
            condition = or_hashes_condition(condition, hashes)
        conditions = self.sessions if of_message is None else self.messages
        conditions.append(condition.negated() if is_negated else condition)

    def add_folder(self, folder: str) -> None:
        """Add the condition that a session took place in a folder or below it."""
        self.sessions.append(folder_condition(folder))

    def add_project(self, project: ProjectSummary) -> None:
        """Add the condition that a session took place in exactly this project."""
        identity = project.hash or project.root
        if identity is None:
            from retold.archive.queries.reports import project_condition

            self.sessions.append(project_condition(next(iter(project.native_keys), None)))
        else:
            self.add("project", identity, in_messages=False)

    @staticmethod
    def _of_message(name: str, value: str) -> Condition | None:
        if name == "is":
            if value in _KINDS:
                return None
            return Condition(HAS_FAILURE) if value == "error" else Condition(OF_MESSAGES["fate"], value)
        if name == "tool":
            return call_condition(value, in_message=True)
        return Condition(OF_MESSAGES[name], value) if name in OF_MESSAGES else None

    def _of_session(self, name: str, value: str) -> Condition:
        if name == "tool":
            return call_condition(value, in_message=False)
        return Condition(OF_SESSIONS["kind" if name == "is" else name], self._value(name, value))

    def _value(self, name: str, value: str) -> str:
        if name in _DATES:
            return parse_moment(name, value)
        return _KINDS[value] if name == "is" else value


class UnknownChoice(ValueError):  # noqa: N818 - a mistake of the user
    """A value that a filter does not have."""


def parse_choice(name: str, value: str) -> str:
    """Return the value of a filter in its own case; raise UnknownChoice for a value that it does not have."""
    choices = CHOICES.get(name)
    if choices is None:
        return value
    if value.lower() not in choices:
        raise UnknownChoice(f"no {name} is called {value}: write one of {', '.join(choices)}")
    return value.lower()


def parse_moment(name: str, value: str) -> str:
    """Return the moment of a date as a text that sorts like times; raise ValueError for anything else."""
    from retold.search.dates import now, parse_since, parse_until  # few lists have a date

    at = (parse_since if name == "after" else parse_until)(value, now())
    return at.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
