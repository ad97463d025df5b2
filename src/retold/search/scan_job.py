"""Scans in another process: the job, the results, and the program of the process (`python -m retold.search.scan_job`)."""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Mapping
from typing import Literal

import msgspec

from retold.archive.store import as_text
from retold.search.access import EVERYTHING, AccessScope
from retold.search.results import MessageHit, SearchResult


class ResultHit(msgspec.Struct, frozen=True):
    """A hit as a value."""

    seq: int
    """The index in the timeline of the full view."""
    role: str | None
    tool: str | None
    fate: str
    snippet: str
    matches: tuple[tuple[int, int], ...]


class ResultItem(msgspec.Struct, frozen=True, tag=True):
    """A search result as a value that can be sent to another process."""

    session: int
    """Its id in the archive."""
    hits: tuple[ResultHit, ...] = ()


def to_result_item(result: SearchResult) -> ResultItem:
    """Return a search result as a value."""
    return ResultItem(result.session, tuple(map(_to_hit, result.hits)))


def _to_hit(hit: MessageHit) -> ResultHit:
    matches = tuple((start, end) for start, end in hit.matches)
    return ResultHit(hit.seq, hit.role, hit.tool, hit.fate, as_text(hit.snippet), matches)


TIME_LIMIT = 5.0
"""Seconds after which a scan is ended: a pattern may take any time."""

End = Literal["done", "stopped", "broken", "busy", "unclear"]
"""The end of a scan: `broken` if the process died, `unclear` for an error in the pattern."""


class ScanJob(msgspec.Struct, frozen=True):
    """The input of a scan. It goes through a pipe, because all users can see the arguments of a process."""

    text: str
    is_regex: bool
    filters: Mapping[str, str]
    limit: int
    folder: bytes = b""
    """The folder of the archive."""
    scope: AccessScope = EVERYTHING
    is_redacted: bool = False
    """Whether snippets are without secrets."""


class ScanError(msgspec.Struct, frozen=True, tag=True):
    """The reason why a scan is impossible."""

    message: str


class ScanResult(msgspec.Struct, frozen=True):
    """The results of a scan, and how it ended."""

    items: tuple[ResultItem, ...] = ()
    end: End = "done"
    message: str = ""
    """The reason why the scan is impossible."""


_GRACE = 2.0
"""Seconds after the time limit at which the process ends itself."""


def scan(job: ScanJob) -> None:
    """Write a line for each result as soon as it is found, and an empty line at the end."""
    from retold.archive.database import IndexDamagedError, RetoldError
    from retold.archive.store import Store
    from retold.search.facets import filter_conditions
    from retold.search.filters import Filters
    from retold.search.query import QuerySyntaxError
    from retold.search.text_scan import scan_texts

    filters = Filters()
    filters.sessions += [*filter_conditions(job.filters), *job.scope.conditions()]
    clean = None
    if job.is_redacted:
        from retold.redaction import Redactor

        clean = Redactor(home=os.path.expanduser("~")).redact_text
    with Store(os.fsdecode(job.folder)) as store:
        try:
            results = scan_texts(store, job.text, filters, job.limit, is_regex=job.is_regex, clean=clean)
            for result in results:
                _write(msgspec.json.encode(to_result_item(result)))
        except QuerySyntaxError as error:
            _write(msgspec.json.encode(ScanError(error.message)))
        except IndexDamagedError as error:
            _write(msgspec.json.encode(ScanError(f"{error}: `retold sync --reindex` rebuilds it")))
        except RetoldError as error:
            _write(msgspec.json.encode(ScanError(str(error))))
    _write(b"")


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    """Run one job. The process ends itself after the time limit, because matching a pattern cannot be interrupted."""
    with open(os.devnull, "w", encoding="utf-8") as null:
        faulthandler.dump_traceback_later(TIME_LIMIT + _GRACE, exit=True, file=null)
        scan(msgspec.json.decode(sys.stdin.buffer.readline(), type=ScanJob))
        faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main()
