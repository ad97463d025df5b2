"""How far a sync is: shown on a terminal, and nowhere else."""

import io
import os
import re
import time
from pathlib import Path

import pytest

from retold.cli.console import Console
from retold.cli.progress import Progress, run_sync
from support.conversation_files import FORMS, turns
from support.person import Person


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("err", [Terminal(), io.StringIO()])
def test_a_bar_is_drawn_on_a_terminal_and_wiped_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, err: io.StringIO
) -> None:
    person = Person(tmp_path / "ann")
    for number in range(3):
        next(iter(FORMS.values())).write(person.folder, number, turns("tide"))
    for name, value in person.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stderr", err)
    assert run_sync(Console(os.environ, err=err)).read == 3
    if not err.isatty():
        assert err.getvalue() == ""
        return
    assert re.search("reading █+░* 0 of 0 MB", err.getvalue())
    assert err.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize("columns", [20, 40, 80])
def test_a_bar_stays_on_its_line(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    err = Terminal()
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stderr", err)
    for is_of_bytes in (True, False):
        progress = Progress(Console(os.environ, err=err), is_of_bytes=is_of_bytes)
        monkeypatch.setattr(progress, "_began", time.monotonic() - 100)
        progress.show(12_000_000, 570_000_000)
    lines = [line.removeprefix("\x1b[K") for line in err.getvalue().split("\r") if line]
    assert all(0 < len(line) < columns for line in lines)
    if columns == 80:
        assert " 12 of 570 MB, " in lines[0]
        assert " 12,000,000 of 570,000,000, " in lines[1]
