"""Parts of sessions: put together they are the whole, whether they were kept in stretches or read from it."""

import json
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from retold.agents.registry import NotASession
from retold.archive.database import connect
from retold.archive.index.reader import Index, StoredTimeline
from retold.archive.index.writer import IndexWriter
from retold.archive.schema import INDEX_MARK, INDEX_STEPS
from retold.archive.store import Store, compress
from retold.demo.home import make_home
from retold.model.builder import Draft, assemble_session
from retold.model.serialization import ENTRY_PACKER, bundle
from retold.model.session import (
    Coverage,
    Entry,
    Message,
    Project,
    Session,
    SourceFile,
    Text,
    ToolCall,
    prompt_words,
)
from retold.projects.matching import matches_project
from retold.sessions import conversations, slices, timelines
from retold.sessions.load import load_raw, load_session
from retold.sessions.slices import SLICE_BYTES, SessionCache, load_slice
from retold.sessions.timelines import LINE, SessionTurn
from retold.synchronization.cluster import make_index_entry
from retold.synchronization.user_changes import forget
from support import cases, fake_agent
from support.conversation_files import (
    FORMS,
    Form,
    as_lines,
    claude_records,
    gemini_head,
    gemini_json,
    gemini_key,
    gemini_records,
    turns,
    uuid,
    write_file,
)
from support.export_inputs import NOW, generated_sessions
from support.full_session import agent, call, user
from support.person import Person, renames_undone
from support.synced_archive import SyncedArchive, sync_archive

pytestmark = pytest.mark.slow

FEW = 4
"""Entries in a stretch here, so that short sessions have several."""
SIZES = ((2, SLICE_BYTES), (1000, SLICE_BYTES), (1000, 700))
SHORT = """
from retold.sessions import conversations, timelines
conversations.LONG_SESSION, timelines._CHUNK_ENTRIES = 0, 4
"""
NEXT_READER = "from retold.synchronization import fingerprints\nfingerprints.REVISION += 1\n"


@pytest.fixture(autouse=True)
def all_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every session be long enough to be kept in stretches, and these be short."""
    monkeypatch.setattr(conversations, "LONG_SESSION", 0)
    monkeypatch.setattr(timelines, "_CHUNK_ENTRIES", FEW)


@pytest.fixture(autouse=True)
def none_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing that was read whole answer for what is kept."""
    monkeypatch.setattr(slices, "_CACHE", SessionCache(-1))


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path / "ann")


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Form:
    return FORMS[request.param]


# What has to hold of every archive ---------------------------------------------------------------------------------


def keys(record: Store) -> list[tuple[str, bool]]:
    """Return the keys of all sessions, each with whether it has files of its own."""
    return list(record.rows("SELECT key, cluster IS NOT NULL FROM sessions"))


def check(folder: Path | str, *, is_kept: bool = True) -> list[Session]:
    """Compare the parts of every session in an archive with the whole; return those in the full view."""
    found = []
    with Store(str(folder)) as record:
        for key, has_files in keys(record):
            with pytest.MonkeyPatch.context() as patch:
                expected = told(load_session(record, key))
                if is_kept and has_files:
                    patch.setattr(slices, "load_raw", refused)
                for count, room in SIZES:
                    same(put_together(record, expected, count, room), expected)
                assert slices.load_turns(record, key) == tuple(outline(expected.timeline))
                parts = [part.session.timeline for part in slices.load_slices(record, key, 7)]
                assert tuple(chain.from_iterable(parts)) == expected.timeline
            active = told(load_session(record, key, "active"))
            same(put_together(record, active, 5, SLICE_BYTES), active)
            assert slices.load_turns(record, key, "active") == tuple(outline(active.timeline))
            found.append(expected)
    assert found
    return found


def told(session: Session | None) -> Session:
    assert session is not None
    return session


def refused(*_: object) -> Session:
    raise AssertionError("the whole is read for a part")


def same(found: Session, expected: Session) -> None:
    assert found == expected
    assert repr(found) == repr(expected)  # 1 is 1.0, and True is 1


