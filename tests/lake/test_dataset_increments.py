"""A dataset that is brought up to date is the one that would be written now, whatever happened, and whoever was killed."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from pyarrow import parquet

from retold.lake.dataset_files import plan_parts
from retold.lake.dataset_items import DatasetItem
from support.conversation_files import dice
from support.dataset_exports import DRAFT, KEY, dataset_rows, export_dataset, file_states, person_with_archive
from support.gemini_home import GeminiHome, gemini, user
from support.person import Person

pytestmark = pytest.mark.slow

WORD = "Quagmire-Plover-{:02}"
Change = Callable[[Person, int, Random], None]


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    return person_with_archive(tmp_path / "ann")


def grown(ann: Person, step: int, random: Random) -> None:
    """Let a conversation go on."""
    files = sorted(ann.folder.glob(".gemini/tmp/den/chats/*.jsonl"))
    if files:
        with random.choice(files).open("a", encoding="utf-8") as file:
            file.write(json.dumps(gemini(f"g-{step}-of-a-later-time", 40, f"More of {step}.")) + "\n")


def new(ann: Person, step: int, random: Random) -> None:
    """Let there be a further conversation, in some month, with something that may be a secret."""
    said = [
        user(f"u-{step}-new-and-long", 1, f"use {WORD.format(random.randrange(4))}"),
        gemini(f"g-{step}-new", 2, "Yes."),
    ]
    if step % 2:
        said.append(user(f"s-{step}", 3, f"DB_PASSWORD={WORD.format(random.randrange(4))}"))
    GeminiHome(ann.folder).lines("den", 0x10 + step << 24, 10 + step, said, kind="main")


def forked(ann: Person, step: int, random: Random) -> None:
    """Let somebody go on from a conversation elsewhere: what it copied belongs to the earlier one."""
    said = [
        user("u1-with-a-long-enough-id", 1, f"My key is {KEY}, write to nobody"),
        gemini("g1-with-a-long-enough-id", 2, f"I use {KEY}."),
        user(f"u-{step}-goes-on-from-there", 3, "And now?"),
    ]
    GeminiHome(ann.folder).lines("den", 0x40 + step << 24, random.choice((0, 30)), said, kind="main")


def tagged(ann: Person, step: int, random: Random) -> None:
    ann.run("tag", random.choice(sorted(ann.rows())), f"+tag-{step}")


def named(ann: Person, step: int, random: Random) -> None:
    ann.run("name", random.choice(sorted(ann.rows())), f"Title {step}")


def forgotten(ann: Person, _step: int, random: Random) -> None:
    assert ann.run("forget", "-y", random.choice(sorted(ann.rows()))).code == 0


def gone(ann: Person, _step: int, random: Random) -> None:
    """Let the agent delete a file."""
    files = sorted(ann.folder.glob(".gemini/tmp/den/chats/*.jsonl"))
    if len(files) > 1:
        random.choice(files).unlink()


CHANGES: tuple[Change, ...] = (grown, grown, new, new, forked, tagged, named, forgotten, gone)


@pytest.mark.parametrize("how", ["--no-redact", "--images"])
@pytest.mark.parametrize("seed", range(2))
def test_an_increment_is_what_would_be_written_now(
    ann: Person, tmp_path: Path, how: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "retold.lake.dataset_files.PART_BYTES", 1
    )  # so that no session is written anew because another was
    random = dice(seed)
    export_dataset(ann, tmp_path / "lake", "--all", how)
    for step in range(5):
        for change in random.sample(CHANGES, random.randrange(1, 3)):
            change(ann, step, random)
        ann.sync()
        export_dataset(ann, tmp_path / "lake", "--all", how)
        fresh = tmp_path / f"fresh-{step}"
        export_dataset(ann, fresh, "--all", how)
        assert dataset_rows(tmp_path / "lake") == dataset_rows(fresh), step


def test_only_the_part_with_a_change_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retold.lake.dataset_files.PART_BYTES", 1)
    home, lake = GeminiHome(tmp_path / "bob"), tmp_path / "lake"
    for place in range(1, 5):
        said = [user(f"u{place}", place, f"Ask {place}"), gemini(f"g{place}", place, "Answer.")]
        file = home.lines("den", place << 28, place, said, kind="main")
    bob = Person(tmp_path / "bob")
    bob.sync()
    export_dataset(bob, lake, "--all", "--no-redact")
    before = file_states(lake)
    file.write_text(file.read_text() + json.dumps(gemini("g9", 40, "More.")) + "\n", encoding="utf-8")
    bob.sync()
    assert "sessions: 1 written, 3 unchanged, 0 removed" in export_dataset(bob, lake, "--all", "--no-redact")
    changed = {Path(name) for name, held in file_states(lake).items() if before.get(name) != held}
    assert {path.name for path in changed} == {"retold.json", "part-0003.parquet"}
    assert Path("messages/agent=gemini/month=2026-03/part-0003.parquet") in changed


@pytest.mark.parametrize(
    "what",
    ["retold.lake.dataset.VERSION", "retold.lake.dataset.REVISION", "retold.cli.export_tables.__version__"],
)
def test_another_version_writes_everything_anew(
    ann: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    export_dataset(ann, tmp_path / "lake", "--all", "--no-redact")
    monkeypatch.setattr(what, "of tomorrow")
    told = export_dataset(ann, tmp_path / "lake", "--all", "--no-redact")
    assert f" {len(ann.rows())} written, 0 unchanged, 0 removed" in told
    assert " 0 written, " in export_dataset(ann, tmp_path / "lake", "--all", "--no-redact")


def test_to_keep_pictures_or_not_writes_everything_anew(ann: Person, tmp_path: Path) -> None:
    for options in (("--all",), ("--all", "--images"), ("--all",)):
        told = export_dataset(ann, tmp_path / "lake", *options)
        assert f" {len(ann.rows())} written, 0 unchanged, 0 removed" in told


def item(name: str, size: int) -> DatasetItem:
    return DatasetItem(name, "mark", "gemini", "2026-03", size, name)


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [
        ((5, 4, 3, 2), [(5, 4, 3), (2,)]),  # it is full when it holds as much
        ((5, 15), [(5, 15)]),
        ((5, 16), [(5,), (16,)]),  # what is too large for it begins another
        ((30, 1), [(30,), (1,)]),
    ],
)
def test_a_part_takes_what_comes_until_it_is_full(
    sizes: tuple[int, ...], parts: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retold.lake.dataset_files.PART_BYTES", 10)
    plans = plan_parts((), [item(f"{place}", size) for place, size in enumerate(sizes)])
    assert [tuple(one.size for one in plan.items) for plan in plans] == parts


def test_a_session_keeps_its_part_and_the_next_begins_when_it_is_full(
    ann: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retold.lake.dataset_files.PART_BYTES", 1500)
    lake = tmp_path / "lake"
    export_dataset(ann, lake, "--all", "--no-redact")
    first = _places(lake)
    assert len(set(first.values())) > 2
    new(ann, 1, dice(1))
    ann.sync()
    export_dataset(ann, lake, "--all", "--no-redact")
    assert first.items() <= _places(lake).items()


def test_what_is_forgotten_goes_and_be_it_the_last(ann: Person, tmp_path: Path) -> None:
    export_dataset(ann, tmp_path / "lake", "--all", "--no-redact")
    for key in sorted(ann.rows(), reverse=True):
        ann.run("forget", "-y", key)
    told = ann.run("export", "--all", "--no-redact", "--format", "parquet", "-o", str(tmp_path / "lake"))
    assert (told.code, told.err.splitlines()) == (
        1,
        [
            "retold: no sessions found",
            f"retold: {tmp_path / 'lake'}: sessions: 0 written, 0 unchanged, 6 removed",
        ],
    )
    found = dataset_rows(tmp_path / "lake")
    assert {name for name, held in found.items() if held} <= {"problems"}


WRITERS = """
import os
from retold.lake import dataset
parent, write_part = os.getpid(), dataset.write_part
def told(*given):
    sizes = write_part(*given)
    os.write(2, f"written {os.getpid() if os.getppid() == parent else 'parent'}\\n".encode())  # lines stay whole
    return sizes
