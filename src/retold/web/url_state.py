"""State that addresses carry: the query and filters of the list, the period and filters of a report, the display options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date

import msgspec

from retold.archive.store import Store
from retold.export.text.formatting import project_names
from retold.projects.matching import UNKNOWN, folder_name
from retold.reports.selection import (
    Period,
    ReportChoices,
    ReportFilters,
    load_choices,
    make_query,
    named_period,
    parse_period,
)
from retold.reports.stats import ReportQuery
from retold.search import dates
from retold.search.facets import DATES, filter_conditions
from retold.search.filters import FILTERS, UnknownChoice, parse_choice
from retold.search.pages import common_spans
from retold.web.templating import PageRequest, address

LONGEST = 400
"""Characters of a query, at most."""
MODES = {"": "Words", "letters": "Letters anywhere", "regex": "Regular expression"}
ORDERS = {"": "Best first", "newest": "Newest first"}
_FAR = 100_000
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


class ListUrl(msgspec.Struct, frozen=True):
    """The state of the list of sessions: query, mode, order and filters."""

    text: str
    mode: str
    order: str
    filters: Mapping[str, str]
    first: int
    notes: tuple[str, ...] = ()
    """Sentences about values that could not be understood."""

    @property
    def is_scan(self) -> bool:
        """Whether all text must be scanned."""
        return bool(self.text) and bool(self.mode)

    @property
    def span(self) -> dict[str, str]:
        """The filters of time."""
        return {name: value for name, value in self.filters.items() if name in DATES}

    @property
    def days(self) -> dict[str, str]:
        """The filters of time that are whole days."""
        return {
            name: self.filters.get(name, "") for name in DATES if _DAY.fullmatch(self.filters.get(name, ""))
        }

    @property
    def query(self) -> dict[str, str]:
        """The state as query values."""
        values = {"q": self.text, "mode": self.mode, "order": self.order}
        return {name: value for name, value in values.items() if value} | dict(self.filters)

    def address(self, **more: object) -> str:
        """Return the address of this state with further values."""
        return address("/", **(self.query | more))

    def with_filters(self, filters: Mapping[str, str]) -> str:
        """Return the address with further filters; one of time replaces those of time."""
        base = self._without(*DATES) if set(filters) & set(DATES) else self
        return address("/", **(base.query | dict(filters)))

    def without(self, *names: str) -> str:
        """Return the address without some filters."""
        return self._without(*names).address()

    def chips(self) -> list[tuple[str, str, str]]:
        """Return the name and the text of each filter, and the address without it; a common span of time is one filter."""
        common = [name for name, span in common_spans(dates.today()).items() if span == self.span]
        spans = [("when", name, self.without(*DATES)) for name in common]
        names = [name for name in self.filters if not (common and name in DATES)]
        return [*spans, *((name, f"{name}: {self._value_text(name)}", self.without(name)) for name in names)]

    def _value_text(self, name: str) -> str:
        value = self.filters[name]
        return folder_name(value) or value if name == "project" else value

    def without_filters(self) -> str:
        """Return the address without any filter."""
        return self.without(*FILTERS)

    def _without(self, *names: str) -> ListUrl:
        rest = {name: value for name, value in self.filters.items() if name not in names}
        return msgspec.structs.replace(self, filters=rest)


def session_address(key: str, seq: int = -1) -> str:
    """Return the address of a session, at an entry; a hit in the title has no entry (-1)."""
    return address("/session", key=key) if seq < 0 else f"{address('/session', key=key, at=seq)}#e{seq}"


def as_sentence(message: str) -> str:
    """Return a message as a sentence."""
    return f"{message[:1].upper()}{message[1:]}."


def parse_list_url(request: PageRequest) -> ListUrl:
    """Return the state of the list; values that make no sense are left out and noted."""
    filters: dict[str, str] = {}
    notes: list[str] = []
    for name in FILTERS:
        value = request.get(name).strip()[:LONGEST]
        if not value:
            continue
        try:
            filter_conditions({name: value})
            filters[name] = parse_choice(name, value)
        except UnknownChoice as unknown:
            notes.append(as_sentence(str(unknown)))
        except ValueError:
            notes.append(f"“{value}” is no date: try 2026-01-27, 7d or yesterday.")
    mode, order = request.get("mode"), request.get("order")
    return ListUrl(
        request.get("q").strip()[:LONGEST],
        mode if mode in MODES else "",
        order if order in ORDERS else "",
        filters,
        request.number("from", 0, _FAR),
        tuple(notes),
    )


PERIODS = {"7d": "7 days", "30d": "30 days", "month": "This month", "year": "Year", "all": "All"}
PAGE = 100
_MOST = 10_000
"""Pages of a report, at most."""


class ReportUrl(msgspec.Struct, frozen=True):
    """The period and filters of a report, and the choices for its filters."""

    filters: ReportFilters
    period: Period
    choices: ReportChoices
    today: date

    def query(self, store: Store, period: Period | None = None) -> ReportQuery:
        """Return the query of the report, or the same for another period."""
        return make_query(store, self.filters, self.choices, (period or self.period).span)

    def address(self, path: str, at: Period | None = None, /, **other: object) -> str:
        """Return the address of a page with this report, or with another period and other values."""
        at = at or self.period
        time: dict[str, object] = {"period": at.name} if at.name else {"since": at.since, "until": at.until}
        filters = {name: getattr(self.filters, name) for name in self.filters.__struct_fields__}
        return address(path, **{**filters, **time, **other})

    @property
    def all_time(self) -> Period:
        """The period without limits."""
        return named_period("all", self.today)

    @property
    def projects(self) -> list[tuple[str, str]]:
        """The keys and names of the projects to choose from."""
        names = project_names(key or UNKNOWN for key in self.choices.projects.values())
        return sorted(names.items(), key=lambda one: one[1].casefold())

    @property
    def words(self) -> str:
        """The period within a sentence."""
        if self.period.since is None and self.period.until is None:
            return "all time"
        if self.period.since == self.period.until:
            return f"{self.period.since}"
        return f"{self.period.since or 'the beginning'} to {self.period.until or 'now'}"


def parse_report_url(request: PageRequest, store: Store, usual: str = "7d") -> ReportUrl:
    """Return the report that an address names."""
    today = dates.today()
    filters = {name: request.get(name) for name in ReportFilters.__struct_fields__}
    period = parse_period(request.get("period", usual), request.get("since"), request.get("until"), today)
    filters["agent"] = filters["agent"].lower()
    return ReportUrl(ReportFilters(**filters), period, load_choices(store), today)


def parse_page_number(request: PageRequest) -> int:
    """Return the number of the page, from 0."""
    return request.number("page", 0, _MOST)


COOKIE = "retold-show"
TOOLS = ("none", "calls", "open")
_NOTHING = "nothing"


class Toggle(msgspec.Struct, frozen=True):
    """A kind of content that a reader may show or hide."""

    name: str
    label: str
    key: str
    """The key that toggles it."""


TOGGLES = (
    Toggle("thoughts", "Thoughts", "t"),
    Toggle("branches", "Taken back", "b"),
    Toggle("notices", "Context", "c"),
    Toggle("tokens", "Tokens", "u"),
)
_NAMES = tuple(toggle.name for toggle in TOGGLES)


class DisplayOptions(msgspec.Struct, frozen=True):
    """The kinds of content that are shown, and how tool calls are."""

    names: frozenset[str] = frozenset(("branches",))
    tools: str = "calls"

    @property
    def text(self) -> str:
        """The options as addresses and the cookie carry them."""
        names = [name for name in (*_NAMES, *TOOLS[1:]) if name in self.names or name == self.tools]
        return ".".join(names) or _NOTHING

    @property
    def classes(self) -> str:
        """The options as CSS classes."""
        names = [name for name in _NAMES if name in self.names]
        return " ".join(f"show-{name}" for name in (*names, *(["calls"] if self.tools != "none" else [])))

    def toggle(self, name: str) -> DisplayOptions:
        """Return the options with one kind toggled."""
        return DisplayOptions(self.names ^ {name}, self.tools)

    def with_tools(self, tools: str) -> DisplayOptions:
        """Return the options with another display of tool calls."""
        return DisplayOptions(self.names, tools)


def parse_display_options(request: PageRequest) -> DisplayOptions:
    """Return the options of the address, else those of the cookie, else the defaults."""
    words = frozenset((request.get("show") or request.cookies.get(COOKIE, "")).split("."))
    if not words & {*_NAMES, *TOOLS, _NOTHING}:
        return DisplayOptions()
    tools = next((tools for tools in reversed(TOOLS) if tools in words), "none")
    return DisplayOptions(words & frozenset(_NAMES), tools)
