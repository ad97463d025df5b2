"""What somebody is looking for, as it stands in the address of the list: so that it can be kept and come back to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date

import msgspec

from retold.archive.store import Store
from retold.export.text.table import project_names
from retold.projects.matching import last_name
from retold.reports.selection import Choices, Period, ReportFilters, by_name, choices, chosen, narrowed
from retold.search import dates
from retold.search.facets import DATES, conditions_of
from retold.search.filters import FILTERS, UnknownChoice, choice_of
from retold.search.pages import usual_spans
from retold.search.report_query import UNKNOWN, ReportQuery
from retold.web.page import PageRequest
from retold.web.templating import address

LONGEST = 400
"""Letters of a query: more are no question any more."""
MODES = {"": "Words", "letters": "Letters anywhere", "regex": "Regular expression"}
ORDERS = {"": "Best first", "newest": "Newest first"}
_FAR = 100_000
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


class ListUrl(msgspec.Struct, frozen=True):
    """A query, how it is meant, and by what the list is narrowed down."""

    text: str
    mode: str
    order: str
    filters: Mapping[str, str]
    first: int
    notes: tuple[str, ...] = ()
    """What in the address could not be understood."""

    @property
    def is_scan(self) -> bool:
        """Whether all text has to be gone through."""
        return bool(self.text) and bool(self.mode)

    @property
    def span(self) -> dict[str, str]:
        """The filters of time alone."""
        return {name: value for name, value in self.filters.items() if name in DATES}

    @property
    def days(self) -> dict[str, str]:
        """From which day to which, where whole days were chosen."""
        return {
            name: self.filters.get(name, "") for name in DATES if _DAY.fullmatch(self.filters.get(name, ""))
        }

    @property
    def query(self) -> dict[str, str]:
        """All of it, as it stands in an address."""
        given = {"q": self.text, "mode": self.mode, "order": self.order}
        return {name: value for name, value in given.items() if value} | dict(self.filters)

    def address(self, **more: object) -> str:
        """Return where this is found, with something more."""
        return address("/", **(self.query | more))

    def with_filters(self, filters: Mapping[str, str]) -> str:
        """Return where the same is found with some filters; those of a time take each other's place."""
        kept = self._without(*DATES) if set(filters) & set(DATES) else self
        return address("/", **(kept.query | dict(filters)))

    def without(self, *names: str) -> str:
        """Return where the same is found without some filters."""
        return self._without(*names).address()

    def chips(self) -> list[tuple[str, str, str]]:
        """Return what was chosen: its name, in words, and where the same is found without it; a usual time is one choice."""
        usual = [name for name, span in usual_spans(dates.today()).items() if span == self.span]
        told = [("when", name, self.without(*DATES)) for name in usual]
        names = [name for name in self.filters if not (usual and name in DATES)]
        return [*told, *((name, f"{name}: {self._told(name)}", self.without(name)) for name in names)]

    def _told(self, name: str) -> str:
        value = self.filters[name]
        return last_name(value) or value if name == "project" else value

    def cleared(self) -> str:
        """Return where the same is found without any filter."""
        return self.without(*FILTERS)

    def _without(self, *names: str) -> ListUrl:
        kept = {name: value for name, value in self.filters.items() if name not in names}
        return msgspec.structs.replace(self, filters=kept)


def session_address(key: str, seq: int = -1) -> str:
    """Return where a conversation is read, at a place in it; what tells of all of it has no place."""
    return address("/session", key=key) if seq < 0 else f"{address('/session', key=key, at=seq)}#e{seq}"


def as_sentence(message: str) -> str:
    """Return a message as a sentence of the page."""
    return f"{message[:1].upper()}{message[1:]}."


def looking_of(asked: PageRequest) -> ListUrl:
    """Return what an address asks for; what makes no sense in it is left out, and noted."""
    filters: dict[str, str] = {}
    notes: list[str] = []
    for name in FILTERS:
        value = asked.get(name).strip()[:LONGEST]
        if not value:
            continue
        try:
            conditions_of({name: value})
            filters[name] = choice_of(name, value)
        except UnknownChoice as unknown:
            notes.append(as_sentence(str(unknown)))
        except ValueError:
            notes.append(f"“{value}” is no date: try 2026-01-27, 7d or yesterday.")
    mode, order = asked.get("mode"), asked.get("order")
    return ListUrl(
        asked.get("q").strip()[:LONGEST],
        mode if mode in MODES else "",
        order if order in ORDERS else "",
        filters,
        asked.number("from", 0, _FAR),
        tuple(notes),
    )


