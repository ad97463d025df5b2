"""Documents for whoever asks the page for one: made by another process, which does not outlive the wish for it."""

import os
import sys
from itertools import islice

import pytest

from retold.web import background
from retold.web.background import ExportInterrupted, run_export


def pretend(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(background, "own_command", lambda: [sys.executable, "-c", program])


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_nobody_goes_on_writing_for_somebody_who_left(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(
        monkeypatch,
        "import os, sys, time; sys.stdout.write(str(os.getpid()).ljust(70_000)); sys.stdout.flush(); time.sleep(60)",
    )
    pieces = run_export("folder", "gemini:a", ())
    (first,) = islice(pieces, 1)
    writer = int(first)
    assert is_running(writer)
    pieces.close()  # type: ignore[attr-defined]
    assert not is_running(writer)


def test_what_broke_off_is_not_taken_for_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "print('half'); raise SystemExit(4)")
    pieces = run_export("folder", "gemini:a", ())
    assert next(pieces) == b"half\n"
    with pytest.raises(ExportInterrupted):
        next(pieces)
    pretend(monkeypatch, "print('all of it')")
    assert b"".join(run_export("folder", "gemini:a", ())) == b"all of it\n"  # and nobody has to wait