def put_together(record: Store, whole: Session, count: int, room: int) -> Session:
    """Return a session of its slices, each of which has to be right."""
    place = 0
    entries: list[Entry] = []
    sizes = [len(ENTRY_PACKER.pack(entry)) for entry in whole.timeline]
    while True:
        part = load_slice(record, whole.key, place, count, whole.view, room)
        assert part is not None
        assert (part.first, part.total) == (place, len(sizes))
        assert part.size == sum(source.bytes for source in whole.sources)
        end = place + len(part.session.timeline)
        assert end - place <= count
        marks = 50 * (end - place)  # bytes that may be told besides
        assert end - place < 2 or sum(sizes[place:end]) <= room + marks
        assert end - place == count or end == len(sizes) or sum(sizes[place : end + 1]) > room - marks
        entries.extend(part.session.timeline)
        if place == len(sizes):
            return msgspec.structs.replace(part.session, timeline=tuple(entries))
        assert end > place
        place = end


def outline(timeline: Iterable[Entry]) -> Iterator[SessionTurn]:
    """Yield what people said, by the rule: the words of each, and what was done until the next."""
    entries = list(timeline)
    places = [place for place, entry in enumerate(entries) if prompt_words(entry) is not None]
    for place, end in zip(places, [*places[1:], len(entries)], strict=False):
        message = entries[place]
        assert isinstance(message, Message)
        followed = [one for one in entries[place:end] if isinstance(one, Message)]
        calls = [part for one in followed for part in one.parts if isinstance(part, ToolCall)]
        number = sum(isinstance(one, Message) for one in entries[: place + 1])
        line = " ".join((prompt_words(message) or "")[: 4 * LINE].split())[:LINE]
        errors = sum(one.status == "error" for one in calls)
        yield SessionTurn(
            place, number, line, message.fate, message.at, message.own, calls=len(calls), errors=errors
        )


def index_rows(folder: Path, asked: str) -> list[tuple[object, ...]]:
    """Return what a question to all files of the index gives; or do what it says."""
    found: list[tuple[object, ...]] = []
    for path in sorted((folder / "index").glob("*.db")):
        with sqlite3.connect(path) as connection:
            found += connection.execute(asked).fetchall()
        connection.close()
    return found


# Homes -------------------------------------------------------------------------------------------------------------


def test_the_made_up_home(tmp_path: Path) -> None:
    made = make_home(tmp_path / "demo", NOW)
    archive = sync_archive(made.variables["RETOLD_HOME"], made.variables)
    found = check(archive.folder)
    assert len(found) > 30
    assert any(part.child for one in found for part in calls(one))


def calls(session: Session) -> Iterator[ToolCall]:
    for entry in session.timeline:
        if isinstance(entry, Message):
            yield from (part for part in entry.parts if isinstance(part, ToolCall))


def test_the_home_whose_totals_are_known(shared: Path, tmp_path: Path) -> None:
    generated_sessions(shared, tmp_path)
    check(tmp_path / "retold")


def test_every_case(tmp_path: Path) -> None:
    found = [one for case in cases.NAMES for one in case_sessions(case, tmp_path / case)]
    with fake_agent.registered():
        check(put(tmp_path, found).folder)


def case_sessions(case: str, folder: Path) -> Iterable[Session]:
    try:
        return list(cases.case_sessions(case, cases.copy_case(case, folder)))
    except NotASession:
        return ()


def put(folder: Path, sessions: Iterable[Session]) -> SyncedArchive:
    """Bring sessions into an archive, each from a file of its own."""
    for number, one in enumerate(sessions):
        fake_agent.write(folder / "home", f"{number:04}", msgspec.structs.replace(one, agent=fake_agent.NAME))
    return sync_archive(
        folder / "retold", {fake_agent.HOME_VARIABLE: str(folder / "home")}, agents=(fake_agent.NAME,)
    )


def made(key: str, entries: Iterable[Entry]) -> Session:
    timeline = tuple(entries)
    draft = Draft(
        key=key, agent=fake_agent.NAME, native_id=key, kind="main", project=Project(None, None, None, "none"),
        started_at=NOW, ended_at=NOW, status="success", sources=(SourceFile(None, key, "made", 1),),
        coverage=Coverage(1, 0), problems=(), full=timeline, active=timeline,
    )  # fmt: skip
    return assemble_session(draft, "full")


