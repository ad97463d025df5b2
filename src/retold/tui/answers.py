"""What the browser asks: each question with a connection of its own, so that any thread may ask it."""

import os
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from retold.archive.database import Stopped
from retold.archive.limits import DAY, due_soon
from retold.archive.rates import PRICED_BY
from retold.archive.record import Record
from retold.archive.states import fates as fate_rows
from retold.care.doctor.checkup import checkup
from retold.care.doctor.survey import survey
from retold.care.restore import Plan, Wish, planned, write
from retold.care.resume import way_on, whole_line
from retold.export.document import document
from retold.export.files import to_file
from retold.export.findings import finding_lines
from retold.export.naming import free_path
from retold.export.overview import overview as overview_lines
from retold.export.telling import Choice
from retold.export.zone import zone_name
from retold.ingest.slices import told_slice
from retold.model.session import Session
from retold.query import dates
from retold.query.cards import Named, cards
from retold.query.hits import Conversation
from retold.query.language import Field, Unclear, parse, parse_unfinished
from retold.query.question import Question, span
from retold.query.scanned import BOUND
from retold.query.scope import Scope
from retold.query.search import Search
from retold.query.stats import overview
from retold.query.unknown import unknown_names
from retold.query.wanted import Wanted

Pieces = Sequence[tuple[str, str]]
MOST_FOUND = 60
"""Conversations that a search of the text adds to the list."""
_TIMES = ("since", "until")


class Archive(msgspec.Struct, frozen=True):
    """The archive, and what of it was asked for when the browser was started."""

    folder: str
    filters: tuple[tuple[str, str], ...] = ()
    here: str = ""

    def opened(self) -> Record:
        """Return a connection for one thread."""
        return Record(self.folder)

    def wanted(
        self, scope: Scope, fields: Sequence[Field] = (), *, in_messages: bool = False, times: bool = True
    ) -> Wanted:
        """Return what conversations must be like."""
        wanted = Wanted(fields)
        for name, value in self.filters:
            if times or name not in _TIMES:
                wanted.add(name, value, in_messages=in_messages)
        if scope.folder is not None:
            wanted.keep_within(scope.folder)
        return wanted


def listed(archive: Archive, scope: Scope, limit: int | None = None) -> list[Named]:
    """Return the conversations, the newest first."""
    with archive.opened() as record:
        return cards(record, archive.wanted(scope), limit)


def found(archive: Archive, scope: Scope, typed: str) -> list[Conversation]:
    """Return the conversations in which it is said; raises Unclear for a query that means nothing."""
    query = parse_unfinished(typed)
    with archive.opened() as record:
        wanted = archive.wanted(scope, query.fields, in_messages=True)
        search = Search(record, query, wanted)
        search.patience = BOUND
        return list(search.conversations(MOST_FOUND))


def unknown(archive: Archive, typed: str) -> str:
    """Return what the archive does not know of the names in a query; empty where it knows all of them."""
    names = [(field.name, field.value) for field in parse(typed).fields if not field.is_negated]
    with archive.opened() as record:
        return "; ".join(unknown_names(record, names)) if names else ""


def is_plain(typed: str) -> bool:
    """Tell whether only words were typed, which may be part of a name; fields, quotes and what must not occur are not."""
    try:
        query = parse(typed)
    except Unclear:
        return False
    words = [term.kind == "word" for term in query.terms]
    is_single = all(len(one.alternatives) == 1 and not one.is_negated for one in query.clauses)
    return not query.fields and is_single and all(words)


def due(archive: Archive) -> Iterator[tuple[str, int, int]]:
    """Yield what goes soon: the agent, how many conversations, and within how many days."""
    with archive.opened() as record:
        for one in due_soon(record):
            yield one.agent, one.count, max(0, int(-(-one.seconds // DAY)))


def fates(archive: Archive, key: str) -> dict[str, int]:
    """Return how many entries were rewound, compacted or superseded."""
    with archive.opened() as record:
        return {fate: entries for fate, entries, *_ in fate_rows(record, key) if fate != "live"}


def beginning(archive: Archive, key: str, first: int, count: int) -> Session | None:
    """Return some entries of a conversation."""
    with archive.opened() as record:
        part = told_slice(record, key, first, count)
        return None if part is None else part.session


def exported(archive: Archive, key: str, form: str, folder: str, *, is_redacted: bool) -> tuple[str, int]:
    """Write a conversation into a folder, beside what lies there; return the path and the size."""
    with archive.opened() as record:
        made = document(record, key, form, Choice(is_redacted=is_redacted))
        if made is None:
            raise Stopped(f"no session {key} in the archive")
        path = free_path(folder, made.name)
        return path, to_file(path, made.pieces)


def resuming(archive: Archive, key: str) -> tuple[Plan, str]:
    """Return what going on takes, and the line to type."""
    with archive.opened() as record:
        plan = way_on(record, key, os.environ)
        return plan, whole_line(plan, key)


def restoring(archive: Archive, key: str) -> Plan:
    """Return what would be written so that the agent has it again."""
    with archive.opened() as record:
        return planned(record, key, Wish(), os.environ)


def restored(archive: Archive, key: str) -> Plan:
    """Write it back; what was shown is planned anew, as the agent may have been at work since."""
    plan = restoring(archive, key)
    write(plan)
    return plan


def stats(archive: Archive, scope: Scope, typed: str, columns: int) -> list[Pieces]:
    """Return what it cost and how it went, as far as filters, scope and the fields that were typed reach."""
    filters = dict(archive.filters)
    asked = span(filters.get("since"), filters.get("until"), is_utc=False)
    with archive.opened() as record:
        if record.fact(PRICED_BY) is None:
            return [[("plain", "The archive has no sums yet: `retold sync` makes them.")]]
        wanted = archive.wanted(scope, _fields(typed), times=False)
        question = Question(record, wanted, asked, filters.get("model"), filters.get("tool"))
        told = overview(question, zone_name(is_utc=False))
        if not told.total.sessions:
            return [[("plain", "Nothing to count.")]]
        return [list(pieces) for pieces in overview_lines(told, columns)]


def _fields(typed: str) -> Sequence[Field]:
    """Return the fields that were typed, if they are of whole conversations."""
    try:
        return [field for field in parse(typed).fields if field.name not in ("role", "tool", "is")]
    except Unclear:
        return ()


def findings(columns: int) -> list[Pieces]:
    """Return what the doctor says."""
    seen = survey(os.environ)
    try:
        told = list(checkup(seen))
        lines: list[Pieces] = list(finding_lines(told, seen.now, columns))
        count = seen.conversations
    finally:
        if seen.record is not None:
            seen.record.connection.close()
    if any(finding.is_risk for finding in told):
        return lines
    return [[("title", f"Nothing is at risk: {count:,} sessions are archived.")], *lines]


def now() -> datetime:
    """Return the time, by which ages are told."""
    return dates.now()
