"""The public library: open an archive, search it and sync it."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import msgspec

from retold.archive.ledger import PRICED_BY
from retold.archive.store import Store, archive_exists
from retold.config import read_config, retold_home
from retold.model.report import Line
from retold.model.serialization import decode_summary
from retold.model.session import Fate, Project, Session, View
from retold.reports.stats import GROUPINGS, ReportQuery, parse_span, report_lines
from retold.search.engine import Search
from retold.search.filters import FILTERS, Filters
from retold.search.listing import list_json, resolve_ids
from retold.search.query import parse_query
from retold.search.results import SearchResult
from retold.search.text_scan import scan_texts
from retold.sessions.load import load_session
from retold.synchronization.fingerprints import CoverageCount
from retold.synchronization.update import SyncOptions, update

_SHOWN = 10


class Hit(msgspec.Struct, frozen=True):
    """A message of a conversation that matches a search."""

    message: str | None
    """The id of the message, if the agent gave it one."""
    role: str | None
    tool: str | None
    """The tool whose output matches."""
    fate: Fate
    at: datetime | None
    snippet: str
    match: tuple[tuple[int, int], ...]
    """The ranges of the words in the snippet."""


class Match(msgspec.Struct, frozen=True):
    """A conversation that matches a search; `archive.session(match.key)` returns it whole."""

    key: str
    title: str | None
    project: Project
    ended_at: datetime | None
    score: float
    """1 for the best match, less for the others."""
    hits: tuple[Hit, ...]


class Archive:
    """An open archive. Only `session` reads the timeline of a session."""

    def __init__(self, folder: str) -> None:
        """Open the archive in a folder; raises FileNotFoundError if there is none."""
        if not archive_exists(folder):
            raise FileNotFoundError(f"no archive in {folder}: `retold sync` or `retold.sync()` makes one")
        self._store = Store(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the archive."""
        self._store.connection.close()

    def sessions(self, *, every_kind: bool = False, **filters: str) -> Iterator[Session]:
        """Yield conversations without their timelines, the newest first; the filters are those of `retold list`.

        `every_kind` adds subagents, checkpoints, captures, and sessions without a prompt.
        """
        chosen = _add_filters(Filters(), filters, in_messages=False)
        return map(decode_summary, list_json(self._store, chosen, every_kind=every_kind))

    def session(self, name: str, view: View = "full") -> Session:
        """Return a session with its timeline: by its key, its native id, or the start of either.

        Raises LookupError if no session or several sessions have it.
        """
        found = resolve_ids(self._store, name)
        session = load_session(self._store, found[0][0], view) if len(found) == 1 else None
        if session is None:
            several = ": " + ", ".join(key for key, _ in found[:_SHOWN]) if found else ""
            raise LookupError(f"{name} means {len(found)} sessions{several}")
        return session

    def search(self, query: str, limit: int = _SHOWN, **filters: str) -> Iterator[Match]:
        """Yield the conversations that match a query, the best first; raises ValueError for an invalid query."""
        parsed = parse_query(query)
        chosen = _add_filters(Filters(parsed.fields), filters, in_messages=True)
        return map(_make_match, Search(self._store, parsed, chosen).find(limit))

    def scan(
        self, text: str, limit: int = _SHOWN, *, is_regex: bool = False, **filters: str
    ) -> Iterator[Match]:
        """Yield the conversations with a text anywhere, or a match of a pattern, the newest first."""
        chosen = _add_filters(Filters(), filters, in_messages=True)
        return map(_make_match, scan_texts(self._store, text, chosen, limit, is_regex=is_regex))

    def stats(self, by: str = "day", *, utc: bool = False, **filters: str) -> list[Line]:
        """Return the lines of a report by `day`, `week`, `month`, `model`, `project`, `agent`, `tool` or `session`.

        The filters are those of `retold stats`; `since` and `until` apply to requests. Raises LookupError for an archive of
        an earlier version without sums: `retold.sync()` makes them.
        """
        if by not in GROUPINGS:
            raise ValueError(f"no report by {by}: there are {', '.join(GROUPINGS)}")
        if self._store.fact(PRICED_BY) is None:
            raise LookupError("the archive has no sums yet: retold.sync() makes them")
        time = parse_span(filters.pop("since", None), filters.pop("until", None), is_utc=utc)
        chosen = _add_filters(Filters(), filters, in_messages=False)
        query = ReportQuery(self._store, chosen, time, filters.get("model"), filters.get("tool"))
        return report_lines(query, by)


def open(folder: str | os.PathLike[str] | None = None) -> Archive:  # noqa: A001 - read as `retold.open`
    """Open the archive in a folder; without one, the user's own."""
    return Archive(os.fspath(folder) if folder is not None else retold_home(os.environ))


def sync(folder: str | os.PathLike[str] | None = None) -> CoverageCount:
    """Bring the archive up to date with the files of the agents; return the counts."""
    path = os.fspath(folder) if folder is not None else retold_home(os.environ)
    config = read_config(path)
    options = SyncOptions(path, os.environ, list(config.homes.items()), (), config.excluded)
    return update(options, lambda: None, lambda _done, _size: None)[0]


def _add_filters(chosen: Filters, filters: dict[str, str], *, in_messages: bool) -> Filters:
    for name, value in filters.items():
        if name not in FILTERS:
            raise TypeError(f"no filter {name}: there are {', '.join(FILTERS)}")
        chosen.add(name, value, in_messages=in_messages)
    return chosen


def _make_match(result: SearchResult) -> Match:
    hits = tuple(
        Hit(hit.message, hit.role, hit.tool, hit.fate, _time(hit.at), hit.snippet, tuple(hit.matches))
        for hit in result.hits
    )
    project: Any = result.project
    at = _time(result.ended_at)
    return Match(result.key, result.title, Project(**project), at, result.score, hits)


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