words = some.text(max_size=400)
said = some.builds(lambda text, own: user(1, text, own=own), words, some.booleans())
copied = some.builds(lambda text: user(1, None, Text(text), own=False), words)
injected = some.builds(lambda text: user(1, None, Text(text)), words)
done = some.builds(
    lambda statuses: agent(2, *(call("x", status=status) for status in statuses)),
    some.lists(some.sampled_from(["success", "error", "cancelled"]), max_size=3),
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some.lists(said | copied | injected | done, max_size=14))
def test_any_timeline(tmp_path_factory: pytest.TempPathFactory, timeline: list[Entry]) -> None:
    with fake_agent.registered():
        check(put(tmp_path_factory.mktemp("any"), [made("made:one", timeline)]).folder)


def test_what_no_fast_form_can_hold(person: Person) -> None:
    records = gemini_records(1, turns("one", "two", "three", "four"))
    records[0]["content"] = "half \ud83d of a character"
    records[3]["toolCalls"][0]["args"] = {"number": 2**90, "deep": [[{}, None, 1.0, True]]}
    document = {**gemini_head(1, turns("one")), "messages": records}
    file = gemini_json(person.folder, 1, ())
    write_file(file, json.dumps(document))
    person.sync()
    (session,) = check(person.archive)
    assert session.first_prompt == "half \ufffd of a character"
    assert [one.arguments for one in calls(session)][1]["number"] == 2**90


def test_a_session_that_is_not_there(person: Person) -> None:
    gemini_json(person.folder, 1, turns("one"))
    person.sync()
    with Store(str(person.archive)) as record:
        assert load_slice(record, "gemini:none", 0, 10) is None
        assert slices.load_turns(record, "gemini:none") == ()


def test_a_part_that_cannot_be(person: Person) -> None:
    gemini_json(person.folder, 1, turns("one"))
    person.sync()
    with Store(str(person.archive)) as record:
        for first, count in ((-5, 1), (0, 0), (0, -3)):
            part = load_slice(record, gemini_key(1), first, count)
            assert part is not None
            assert (part.first, len(part.session.timeline)) == (0, max(count, 0))


def test_a_huge_entry_is_a_part_of_its_own(person: Person) -> None:
    gemini_json(person.folder, 1, turns("small", "large " * 2000, "small again"))
    person.sync()
    with Store(str(person.archive)) as record:
        part = load_slice(record, gemini_key(1), 2, 40, limit=5000)
        assert part is not None
        assert len(part.session.timeline) == 1
    check(person.archive)


