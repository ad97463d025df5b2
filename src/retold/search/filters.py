"""Which sessions, and which of their messages, are meant."""

from __future__ import annotations

from retold.agents import NAMES
from retold.archive.queries.conditions import (
    FAILED,
    OF_MESSAGES,
    OF_SESSIONS,
    Condition,
    below,
    or_hashes,
    with_call,
)

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from retold.search.listing import ProjectPlace
    from retold.search.query import Field

    FindProject = Callable[[str], Iterable[str]]
    """Returns the hashes of the projects that a name means, as far as their names are not archived."""


ALIASES = {"since": "after", "until": "before"}
"""What options of the command line are called, and the fields of a query that mean the same."""
FILTERS = ("agent", "project", "model", "tool", "file", "role", "status", "tag", "home", "since", "until")
"""What lists and searches can be narrowed by."""
CHOICES = {
    "agent": NAMES,
    "is": (
        "error", "live", "rewound", "compacted", "superseded", "subagent", "fork", "lost", "checkpoint", "capture",
    ),
    "role": ("user", "assistant", "system"),
    "status": ("success", "failure", "interrupted"),
}  # fmt: skip
"""All values of some filters and fields; people may write them in any case."""
_KINDS = {
    "lost": "prompts-only", "subagent": "subagent", "fork": "fork", "checkpoint": "checkpoint", "capture": "capture",
}  # fmt: skip
_DATES = ("after", "before")


class Filters:
    """What must hold: of sessions, and of the messages in them that a search finds."""

    def __init__(
        self,
        fields: Iterable[Field] = (),
        *,
        find_project: FindProject | None = None,
    ) -> None:
        """Take the fields of a query; days are those of this machine's time zone.

        `find_project` is asked for each project that is named.
        """
        self._find_project = find_project
        self.sessions: list[Condition] = []
        self.messages: list[Condition] = []
        for field in fields:
            self.add(field.name, field.value, is_negated=field.is_negated)

    def add(self, name: str, value: str, *, is_negated: bool = False, in_messages: bool = True) -> None:
        """Add a condition; a list, which has no messages, asks of a whole session what a search asks of a message."""
        name = ALIASES.get(name, name)
        value = choice_of(name, value)
        of_message = self._of_message(name, value) if in_messages else None
        found = of_message or self._of_session(name, value)
        if name == "project" and self._find_project is not None and (hashes := self._find_project(value)):
            found = or_hashes(found, hashes)
        conditions = self.sessions if of_message is None else self.messages
        conditions.append(found.negated() if is_negated else found)

    def keep_within(self, folder: str) -> None:
        """Add that it took place in a folder, or below it."""
        self.sessions.append(below(folder))

    def keep_project(self, place: ProjectPlace) -> None:
        """Add that it took place in one project, and in no other that is called alike."""
        known_by = place.hash or place.root
        if known_by is None:
            from retold.archive.queries.reports import of_project

            self.sessions.append(of_project(next(iter(place.native_keys), None)))
        else:
            self.add("project", known_by, in_messages=False)

    @staticmethod
    def _of_message(name: str, value: str) -> Condition | None:
        if name == "is":
            if value in _KINDS:
                return None
            return Condition(FAILED) if value == "error" else Condition(OF_MESSAGES["fate"], value)
        if name == "tool":
            return with_call(value, in_message=True)
        return Condition(OF_MESSAGES[name], value) if name in OF_MESSAGES else None

    def _of_session(self, name: str, value: str) -> Condition:
        if name == "tool":
            return with_call(value, in_message=False)
        return Condition(OF_SESSIONS[_name(name)], self._value(name, value))

    def _value(self, name: str, value: str) -> str:
        if name in _DATES:
            return moment(name, value)
        return _KINDS[value] if name == "is" else value


class UnknownChoice(ValueError):  # noqa: N818 - it says what the value is
    """A value that a filter does not have."""


def choice_of(name: str, value: str) -> str:
    """Return the value of a filter in its right case; raises UnknownChoice for a value that it does not have."""
    choices = CHOICES.get(name)
    if choices is None:
        return value
    if value.lower() not in choices:
        raise UnknownChoice(f"no {name} is called {value}: write one of {', '.join(choices)}")
    return value.lower()


def _name(name: str) -> str:
    return "kind" if name == "is" else name


def moment(name: str, value: str) -> str:
    """Return the moment that a date means, as text that sorts as times do; raises ValueError for what is no date."""
    from retold.search.dates import now, parse_since, parse_until  # few lists are asked for by date

    at = (parse_since if name == "after" else parse_until)(value, now())
    return at.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
