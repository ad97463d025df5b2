"""A file with a hole of NULs, or with an endless line, is read and kept in bounded memory."""

import os
import sys
from pathlib import Path

import pytest

from retold.archive.store import Store
from retold.reading.disk import LONGEST
from support.conversation_files import FORMS, turns
from support.person import Person

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")]
MEGABYTE = 1 << 20
HIGHEST = 260 * MEGABYTE
"""Memory that a command may take, whatever the size of the hole."""
MEASURED = """
import atexit, os, resource
def tell():
    with open("/proc/self/status") as status, open(os.environ["PEAK"], "w") as peak:
        own = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
        peak.write(str(max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)))
atexit.register(tell)
"""
"""Tells the peak of the memory of a command, or of the process that reads a large file for it, in kilobytes."""
SIZES = [400 * MEGABYTE, pytest.param(2048 * MEGABYTE, marks=pytest.mark.heavy)]


def make_hole(file: Path, size: int) -> None:
    """Put a hole between the first and the second half of a file's lines."""
    lines = file.read_bytes().splitlines(keepends=True)
    middle = next(place for place, line in enumerate(lines) if place > 3 and b"behind" in line)
    # A document is cut between two of its messages, so that both halves stay whole.
    middle = max(place for place in range(middle + 1) if lines[place].strip().startswith(b"{"))
    with file.open("wb") as whole:
        whole.writelines(lines[:middle])
        whole.truncate(whole.tell() + size)
        whole.seek(0, os.SEEK_END)
        whole.writelines(lines[middle:])


def run(person: Person, *arguments: str) -> int:
    """Run a command, and return the most memory that it took, in bytes."""
    peak = person.folder / "peak"
    done = person.spawn(*arguments, code=MEASURED, env={**person.env, "PEAK": str(peak)})
    assert done.code == 0, done
    return int(peak.read_text()) * 1024


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", FORMS)
def test_a_hole_takes_no_memory_and_what_stands_around_it_is_read(
    tmp_path: Path, name: str, size: int
) -> None:
    person, form = Person(tmp_path / "ann"), FORMS[name]
    file = form.write(person.folder, 1, turns("before", "behind"))
    make_hole(file, size)
    assert run(person, "sync") < HIGHEST
    assert person.keys("before") == person.keys("behind") == [form.key(1)]
    told = person.show(form.key(1))
    (hole,) = [one for one in told["problems"] if one["code"] == "nul-bytes"]
    assert f"{size} NUL bytes" in hole["message"]
    assert [entry["prompt"] for entry in told["timeline"] if entry.get("prompt")] == [
        "asked before",
        "asked behind",
    ]
    with Store(str(person.archive)) as record:
        (chunks,) = next(record.rows("SELECT count(*) FROM chunks"))
        assert chunks <= 4  # the chunks of a hole are the same, and kept once
    file.unlink()  # from now on only the archive has it
    assert run(person, "show", form.key(1)) < HIGHEST
    assert run(person, "sync", "--reindex") < HIGHEST
    assert person.keys("before") == person.keys("behind") == [form.key(1)]


@pytest.mark.heavy
@pytest.mark.parametrize("name", [name for name, form in FORMS.items() if form.is_lines])
def test_an_endless_line_is_told_and_the_lines_around_it_are_read(tmp_path: Path, name: str) -> None:
    person, form = Person(tmp_path / "ann"), FORMS[name]
    file = form.write(person.folder, 1, turns("before", "behind"))
    lines = file.read_bytes().splitlines(keepends=True)
    middle = next(place for place, line in enumerate(lines) if b"behind" in line)
    with file.open("wb") as whole:
        whole.writelines(lines[:middle])
        for _ in range(1500):
            whole.write(b"a" * MEGABYTE)
        whole.writelines([b"\n", *lines[middle:]])
    assert run(person, "sync") < HIGHEST + LONGEST
    assert person.keys("before") == person.keys("behind") == [form.key(1)]
    assert "too-long" in [one["code"] for one in person.show(form.key(1))["problems"]]


@pytest.mark.heavy
def test_a_document_beyond_the_bound_is_told_and_kept(tmp_path: Path) -> None:
    person = Person(tmp_path / "ann")
    file = FORMS["gemini-json"].write(person.folder, 1, turns("before"))
    document = file.read_bytes()
    FORMS["claude"].write(person.folder, 2, turns("beside"))
    with file.open("wb") as whole:
        whole.write(document[:-2])
        for _ in range(1 + LONGEST // MEGABYTE):
            whole.write(b" " * (MEGABYTE - 1) + b"\n")
        whole.write(document[-2:])
    # The file is in memory twice for a moment: in pieces, and as a whole.
    assert run(person, "sync") < HIGHEST + 2 * LONGEST
    assert person.keys("beside") == [FORMS["claude"].key(2)]
    with Store(str(person.archive)) as record:
        (size,) = next(record.rows("SELECT size FROM originals ORDER BY size DESC"))
    assert size == file.stat().st_size
    assert "too-long" in person.run("doctor").out
