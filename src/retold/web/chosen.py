"""What somebody chose to see figures of, out of an address; and the addresses of other choices."""

from __future__ import annotations

from datetime import date

import msgspec

from retold.archive.store import Store
from retold.export.text.table import project_names
from retold.reports.selection import Choices, Period, ReportFilters, by_name, choices, chosen, narrowed
from retold.search import dates
from retold.search.report_query import UNKNOWN, ReportQuery
from retold.web.answer import PageRequest
from retold.web.looks import address

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