dataset.write_part = told
"""


@pytest.mark.parametrize("how", ["--no-redact", "--images"])
def test_two_processes_write_what_one_writes(ann: Person, tmp_path: Path, how: str) -> None:
    options = ("export", "--all", "--format", "parquet", how)
    many = "from retold.synchronization import workers\nworkers._WORTH_PROCESSES = 0\n" + WRITERS
    few = "import retold.lake.dataset_files as layout\nlayout.PART_BYTES = 1500\n"
    for folder, code in (("one", few), ("two", few + many)):
        done = ann.spawn(*options, "-o", str(tmp_path / folder), code=code)
        assert done.code == 0, done
    assert dataset_rows(tmp_path / "two") == dataset_rows(tmp_path / "one")
    writers = {line.split()[1] for line in done.err.splitlines() if line.startswith("written ")}
    if sys.platform == "linux" and (os.cpu_count() or 1) > 1:
        assert len(writers - {"parent"}) == 2
    # What a process did not give would be made by whoever started it.
    assert ("parent" in writers) == (len(writers) == 1)


def _places(lake: Path) -> dict[str, str]:
    told = json.loads((lake / "retold.json").read_bytes())
    return {
        name: f"{part['agent']}/{part['month']}/{part['number']}"
        for part in told["parts"]
        for name in part["marks"]
    }


KILLER = """
import os, signal
left = [{}]
def counted(work):
    def done(*given, **named):
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return work(*given, **named)
    return done
