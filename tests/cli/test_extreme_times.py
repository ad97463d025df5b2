"""Sessions at the ends of the calendar: every command goes on, in every time zone."""

import re
from itertools import count
from pathlib import Path

import pytest

from retold.export.formats.registry import FORMATS
from support.conversation_files import FORMS, turns
from support.person import Person

pytestmark = pytest.mark.slow

LAST, FIRST = "9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00.000Z"
STAMPED = 4
ZONES = ("Pacific/Auckland", "America/Los_Angeles")


def person_at(folder: Path, stamp: str) -> Person:
    """Write a session of each form whose first times are this one, and whose later messages have no time."""
    person = Person(folder)
    for number, form in enumerate(FORMS.values()):
        file = form.write(person.folder, number, turns("heron", "otter", "dunlin"))
        times = count()
        text = re.sub(
            r'"2026-03-01T09:[0-9:.]*Z"',
            lambda _, times=times: f'"{stamp}"' if next(times) < STAMPED else "null",  # type: ignore[misc]
            file.read_text(),
        )
        assert next(times) > STAMPED
        file.write_text(text)
    return person


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("stamp", [FIRST, LAST])
def test_every_command_goes_on_at_the_ends_of_the_calendar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stamp: str, zone: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    person = person_at(tmp_path / "ann", stamp)
    person.env["TZ"] = zone
    assert person.spawn("sync").code == 0
    commands = [
        ("list",), ("list", "--json"), ("stats",), ("stats", "--by", "day", "--json"), ("doctor",), ("search", "heron"),
        ("projects",), ("sql", "SELECT * FROM sessions"), ("brief",),
    ]  # fmt: skip
    for key in person.rows():
        commands += [("show", key), ("show", key, "--json"), ("events", key), ("events", "--json", key)]
    commands += [
        ("export", "--all", "--format", form, "--output", str(tmp_path / f"out-{form}"), "--no-redact")
        for form in FORMATS
    ]
    failed = {}
    for command in commands:
        done = person.spawn(*command)
        if done.code not in (0, 1) or "Traceback" in done.err:
            failed[command] = done.err[-300:]
    assert failed == {}
