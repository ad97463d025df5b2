"""The process that looks for letters or a pattern in all text: what it finds is told line by line, and it can be ended."""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Callable

import msgspec

from retold.search.scan_job import BOUND, ScanJob, Trouble

_LATER = 2.0


def scan(job: ScanJob) -> None:
    """Write a line for each conversation that is found, as soon as it is, and an empty one at the end."""
    from retold.archive.database import IndexDamagedError, RetoldError
    from retold.archive.store import Store
    from retold.search.facets import conditions_of
    from retold.search.filters import Filters
    from retold.search.query import QuerySyntaxError
    from retold.search.scan_job import holding_of
    from retold.search.text_scan import scanned

    wanted = Filters()
    wanted.sessions += [*conditions_of(job.filters), *job.reach.conditions()]
    with Store(os.fsdecode(job.folder)) as record:
        try:
            clean = _cleaner() if job.is_redacted else None
            for conversation in scanned(
                record, job.text, wanted, job.limit, is_regex=job.is_regex, clean=clean
            ):
                _write(msgspec.json.encode(holding_of(conversation)))
        except QuerySyntaxError as unclear:
            _write(msgspec.json.encode(Trouble(unclear.message)))
        except IndexDamagedError as damage:
            _write(msgspec.json.encode(Trouble(f"{damage}: `retold sync --reindex` makes it anew")))
        except RetoldError as stopped:
            _write(msgspec.json.encode(Trouble(str(stopped))))
    _write(b"")


def _cleaner() -> Callable[[str], str]:
    from retold.redaction import Redactor

    return Redactor(home=os.path.expanduser("~")).redacted_text


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    """Do one job, and end in time even if nobody is left to end it: matching a pattern hears nothing, not even a signal's handler."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        faulthandler.dump_traceback_later(BOUND + _LATER, exit=True, file=nowhere)
        scan(msgspec.json.decode(sys.stdin.buffer.readline(), type=ScanJob))
        faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main()
