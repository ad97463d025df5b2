"""`retold import` as people run it: what is taken, what is left, and what later syncs make of it."""

import shutil
import signal
import tracemalloc
from pathlib import Path

import pytest

from retold.archive.foreign import (
    OtherArchive,
    choose_latest,
    load_originals,
    open_archive,
    write_original,
    write_source,
)
from retold.archive.store import Store
from retold.demo.home import make_home
from retold.model.session import Message
from support.conversation_files import FORMS, ROOT, as_lines, claude_records, dice, turns, uuid, write_file
from support.export_inputs import NOW
from support.gemini_home import GeminiHome, session_id
from support.merged_archives import Machine, import_into, load_everything, load_sessions, load_tables
from support.person import Person
from support.synced_archive import sync_archive

FULL = """
import apsw
def full(*_, **__):
    raise apsw.FullError("database or disk is full")
import retold.synchronization.importer as importing
importing.choose_latest = full
"""


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    person = Person(tmp_path / "ann")
    for number, form in enumerate(FORMS.values()):
        form.write(person.folder, number, turns("perigee", f"tide{number}"))
    person.sync()
    return person


@pytest.fixture
def ben(tmp_path: Path) -> Person:
    person = Person(tmp_path / "ben")
    for number, form in enumerate(FORMS.values()):
        form.write(person.folder, number + 10, turns("vellum", f"reed{number}"))
    person.sync()
    return person


def keys(person: Person, *filters: str) -> set[str]:
    return {one["key"] for one in person.run("list", "--json", "--all", *filters).objects}


def test_it_tells_what_was_taken_and_a_trial_tells_the_same(ann: Person, ben: Person) -> None:
    before = load_tables(ann.archive)
    trial = ann.run("import", str(ben.archive), "--home", "ben", "--dry-run")
    assert "sessions: 4 new, 0 with more than before, 0 already here; would be taken: 4 files" in trial.err
    assert load_tables(ann.archive) == before
    done = ann.run("import", str(ben.archive / "archive.db"), "--home", "ben", "--json")
    told = done.objects[0]
    assert (told["new_sessions"], told["merged"], told["unchanged"], told["left"]) == (4, 0, 0, 0)
    assert {name: told[name] for name in ("files", "titles", "tags", "refused_titles", "problems")} == {
        "files": 4,
        "titles": 0,
        "tags": 0,
        "refused_titles": [],
        "problems": 0,
    }
    assert keys(ann, "--home", "ben") == keys(ben)
    assert keys(ann) == {*keys(ben), *(form.key(number) for number, form in enumerate(FORMS.values()))}
    again = ann.run("import", str(ben.archive), "--home", "ben")
    assert "0 new, 0 with more than before, 4 already here; taken: nothing" in again.err


def test_a_trial_makes_no_archive(tmp_path: Path, ben: Person) -> None:
    cy = Person(tmp_path / "cy")
    assert cy.run("import", str(ben.archive), "--dry-run").code == 0
    assert not cy.archive.exists()


def test_what_was_imported_is_found_shown_and_written_back(ann: Person, ben: Person) -> None:
    ann.run("import", str(ben.archive))
    key = FORMS["claude"].key(12)
    assert "asked vellum" in ann.run("show", key).out
    assert key in ann.run("search", "reed2").out
    assert keys(ann, "--home", "imported") == keys(ben)
    (ann.folder / "almanac").mkdir()
    assert ann.run("restore", key, "--project", str(ann.folder / "almanac")).code == 0
    assert list((ann.folder / ".claude").rglob(f"{uuid(12)}.jsonl"))
    assert not [one for one in ann.run("doctor", "--json").objects if one["finding"] == "lost"]