def test_short_sessions_are_not_kept(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    gemini_json(person.folder, 1, turns("one"))
    person.sync()
    assert index_rows(person.archive, "SELECT 1 FROM timeline_chunks UNION ALL SELECT 1 FROM timelines") == []
    check(person.archive, is_kept=False)


def test_a_long_session_is_kept(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    gemini_json(person.folder, 1, turns(*(f"{number} " * 80_000 for number in range(8))))
    person.sync()
    assert len(index_rows(person.archive, "SELECT 1 FROM timeline_chunks")) > 8
    check(person.archive)


# What the archive alone knows --------------------------------------------------------------------------------------


def test_what_belongs_to_another_session_is_marked(person: Person) -> None:
    first, later = claude_records(1, turns("branching", "twice")), claude_records(1, turns("on", "and on"), 2)
    folder = person.folder / ".claude/projects/-home-ann-dev-almanac"
    write_file(folder / f"{uuid(1)}.jsonl", as_lines(first))
    fork = [{**record, "sessionId": uuid(2)} for record in (*first, *later)]
    write_file(folder / f"{uuid(2)}.jsonl", as_lines(fork))
    person.sync()
    owned = {one.key: {entry.own for entry in one.timeline} for one in check(person.archive)}
    assert owned == {f"claude:{uuid(1)}": {True}, f"claude:{uuid(2)}": {True, False}}


def test_a_subagent_with_another_key_is_named_by_it(tmp_path: Path) -> None:
    parent = made("made:p", [user(1, "go"), agent(2, call("x", child="made:c"))])
    children = [made("made:c", [user(3, text)]) for text in ("this one", "that one")]
    with fake_agent.registered():
        found = check(put(tmp_path, [*children, parent]).folder)
    named = {part.child for one in found for part in calls(one)}
    assert len(named) == 1
    assert named != {"made:c"}
    assert named < {one.key for one in found}


def test_a_title_and_tags_are_told_at_once(person: Person, form: Form) -> None:
    form.write(person.folder, 1, turns("one", "two", "three"))
    person.sync()
    person.run("name", form.key(1), "a title of mine")
    person.run("tag", form.key(1), "+tidal")
    (session,) = check(person.archive)
    assert (session.title, session.tags) == ("a title of mine", ("tidal",))


# However it came to be -----------------------------------------------------------------------------------------------


def test_what_stays_is_not_written_again(person: Person, form: Form) -> None:
    words = [f"word{number}" for number in range(12)]
    form.write(person.folder, 1, turns(*words))
    person.sync()
    before = index_rows(person.archive, "SELECT id, seq, checksum FROM timeline_chunks ORDER BY seq")
    form.write(person.folder, 1, turns(*words, "more", "and more", "and yet more"))
    person.sync()
    after = index_rows(person.archive, "SELECT id, seq, checksum FROM timeline_chunks ORDER BY seq")
    assert len(before) > 4
    assert after[: len(before) - 1] == before[:-1]
    assert len(after) > len(before)
    check(person.archive)


def test_a_session_that_is_written_anew(person: Person, form: Form) -> None:
    form.write(person.folder, 1, turns(*(f"word{number}" for number in range(12))))
    person.sync()
    form.write(person.folder, 1, turns("shorter"))
    person.sync()
    check(person.archive)


def test_a_session_of_which_less_is_left(tmp_path: Path) -> None:
    entries = [user(number, f"word{number}") for number in range(20)]
    with fake_agent.registered():
        for count in (20, 7, 8, 1, 0):
            check(put(tmp_path, [made("made:one", entries[:count])]).folder)
            assert len(index_rows(tmp_path / "retold", "SELECT 1 FROM timeline_chunks")) == -(-count // FEW)


TWO_WORKERS = f"""
import retold.sessions.timelines, retold.synchronization.run
retold.sessions.conversations.LONG_SESSION, retold.sessions.timelines._CHUNK_ENTRIES = 0, {FEW}
retold.synchronization.run.pool_size = lambda size: 2
"""
"""The same settings in a process that may fork: here, other threads run."""


def test_two_processes(person: Person) -> None:
    for number in range(12):
        form = list(FORMS.values())[number % len(FORMS)]
        form.write(person.folder, number, turns(*(f"word{place}" for place in range(number))))
    assert person.spawn("sync", code=TWO_WORKERS).code == 0
    check(person.archive)
    assert {path.stem for path in holders(person)} == {"text-0", "text-1"}
    for number in range(12):
        form = list(FORMS.values())[number % len(FORMS)]
        form.write(person.folder, number, turns(*(f"word{place}" for place in range(number + 3))))
    assert person.spawn("sync", code=TWO_WORKERS).code == 0
    check(person.archive)


def holders(person: Person) -> Iterator[Path]:
    for path in (person.archive / "index").glob("*.db"):
        with sqlite3.connect(path) as connection:
            if connection.execute("SELECT 1 FROM timelines").fetchone():
                yield path
        connection.close()


@pytest.mark.parametrize("has_sources", [True, False])
@pytest.mark.parametrize("code", ["", NEXT_READER], ids=["an index made anew", "a newer reader"])
def test_all_is_made_anew(person: Person, code: str, has_sources: bool) -> None:  # noqa: FBT001 - a case
    for number, form in enumerate(FORMS.values()):
        form.write(person.folder, number, turns("one", "two", "three"))
    person.sync()
    if not has_sources:
        for path in list(person.sources()):
            path.unlink()
    done = person.spawn("sync", *(() if code else ("--reindex",)), code=SHORT + code)
    assert done.code == 0, done
    check(person.archive)


def test_an_index_from_before_there_were_stretches(person: Person) -> None:
    for number, form in enumerate(FORMS.values()):
        form.write(person.folder, number, turns("one", "two", "three"))
    person.age()
    person.sync()
    dropped = ("DROP TABLE stretches", "DROP TABLE timelines", "PRAGMA user_version = 1")
    earlier = (
        "DROP TABLE identifier_lists",
        "CREATE TABLE identifiers (name TEXT PRIMARY KEY, session INTEGER)",
    )
    for asked in (*earlier, *renames_undone(INDEX_STEPS[3]), *dropped):
        index_rows(person.archive, asked)
    assert person.keys("two")  # which makes nothing anew
    check(person.archive, is_kept=False)
    assert person.sync()["read"] == 0
    gemini_json(person.folder, 0, turns("one", "two", "three", "four"))
    person.sync()
    check(person.archive, is_kept=False)
    assert 0 < len(index_rows(person.archive, "SELECT 1 FROM timelines")) < len(FORMS)
    assert person.run("sync", "--reindex").code == 0
    check(person.archive)


def test_chunks_without_their_texts_are_read(person: Person) -> None:
    """An earlier version compressed each chunk by itself."""
    for number, form in enumerate(FORMS.values()):
        form.write(person.folder, number, turns("one", "two", "three"))
    person.sync()
    with Store(str(person.archive)) as record:
        for file in Index(record, matches_project).files:
            file.connection.execute("PRAGMA query_only = 0")
            for entry, total in list(file.rows("SELECT session, total FROM timelines")):
                timeline = StoredTimeline(file, entry, total, b"")
                for seq, data in list(timeline.chunks(0)):
                    sql = (
                        "UPDATE timeline_chunks SET packed = ?, needs_texts = 0 WHERE session = ? AND seq = ?"
                    )
                    file.connection.execute(sql, (compress(data), entry, seq))
            file.connection.execute("COMMIT")
            file.connection.close()
    check(person.archive)


def test_a_forgotten_session_takes_its_stretches_along(person: Person, form: Form) -> None:
    strange = 0x5000  # its id begins otherwise
    for number in (1, strange):
        form.write(person.folder, number, turns("one", "two", "three"))
    person.sync()
    forget(str(person.archive), [form.key(1)])
    assert len(index_rows(person.archive, "SELECT DISTINCT session FROM timeline_chunks")) == 1
    check(person.archive)
    forget(str(person.archive), [form.key(strange)])
    assert index_rows(person.archive, "SELECT 1 FROM timeline_chunks UNION ALL SELECT 1 FROM timelines") == []


def test_a_session_that_is_taken_out_of_the_index_takes_its_stretches_along(tmp_path: Path) -> None:
    shard = IndexWriter(str(tmp_path / "index/text-0.db"), "an id")
    session = made("made:one", [user(1, "one"), agent(2, call("x"))])
    for name in (1, 2):
        shard.put(make_index_entry(session, name, b"stamp", (), is_long=True))
    shard.remove(1)
    shard.close()
    assert index_rows(
        tmp_path, "SELECT session FROM timeline_chunks UNION ALL SELECT session FROM timelines"
    ) == [
        (2,),
        (2,),
    ]


def test_nobody_names_a_forgotten_subagent(person: Person) -> None:
    records = claude_records(1, turns("one", "two"))
    records[1]["message"]["content"][0] |= {"name": "Task", "input": {"prompt": "asked lookout"}}
    side = [{**one, "isSidechain": True, "agentId": "a1"} for one in claude_records(1, turns("lookout"))]
    file = person.folder / f".claude/projects/-home-ann-dev-almanac/{uuid(1)}.jsonl"
    write_file(file, as_lines(records))
    write_file(file.with_suffix("") / "subagents/agent-a1.jsonl", as_lines(side))
    person.sync()
    assert {part.child for one in check(person.archive) for part in calls(one)} == {
        None,
        f"claude:{uuid(1)}/a1",
    }
    forget(str(person.archive), [f"claude:{uuid(1)}/a1"])
    for _ in range(2):
        (parent,) = check(person.archive, is_kept=False)
        assert {part.child for part in calls(parent)} == {None}
        write_file(
            file, as_lines([*records, *claude_records(1, turns("three"), 2)])
        )  # with the other still there
        person.sync()


# Damage --------------------------------------------------------------------------------------------------------------


def rewritten(data: bytes) -> Callable[[Path], object]:
    told = f"UPDATE timeline_chunks SET packed = x'{compress(data).hex()}'"  # noqa: S608 - ours
    return lambda folder: index_rows(folder, told)


def asked(question: str) -> Callable[[Path], object]:
    return lambda folder: index_rows(folder, question)


def of_index(harm: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda folder: [harm(path) for path in (folder / "index").glob("*.db")]


HARMS: dict[str, Callable[[Path], object]] = {
    "cut short": asked("UPDATE timeline_chunks SET packed = substr(packed, 1, length(packed) / 2)"),
    "zeros": asked("UPDATE timeline_chunks SET packed = zeroblob(80)"),
    "nothing": asked("UPDATE timeline_chunks SET packed = x''"),
    "no bundle": rewritten(b"\x01"),
    "no entries": rewritten(bundle([b"\x01"] * FEW)),
    "empty entries": rewritten(bundle([b""] * FEW)),
    "no JSON": rewritten(bundle([b"{"] * FEW)),
    "too few": rewritten(bundle([])),
    "without their texts": asked("UPDATE timeline_chunks SET needs_texts = 0"),
    "of other texts": asked("UPDATE docs SET regions = '' WHERE seq = 5"),
    "of texts that are gone": asked("UPDATE entries SET originals = '1f'"),
    "of no text": asked("UPDATE docs SET regions = '0.1.3'"),
    "without a beginning": asked("DELETE FROM timeline_chunks WHERE seq = 0"),
    "with a gap": asked("DELETE FROM timeline_chunks WHERE seq = 4"),
    "without an end": asked("DELETE FROM timeline_chunks WHERE seq > 4"),
    "without any": asked("DELETE FROM timeline_chunks"),
    "not known": asked("DELETE FROM timelines"),
    "no outline": asked("UPDATE timelines SET outline = x'00'"),
    "half an outline": asked("UPDATE timelines SET outline = substr(outline, 1, length(outline) / 2)"),
    "of another time": asked("UPDATE entries SET stamp = x'00'"),
    "no table of stretches": asked("DROP TABLE timeline_chunks"),
    "no table of timelines": asked("DROP TABLE timelines"),
    "garbage": of_index(lambda path: path.write_bytes(b"garbage" * 5000)),
    "a half": of_index(lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])),
    "missing": of_index(Path.unlink),
    "no index": lambda folder: shutil.rmtree(folder / "index"),
}


@pytest.mark.parametrize("harm", HARMS)
def test_what_is_damaged_is_read_from_the_whole(person: Person, harm: str) -> None:
    for number, form in enumerate(FORMS.values()):
        form.write(person.folder, number, turns(*(f"word{place}" for place in range(8))))
    person.sync()
    expected = check(person.archive)
    HARMS[harm](person.archive)
    assert check(person.archive, is_kept=False) == expected
    if "outline" not in harm:
        with pytest.raises(AssertionError, match="the whole is read"):
            check(person.archive)


def test_one_long_session_is_read_whole_at_a_time(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    next(iter(FORMS.values())).write(person.folder, 0, turns(*(f"word{place}" for place in range(8))))
    person.sync()
    at_work: list[int] = []
    read = load_raw

    def watched(*given: Any) -> Session:
        at_work.append(len(at_work))
        assert len(at_work) == 1, "another is being read"
        time.sleep(0.05)
        found = read(*given)
        at_work.pop()
        return found

    monkeypatch.setattr(slices, "load_raw", watched)

    def ask(_: int) -> int:
        with Store(str(person.archive)) as record:
            key = keys(record)[0][0]
            part = slices.load_slice(record, key, 0, 3, "active")
            assert part is not None
            return len(slices.load_turns(record, key, "active"))

    with ThreadPoolExecutor(3) as threads:
        assert set(threads.map(ask, range(6))) == {8}


def test_an_index_of_before_keeps_its_stretches(tmp_path: Path) -> None:
    path = str(tmp_path / "index.db")
    older = connect(path, INDEX_MARK, INDEX_STEPS[:2])
    older.execute("INSERT INTO stretches VALUES (1, 2, 3, 4, x'05', x'06')")
    older.close()
    now = connect(path, INDEX_MARK, INDEX_STEPS)
    assert list(now.execute("SELECT * FROM timeline_chunks")) == [(1, 2, 3, b"\x05", b"\x06", 0)]
    now.close()
