"""What somebody is looking for, as it stands in the address of the list: so that it can be kept and come back to."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from retold.projects.matching import last_name
from retold.search import dates
from retold.search.facets import DATES, conditions_of
from retold.search.filters import FILTERS, UnknownChoice, choice_of
from retold.search.pages import usual_spans
from retold.web.answer import PageRequest
from retold.web.looks import address

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