for name in ("replace", "unlink", "fsync"):
    setattr(os, name, counted(getattr(os, name)))
"""


@pytest.mark.skipif(os.name == "nt", reason="nobody is killed there")
@pytest.mark.parametrize("is_first", [True, False])
def test_whoever_is_killed_leaves_whole_files_and_the_next_run_mends_it(
    ann: Person, tmp_path: Path, *, is_first: bool
) -> None:
    lake, before, wanted = tmp_path / "lake", tmp_path / "before", tmp_path / "wanted"
    before.mkdir()
    if not is_first:
        export_dataset(ann, before, "--all", "--no-redact")
    for change in (grown, new, forgotten):
        change(ann, 3, dice(5))
    ann.sync()
    export_dataset(ann, wanted, "--all", "--no-redact")
    places = [0, 1, 2, 3, 5, 8, 10, 13, 17, 21, 34, 55, 1000]
    codes = []
    for place in places:
        shutil.rmtree(lake, ignore_errors=True)
        shutil.copytree(before, lake)
        done = ann.spawn(
            "export",
            "--all",
            "--format",
            "parquet",
            "-o",
            str(lake),
            "--no-redact",
            code=KILLER.format(place),
        )
        codes.append(done.code)
        for file in lake.rglob("part-*.parquet"):
            parquet.read_table(file)
        export_dataset(ann, lake, "--agent", "gemini", "--no-redact")
        export_dataset(ann, lake, "--all", "--no-redact")
        assert dataset_rows(lake) == dataset_rows(wanted), place
        assert not [file for file in lake.rglob("*") if DRAFT.search(file.name)]
    assert codes[0] == -signal.SIGKILL
    assert codes.count(-signal.SIGKILL) > 5
    assert codes[-1] == 0


@pytest.mark.skipif(os.name == "nt", reason="nobody is killed there")
def test_what_was_half_written_is_not_taken_for_what_was_there(
    ann: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while a title was written that was then taken back: the files may be as large as they were."""
    monkeypatch.setattr("retold.lake.dataset_files.DatasetFolder.is_complete", lambda *_: True)
    lake, options = tmp_path / "lake", ("export", "--all", "--format", "parquet", "--no-redact")
    (key,) = [key for key, row in ann.rows().items() if row["first_prompt"] == "Where do herons nest?"]
    ann.run("name", key, "Title A")
    export_dataset(ann, lake, "--all", "--no-redact")
    before = dataset_rows(lake)
    is_seen = False
    for place in (5, 9, 11, 13):
        ann.run("name", key, "Title B")
        ann.spawn(*options, "-o", str(lake), code=KILLER.format(place))
        is_seen = is_seen or dataset_rows(lake) != before
        ann.run("name", key, "Title A")
        export_dataset(ann, lake, "--all", "--no-redact")
        assert dataset_rows(lake) == before, place
    assert is_seen