def test_later_syncs_read_it_without_the_other_file(
    ann: Person, ben: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann.run("import", str(ben.archive))
    before = load_everything(ann.archive)
    shutil.rmtree(ben.folder)
    ann.sync()
    assert load_everything(ann.archive) == before
    ann.sync("--reindex")
    assert load_everything(ann.archive) == before
    assert FORMS["claude"].key(12) in ann.run("search", "reed2").out
    for place in ("cluster", "discovery", "plan", "run", "update"):
        monkeypatch.setattr(f"retold.synchronization.{place}.REVISION", 10_000)
    ann.sync()
    assert load_everything(ann.archive) == before
    with Store(str(ann.archive)) as record:
        asked = "SELECT count(*) FROM sources WHERE revision <> 10000 AND NOT is_companion"
        assert record.row(asked) == (0,)


def test_a_file_of_ours_goes_on_beside_one_of_the_same_path(tmp_path: Path) -> None:
    write = FORMS["claude"].write
    one, other = Machine(tmp_path, "one"), Machine(tmp_path, "other")
    other.sync(lambda home: write(home, 1, turns("perigee", "elsewhere")))
    other.leave()
    one.sync(lambda home: write(home, 1, turns("perigee")))
    assert import_into(one.archive, other.archive).merged == 1
    one.sync(lambda home: write(home, 1, turns("perigee", "here")))
    (session,) = load_sessions(one.archive)
    said = [entry.prompt for entry in session.timeline if isinstance(entry, Message) and entry.prompt]
    assert sorted(said) == ["asked elsewhere", "asked here", "asked perigee"]
    states = {(source.home, source.state) for source in session.sources}
    assert states == {(None, "present"), ("other", "gone")}


def test_what_is_forgotten_here_stays_forgotten(ann: Person, ben: Person) -> None:
    ann.run("import", str(ben.archive))
    key = FORMS["claude"].key(12)
    ann.run("forget", "-y", key)
    told = ann.run("import", str(ben.archive), "--json").objects[0]
    assert (told["left"], told["new_sessions"], told["files"]) == (1, 0, 0)
    assert key not in keys(ann)
    assert b"reed2" not in (ann.archive / "archive.db").read_bytes()
    ann.sync("--reindex")
    assert key not in keys(ann)


def test_prompts_of_forgotten_sessions_are_struck_out(tmp_path: Path) -> None:
    ben = Person(tmp_path / "ben")
    made = GeminiHome(ben.folder)
    made.mark("almanac", ROOT)
    made.logs("almanac", [(1, "the secret tide"), (2, "the open tide")])
    ben.sync()
    ann = Person(tmp_path / "ann")
    ann.run("import", str(ben.archive))
    ann.run("forget", "-y", f"gemini:lost-{session_id(1)}")
    made.logs("almanac", [(1, "the secret tide"), (2, "the open tide"), (3, "a third")])
    ben.sync()
    assert ann.run("import", str(ben.archive)).code == 0
    assert keys(ann) == {f"gemini:lost-{session_id(2)}", f"gemini:lost-{session_id(3)}"}
    with Store(str(ann.archive)) as record:
        numbers = [number for (number,) in record.rows("SELECT id FROM originals")]
        assert not [number for number in numbers if b"secret" in record.originals.read(number)]


def test_what_the_other_has_forgotten_is_not_forgotten_here(ann: Person, ben: Person) -> None:
    ann.run("import", str(ben.archive))
    before = keys(ann)
    ben.run("forget", "-y", FORMS["claude"].key(12))
    ann.run("import", str(ben.archive))
    assert keys(ann) == before


def test_excluded_projects_stay_out(ann: Person, ben: Person) -> None:
    (ann.archive / "config.toml").write_text('exclude = ["almanac"]\n')
    before = keys(ann)
    told = ann.run("import", str(ben.archive), "--json").objects[0]
    assert (told["left"], told["new_sessions"]) == (4, 0)
    assert keys(ann) == before


def test_titles_and_tags_come_along(ann: Person, ben: Person) -> None:
    key = FORMS["claude"].key(12)
    ben.run("name", key, "Of reeds")
    ben.run("tag", key, "+shore")
    told = ann.run("import", str(ben.archive), "--json").objects[0]
    assert (told["titles"], told["tags"]) == (1, 1)
    assert keys(ann, "--tag", "shore") == {key}
    ann.run("name", key, "Mine")
    refused = ann.run("import", str(ben.archive), "--json").objects[0]
    assert refused["refused_titles"] == [{"ours": "Mine", "theirs": "Of reeds"}]
    assert "keeps its title" in ann.run("import", str(ben.archive)).err


def test_a_session_that_only_its_place_names_keeps_title_and_grave(tmp_path: Path) -> None:
    """An id that is no UUID may name many sessions: then the folder tells them apart, and that is another here."""
    ben, ann = Person(tmp_path / "ben"), Person(tmp_path / "ann")
    records = [{**one, "sessionId": "night"} for one in claude_records(1, turns("vellum"))]
    write_file(ben.folder / ".claude/projects/-home-ann-dev-almanac/night.jsonl", as_lines(records))
    ben.sync()
    ben.run("name", "claude:night", "Of nights")
    assert ann.run("import", str(ben.archive), "--json").objects[0]["titles"] == 1
    assert [one["title"] for one in ann.run("list", "--json").objects] == ["Of nights"]
    shutil.copytree(ben.archive, tmp_path / "backup")
    ben.run("forget", "-y", "claude:night")
    assert ben.run("import", str(tmp_path / "backup"), "--json").objects[0]["left"] == 1
    assert keys(ben) == set()


def test_a_label_that_is_none_is_wrong_usage(ann: Person, ben: Person) -> None:
    for label in ("", "a/b", "..", "x=y", "a\nb"):
        assert ann.run("import", str(ben.archive), "--home", label).code == 2


def test_homes_with_labels_keep_them(ann: Person, ben: Person, tmp_path: Path) -> None:
    cy = Person(tmp_path / "cy")
    cy.sync("--home", f"laptop={ann.folder}")
    cy.run("import", str(ben.archive), "--home", "ben")
    dee = Person(tmp_path / "dee")
    dee.run("import", str(cy.archive), "--home", "cy")
    assert keys(dee, "--home", "laptop") == keys(ann)
    assert keys(dee, "--home", "ben") == keys(ben)
    assert keys(dee, "--home", "cy") == set()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nobody is killed like this here")
def test_an_import_that_was_killed_is_completed_by_the_next_sync(
    ann: Person, ben: Person, tmp_path: Path
) -> None:
    whole = shutil.copytree(ann.archive, tmp_path / "whole")
    Person(ann.folder, whole).run("import", str(ben.archive))
    code = "import retold.synchronization.importer as one, os, signal\none.sync_or_rebuild = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
    assert ann.spawn("import", str(ben.archive), code=code).code == -signal.SIGKILL
    assert keys(ann).isdisjoint(keys(ben))
    ann.sync()
    assert load_everything(ann.archive) == load_everything(whole)


def test_a_full_disk_stops_it_and_nothing_is_lost(ann: Person, ben: Person) -> None:
    before = load_tables(ann.archive)
    done = ann.spawn("import", str(ben.archive), code=FULL)
    assert (done.code, "the disk is full" in done.err) == (4, True)
    assert {name: rows for name, rows in load_tables(ann.archive).items() if name != "clues"} == {
        name: rows for name, rows in before.items() if name != "clues"
    }
    assert ann.run("import", str(ben.archive), "--json").objects[0]["new_sessions"] == 4


def test_ten_thousand_files_are_no_matter(ann: Person, tmp_path: Path) -> None:
    many = Person(tmp_path / "many")
    FORMS["claude"].write(many.folder, 20, turns("vellum"))
    many.sync()
    with Store(str(many.archive), can_write=True) as record, record.connection:
        ask = record.connection.execute
        ask(
            "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 10000)"
            " INSERT INTO sources SELECT NULL, agent, home, folder, label, folder || '/-x/' || n || '.jsonl', n, 0, 1, size,"
            " modified_ns, tail, read_ns, revision, refusal, identity FROM sources, number WHERE sources.id = 1"
        )
        ask("INSERT INTO originals SELECT NULL, random(), id, 1, 0, 0, x'' FROM sources WHERE id > 1")
    done = ann.run("import", str(many.archive), "--dry-run", "--json")
    assert done.code == 0
    (told,) = done.objects
    assert (told["new_sessions"], told["problems"]) == (1, 10_000)
    assert done.err.count("nothing was said in it") == 10_000


@pytest.mark.slow
def test_a_large_original_is_taken_a_piece_at_a_time(tmp_path: Path) -> None:
    where = (
        "claude",
        "/home/ben/.claude/projects/x/y.jsonl",
        "/home/ben/.claude",
        "/home/ben/.claude/projects",
        "ben",
        "y",
    )
    noise = dice(1)
    with Store(str(tmp_path / "ben"), can_write=True) as record, record.connection:
        source = write_source(record, *where, is_companion=False)
        write_original(record, source, ("one",), 1, (noise.randbytes(1 << 20) for _ in range(200)))
        choose_latest(record, source)
    with (
        open_archive(str(tmp_path / "ben"), None) as theirs,
        Store(str(tmp_path / "ann"), can_write=True) as record,
        record.connection,
    ):
        foreign = OtherArchive(theirs.connection, theirs.path)
        ((_, original),) = foreign.originals()
        assert original.size == 200 << 20
        tracemalloc.start()
        source = write_source(record, *where, is_companion=False)
        write_original(record, source, ("one",), 1, foreign.chunks(original))
        choose_latest(record, source)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert load_originals(record, source) == [(1, 200 << 20, 1)]
    assert peak < 32 << 20


def test_every_conversation_is_counted_once_whatever_becomes_of_it(tmp_path: Path) -> None:
    make_home(tmp_path / "demo", NOW)
    other = sync_archive(tmp_path / "other", {"HOME": str(tmp_path / "demo" / "home")})
    own = tmp_path / "own"
    done = import_into(own, tmp_path / "other", excluded=["crumb-orders"])
    with Store(str(own)) as record:
        kept = record.row("SELECT count(*) FROM sessions")
    assert kept == (done.new_sessions,)
    assert done.new_sessions + done.left == len(other.sessions())
    assert (done.merged, done.unchanged, done.left > 5) == (0, 0, True)


def test_a_log_that_cannot_be_struck_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ben, ann = Person(tmp_path / "ben"), Person(tmp_path / "ann")
    GeminiHome(ben.folder).logs("almanac", [(1, "Where do herons nest?")])
    FORMS["codex"].write(ann.folder, 5, turns("vole"))
    for person in (ben, ann):
        person.sync()
    assert ann.run("forget", "-y", FORMS["codex"].key(5)).code == 0
    monkeypatch.setattr("retold.synchronization.import_selection.LARGEST", 10)
    done = import_into(ann.archive, ben.archive)
    assert (done.new_sessions, [one.code for one in done.problems]) == (0, ["unreadable-file"])
    assert "left out" in done.problems[0].message


def test_copies_of_a_stopped_import_go_with_the_next(ann: Person, ben: Person) -> None:
    left = ann.archive / "import-abc123"
    left.mkdir()
    (left / "archive.db").write_bytes(b"theirs")
    import_into(ann.archive, ben.archive)
    assert not left.exists()


def test_an_archive_that_began_with_an_import_says_that_nobody_read_ones_own_homes(
    tmp_path: Path, ben: Person
) -> None:
    person = Person(tmp_path / "eve")
    person.run("import", str(ben.archive))
    assert "your own homes were never read" in person.run("list").err
    assert "your own homes were never read" in person.run("doctor").out
    person.sync()
    assert "never read" not in person.run("list").err


def test_a_file_that_is_no_archive_makes_none(tmp_path: Path) -> None:
    person = Person(tmp_path / "eve")
    (tmp_path / "other.db").write_bytes(b"nothing of ours" * 100)
    assert person.run("import", str(tmp_path / "other.db")).code == 1
    assert not (person.archive / "archive.db").exists()


def test_an_import_that_was_stopped_is_completed_and_counted(
    tmp_path: Path, ben: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person(tmp_path / "eve")
    count = len(ben.rows())

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("retold.synchronization.importer.sync_or_rebuild", stopped)
        assert person.run("import", str(ben.archive)).code == 130
    done = person.run("import", "--json", str(ben.archive)).objects[0]
    assert count > 0
    assert (done["completed"], done["new_sessions"], done["unchanged"]) == (count, 0, count)
    assert len(person.rows()) == count
    again = person.run("import", str(ben.archive))
    assert "stopped" not in again.err
