"""How far a sync is: shown on a terminal, and nowhere else."""

import io
import os
import re
from pathlib import Path

import pytest

from made_talks import FORMS, turns
from persons import Person
from retold.cli.console import Console
from retold.cli.syncing import run_sync


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
