"""Power cuts: after one at any moment of a sync, the next sync leaves nothing out of the archive and the index."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from support.conversation_files import FORMS, dice, turns
from support.person import Person, Row, archive_contents, table_differences
from support.power_cuts import RECORDER, FileEvent, cut_power, read_events

COUNT = 10
CUTS = 24


class Synced(NamedTuple):
    """A sync of which everything that SQLite did is known."""

    home: Path
    before: Path | None
    archive: Path
    events: list[FileEvent]
    expected: dict[str, list[Row]]


def fill(person: Person, more: str) -> None:
    for number in range(COUNT):
        form = list(FORMS.values())[number % len(FORMS)]
        noise = [dice(number * 10 + place).randbytes(1500).hex() for place in range(4)]
        form.write(
            person.folder, number, turns(f"rare{number}", *noise, *([more] if more and number < 3 else []))
        )
    person.age()


@pytest.fixture(scope="module", params=["first", "later"])
def synced(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Synced:
    """The first sync, or one of a few sessions that have grown."""
    folder = tmp_path_factory.mktemp(request.param)
    person, before = Person(folder / "ann", folder / "retold"), None
    fill(person, "")
    if request.param == "later":
        person.sync()
        before = folder / "before"
        shutil.copytree(person.archive, before)
        fill(person, "later")
    done = person.spawn("sync", code=RECORDER, env={**person.env, "EVENTS": str(folder / "events")})
    assert done.code == 0, done
    events = read_events(folder / "events")
    return Synced(person.folder, before, person.archive, events, archive_contents(person.archive))


@pytest.mark.parametrize("number", range(CUTS))
def test_a_sync_after_a_power_cut_leaves_nothing_out(synced: Synced, tmp_path: Path, number: int) -> None:
    """Half of the cuts come after the sync has ended: then nothing but what is on disk tells whether it did."""
    chance, count = dice(number), len(synced.events)
    place = count if number % 2 else chance.randrange(count)
    cut_power(synced.before, synced.events[:place], synced.archive, tmp_path / "retold", chance)
    person = Person(synced.home, tmp_path / "retold")
    done = person.run("sync")
    assert done.code == 0, done
    assert not table_differences(archive_contents(person.archive), synced.expected)


def test_the_generation_is_written_when_all_else_is_on_disk(synced: Synced) -> None:
    """Behind the last thing that is written into the archive comes a sync of it, and then the index is in step."""
    names = [Path(event.path).name for event in synced.events]
    kinds = [event.kind for event in synced.events]
    ends = max(
        place
        for place, (name, kind) in enumerate(zip(names, kinds, strict=True))
        if name == "text-0.db-wal" and kind == "write"
    )
    before = [
        kind
        for name, kind in zip(names[:ends], kinds[:ends], strict=True)
        if name == "archive.db-wal" and kind != "create"
    ]
    assert before[-1] == "sync"