PERIODS = {"7d": "7 days", "30d": "30 days", "month": "This month", "year": "Year", "all": "All"}
PAGE = 100
_MOST = 10_000
"""Pages: more nobody turns."""


class ReportUrl(msgspec.Struct, frozen=True):
    """A choice, and what there is to choose from."""

    narrowing: ReportFilters
    period: Period
    choices: Choices
    today: date

    def question(self, record: Store, period: Period | None = None) -> ReportQuery:
        """Return what is asked for; of another period, where one is told."""
        return narrowed(record, self.narrowing, self.choices, (period or self.period).span)

    def address(self, path: str, at: Period | None = None, /, **other: object) -> str:
        """Return where the same is asked of another page, but for what is told here."""
        at = at or self.period
        time: dict[str, object] = {"period": at.name} if at.name else {"since": at.since, "until": at.until}
        kept = {name: getattr(self.narrowing, name) for name in self.narrowing.__struct_fields__}
        return address(path, **{**kept, **time, **other})

    @property
    def ever(self) -> Period:
        """All time."""
        return by_name("all", self.today)

    @property
    def projects(self) -> list[tuple[str, str]]:
        """The projects that can be chosen: what each is known by, and what it is called."""
        names = project_names(key or UNKNOWN for key in self.choices.projects.values())
        return sorted(names.items(), key=lambda one: one[1].casefold())

    @property
    def words(self) -> str:
        """The period, as it stands in a sentence."""
        if self.period.since is None and self.period.until is None:
            return "all time"
        if self.period.since == self.period.until:
            return f"{self.period.since}"
        return f"{self.period.since or 'the beginning'} to {self.period.until or 'now'}"


def chosen_in(asked: PageRequest, record: Store, usual: str = "7d") -> ReportUrl:
    """Return what an address chooses."""
    today = dates.today()
    told = {name: asked.get(name) for name in ReportFilters.__struct_fields__}
    period = chosen(asked.get("period", usual), asked.get("since"), asked.get("until"), today)
    told["agent"] = told["agent"].lower()
    return ReportUrl(ReportFilters(**told), period, choices(record), today)


def page_of(asked: PageRequest) -> int:
    """Return which page is wanted, from 0."""
    return asked.number("page", 0, _MOST)


COOKIE = "retold-show"
TOOLS = ("none", "calls", "open")
_NOTHING = "nothing"


class Toggle(msgspec.Struct, frozen=True):
    """A thing that is shown or not."""

    name: str
    label: str
    key: str
    """On the keyboard."""


TOGGLES = (
    Toggle("thoughts", "Thoughts", "t"),
    Toggle("branches", "Taken back", "b"),
    Toggle("notices", "Context", "c"),
    Toggle("tokens", "Tokens", "u"),
)
_NAMES = tuple(toggle.name for toggle in TOGGLES)


class DisplayOptions(msgspec.Struct, frozen=True):
    """What is shown, and how much of tool calls."""

    names: frozenset[str] = frozenset(("branches",))
    tools: str = "calls"

    @property
    def text(self) -> str:
        """The choice, as an address and the cookie carry it."""
        chosen = [name for name in (*_NAMES, *TOOLS[1:]) if name in self.names or name == self.tools]
        return ".".join(chosen) or _NOTHING

    @property
    def classes(self) -> str:
        """The choice, as the style sheet knows it."""
        names = [name for name in _NAMES if name in self.names]
        return " ".join(f"show-{name}" for name in (*names, *(["calls"] if self.tools != "none" else [])))

    def flipped(self, name: str) -> DisplayOptions:
        """Return the choice with one thing the other way."""
        return DisplayOptions(self.names ^ {name}, self.tools)

    def with_tools(self, tools: str) -> DisplayOptions:
        """Return the choice with more or less of tool calls."""
        return DisplayOptions(self.names, tools)


def shows(asked: PageRequest) -> DisplayOptions:
    """Return what is to be shown: as the address says, else as it was chosen last."""
    told = asked.get("show") or asked.cookies.get(COOKIE, "")
    words = frozenset(told.split("."))
    if not words & {*_NAMES, *TOOLS, _NOTHING}:
        return DisplayOptions()
    return DisplayOptions(words & frozenset(_NAMES), next(_tools(words)))


def _tools(words: frozenset[str]) -> Iterator[str]:
    yield from (tools for tools in reversed(TOOLS) if tools in words)
    yield "none"
