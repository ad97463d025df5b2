"""The archive for programs."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import msgspec

from retold.archive.ledger import PRICED_BY
from retold.archive.store import Store, exists
from retold.config import read_config, retold_home
from retold.model.report import Line
from retold.model.serialization import decode_summary
from retold.model.session import Fate, Project, Session, View
from retold.reports.stats import lines
from retold.search.engine import Search
from retold.search.filters import FILTERS, Filters
from retold.search.listing import named, summaries
from retold.search.query import parse
from retold.search.report_query import BY, ReportQuery, span
from retold.search.results import SearchResult
from retold.search.text_scan import scanned
from retold.sessions.load import load_session
from retold.synchronization.fingerprints import CoverageCount
from retold.synchronization.update import Task, update

_SHOWN = 10


class Hit(msgspec.Struct, frozen=True):
    """A place in a conversation where it is said."""

    message: str | None
    """The id of the message; none where the agent gave it none."""
    role: str | None
    tool: str | None
    """The tool whose output it is."""
    fate: Fate
    at: datetime | None
    snippet: str
    match: tuple[tuple[int, int], ...]
    """Where in the snippet the words stand."""


class Found(msgspec.Struct, frozen=True):
    """A conversation that a search found; `archive.session(found.key)` has all of it."""

    key: str
    title: str | None
    project: Project
    ended_at: datetime | None
    score: float
    """1 for the best, less for the others."""
    hits: tuple[Hit, ...]


class Archive:
    """An open archive: sessions are read when they are asked for, and what was said only with `session`."""

    def __init__(self, folder: str) -> None:
        """Open the archive in a folder; raises FileNotFoundError if there is none."""
        if not exists(folder):
            raise FileNotFoundError(f"no archive in {folder}: `retold sync` or `retold.sync()` makes one")
        self._record = Store(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the archive."""
        self._record.connection.close()

    def sessions(self, *, every_kind: bool = False, **filters: str) -> Iterator[Session]:
        """Yield conversations without their timelines, the newest first; filters are those of `retold list`.

        With `every_kind` also subagents, checkpoints, captures, and sessions in which nobody spoke.
        """
        wanted = _wanted(Filters(), filters, in_messages=False)
        return map(decode_summary, summaries(self._record, wanted, every_kind=every_kind))

    def session(self, name: str, view: View = "full") -> Session:
        """Return a session with its timeline: by its key, its native id, or the start of either.

        Raises LookupError if none is meant, or several are.
        """
        found = named(self._record, name)
        session = load_session(self._record, found[0][0], view) if len(found) == 1 else None
        if session is None:
            several = ": " + ", ".join(key for key, _ in found[:_SHOWN]) if found else ""
            raise LookupError(f"{name} means {len(found)} sessions{several}")
        return session

    def search(self, query: str, limit: int = _SHOWN, **filters: str) -> Iterator[Found]:
        """Yield the conversations that hold what is asked for, the best first; raises ValueError for an unclear query."""
        asked = parse(query)
        wanted = _wanted(Filters(asked.fields), filters, in_messages=True)
        return map(_found, Search(self._record, asked, wanted).conversations(limit))

    def scan(
        self, text: str, limit: int = _SHOWN, *, is_regex: bool = False, **filters: str
    ) -> Iterator[Found]:
        """Yield the conversations in which a text stands anywhere, or a pattern matches, the newest first."""
        wanted = _wanted(Filters(), filters, in_messages=True)
        return map(_found, scanned(self._record, text, wanted, limit, is_regex=is_regex))

    def stats(self, by: str = "day", *, utc: bool = False, **filters: str) -> list[Line]:
        """Return what it cost and how it went: by `day`, `week`, `month`, `model`, `project`, `agent`, `tool` or `session`.

        Filters are those of `retold stats`; `since` and `until` mean requests. Raises LookupError where an earlier version
        left no sums: `retold.sync()` makes them.
        """
        if by not in BY:
            raise ValueError(f"no report by {by}: there are {', '.join(BY)}")
        if self._record.fact(PRICED_BY) is None:
            raise LookupError("the archive has no sums yet: retold.sync() makes them")
        asked = span(filters.pop("since", None), filters.pop("until", None), is_utc=utc)
        wanted = _wanted(Filters(), filters, in_messages=False)
        question = ReportQuery(self._record, wanted, asked, filters.get("model"), filters.get("tool"))
        return lines(question, by)


def open(folder: str | os.PathLike[str] | None = None) -> Archive:  # noqa: A001 - read as `retold.open`
    """Open the archive: the user's own, or the one in a folder."""
    return Archive(os.fspath(folder) if folder is not None else retold_home(os.environ))


def sync(folder: str | os.PathLike[str] | None = None) -> CoverageCount:
    """Bring the archive up to date with what the agents have kept; return how much of it was read."""
    place = os.fspath(folder) if folder is not None else retold_home(os.environ)
    config = read_config(place)
    task = Task(place, os.environ, list(config.homes.items()), (), config.excluded)
    coverage, _ = update(task, lambda: None, lambda _done, _size: None)
    return coverage


def _wanted(wanted: Filters, filters: dict[str, str], *, in_messages: bool) -> Filters:
    for name, value in filters.items():
        if name not in FILTERS:
            raise TypeError(f"no filter {name}: there are {', '.join(FILTERS)}")
        wanted.add(name, value, in_messages=in_messages)
    return wanted


def _found(conversation: SearchResult) -> Found:
    hits = tuple(
        Hit(hit.message, hit.role, hit.tool, hit.fate, _time(hit.at), hit.snippet, tuple(hit.matches))
        for hit in conversation.hits
    )
    project: Any = conversation.project
    at = _time(conversation.ended_at)
    return Found(conversation.key, conversation.title, Project(**project), at, conversation.score, hits)


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
