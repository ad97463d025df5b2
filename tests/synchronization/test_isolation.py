"""One bad file or one damaged original costs no other: the rest is archived, listed and found."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retold.agents.registry import AGENTS
from retold.archive.store import Store
from retold.archive.writer import Writer
from retold.model.problem import problem
from retold.synchronization.snapshot import FileChangedError
from retold.synchronization.workers import TooSlow
from support.conversation_files import FORMS, as_lines, claude_records, thread, turns, uuid, write_file
from support.person import Person, archive_contents, table_differences

pytestmark = pytest.mark.slow

COUNT = 40
POISONED, DAMAGED = 5, 6
"""Numbers of sessions: the reader fails on one, and the archive's copy of the other is damaged."""
BUDGET, TOO_LONG = 2.0, 60.0
"""Seconds that a reader has for a log, enough for a busy machine, and the seconds that a slow reader takes."""


def form(number: int) -> Any:
    return list(FORMS.values())[number % len(FORMS)]


def write(person: Person, number: int, *words: str) -> None:
    """Write a session that shares its cluster with no other."""
    form(number).write(person.folder, number << 12, turns(*words))


def key(number: int) -> str:
    return str(form(number).key(number << 12))


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path / "ann")
    for number in range(COUNT):
        write(person, number, f"word{number}")
    return person


@pytest.fixture
def poison(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let a step of every reader fail on some files, as a bug of the reader would make it."""

    def fail_on(*files: Path, step: str = "read", error: type[BaseException] = TypeError) -> None:
        names = {file.name for file in files}
        for agent in AGENTS.values():
            whole = getattr(agent, step)

            def failing(first: Any, *more: Any, whole: Any = whole, **others: Any) -> Any:
                readings = [first] if step in ("group_key", "log_folder") else first
                sources = [first] if step == "read" else [getattr(one, "source", one) for one in readings]
                if any(source.path.name in names for source in sources):  # an import moves files
                    raise error("unhashable type: 'list'")
                return whole(first, *more, **others)

            monkeypatch.setattr(agent, step, failing)

    return fail_on


def file_of(person: Person, number: int) -> Path:
    (file,) = [
        path for path in person.sources() if f"word{number}" in re.findall(r"word\d+", path.read_text())
    ]
    return file


def file_holding(person: Person, word: str) -> Path:
    (file,) = [path for path in person.sources() if word in path.read_text()]
    return file


def damage(person: Person, number: int) -> Path:
    """Delete a session's file, and flip a bit in the archive's only copy of it."""
    file = file_of(person, number)
    file.unlink()
    damage_original(person, file)
    return file


def damage_original(person: Person, file: Path, *, is_earlier: bool = False) -> None:
    """Flip a bit in the archive's copy of a file."""
    with Store(str(person.archive), can_write=True) as record:
        chunk, packed = next(
            record.rows(
                "SELECT chunks.id, packed FROM chunks JOIN pieces ON chunk = chunks.id JOIN originals ON original = originals.id"
                " JOIN sources ON sources.id = source WHERE path = ? AND NOT (is_latest AND ?)",
                (str(file), is_earlier),
            )
        )
        flipped = bytearray(packed)
        flipped[len(flipped) // 2] ^= 4
        record.connection.execute("UPDATE chunks SET packed = ? WHERE id = ?", (bytes(flipped), chunk))


def kept_bytes(person: Person, file: Path) -> bytes:
    with Store(str(person.archive)) as record:
        asked = "SELECT originals.id FROM originals JOIN sources ON sources.id = source WHERE path = ?"
        (number,) = next(record.rows(asked, (str(file),)))
        return record.originals.read(number)


def are_there(person: Person, but: set[int]) -> None:
    others = [number for number in range(COUNT) if number not in but]
    assert {*map(key, others)} <= person.rows().keys()
    assert {*map(key, others)} <= {*person.keys("word*", *(f"-word{number}" for number in but), "-n", "100")}
    for number in others[: len(FORMS)]:
        assert person.keys(f"word{number}") == [key(number)]


@pytest.mark.parametrize("step", ["read", "join"])
@pytest.mark.parametrize("error", [TypeError, MemoryError, RecursionError])
def test_a_file_on_which_the_reader_fails_costs_no_other_and_its_bytes_are_kept(
    person: Person, poison: Callable[..., None], step: str, error: type[BaseException]
) -> None:
    file = file_of(person, POISONED)
    poison(file, step=step, error=error)
    done = person.run("sync", "--json")
    assert done.code == 0, done
    assert done.objects[0]["problems"] >= 1
    assert "reader-failed" in done.err
    assert str(file) in done.err
    are_there(person, {POISONED})
    assert key(POISONED) not in person.rows()
    assert kept_bytes(person, file) == file.read_bytes()
    again = person.sync()
    assert (again["read"], again["problems"]) == (0, done.objects[0]["problems"])


def test_a_document_that_is_too_long_is_told_and_its_bytes_are_kept(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = file_of(person, POISONED)
    for agent in AGENTS.values():

        def read(source: Any, *more: Any, whole: Any = agent.read) -> Any:
            readings = whole(source, *more)
            return problem("too-long", "a document", source.display_path) if source.path == file else readings

        monkeypatch.setattr(agent, "read", read)
    done = person.run("sync", "--json")
    assert done.code == 0, done
    assert "too-long" in done.err
    are_there(person, {POISONED})
    assert kept_bytes(person, file) == file.read_bytes()
    again = person.sync()
    assert (again["read"], again["problems"]) == (0, done.objects[0]["problems"])


def test_a_session_that_was_read_stays_when_the_reader_fails_on_its_file(
    person: Person, poison: Callable[..., None]
) -> None:
    person.sync()
    before = person.show(key(POISONED))
    write(person, POISONED, f"word{POISONED}", "more")
    poison(file_of(person, POISONED))
    assert person.run("sync").code == 0
    are_there(person, set())
    after = person.rows()[key(POISONED)]
    assert after["counts"] == before["counts"]


@pytest.mark.parametrize("name", FORMS)
def test_a_session_in_two_files_stays_whole_when_the_reader_fails_on_one(
    tmp_path: Path, poison: Callable[..., None], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    person, one = Person(tmp_path / "ann"), FORMS[name]
    first = one.write(person.folder, 1, turns("heron", "vole"))
    aside = first.with_name(
        first.name.replace(thread(1), thread(9)) if name == "codex" else f"notes{first.suffix}"
    )
    first.rename(aside)
    one.write(person.folder, 1, turns("heron", "otter"))
    person.sync()
    (before,) = person.sessions().values()
    assert before["counts"]["prompts"] == 3
    poison(aside)
    one.write(person.folder, 1, turns("heron", "otter", "plover", "dunlin"))
    for options in ((), ("--reindex",)):
        assert person.run("sync", *options).code == 0
        (row,) = person.rows().values()
        assert row["counts"] == before["counts"]
    monkeypatch.undo()
    assert person.run("sync", "--reindex").code == 0
    (row,) = person.rows().values()
    assert row["counts"]["prompts"] == 5


def test_a_file_is_read_again_by_a_reader_that_no_longer_fails(
    person: Person, poison: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(file_of(person, POISONED))
    assert person.run("sync").code == 0
    monkeypatch.undo()
    for module in ("cluster", "discovery", "plan", "run", "update"):
        monkeypatch.setattr(f"retold.synchronization.{module}.REVISION", 99)
    assert person.run("sync").code == 0
    are_there(person, set())


@pytest.mark.parametrize("options", [(), ("--reindex",)])
def test_a_damaged_original_costs_no_other(person: Person, options: tuple[str, ...]) -> None:
    person.sync()
    file = damage(person, DAMAGED)
    write(person, COUNT, "later")
    done = person.run("sync", "--json", *options)
    assert done.code == 0, done
    are_there(person, {DAMAGED})
    assert person.keys("later") == [key(COUNT)]
    assert key(DAMAGED) in person.rows()  # with all that its row says
    if options:
        assert "original-damaged" in done.err
        assert str(file) in done.err
        assert done.objects[0]["problems"] >= 1
    again = person.sync()
    assert (again["read"], again["problems"]) == (0, done.objects[0]["problems"])


@pytest.mark.parametrize(
    "query", [["word*"], ["--substring", "word"], ["--any", " OR ".join(f"word{n}" for n in range(COUNT))]]
)
def test_a_search_finds_the_other_sessions_and_reports_a_damaged_original(
    person: Person, query: list[str]
) -> None:
    person.sync()
    file = damage(person, DAMAGED)
    assert not file.exists()
    done = person.run("search", "--json", *query, "-n", "100")
    assert done.code == 0, done
    assert {key(number) for number in range(COUNT) if number != DAMAGED} <= {
        one["key"] for one in done.objects
    }
    assert done.err.startswith(
        "retold: some text cannot be searched or shown: a chunk of an original is damaged"
    )


@pytest.mark.parametrize("table", ["chunks", "pieces"])
@pytest.mark.parametrize("number", range(len(FORMS)))
def test_a_session_stays_when_the_archive_lacks_a_part_of_its_original(
    person: Person, table: str, number: int
) -> None:
    person.sync()
    file = file_of(person, number)
    file.unlink()
    which = "SELECT {} FROM pieces JOIN originals ON original = originals.id JOIN sources ON sources.id = source WHERE path = ?"
    with Store(str(person.archive), can_write=True) as record:
        named, held = ("id", "chunk") if table == "chunks" else ("original", "original")
        asked = f"DELETE FROM {table} WHERE {named} IN ({which.format(held)})"  # noqa: S608 - fixed SQL
        record.connection.execute(asked, (str(file),))
    done = person.run("sync", "--json", "--reindex")
    assert (done.code, done.objects[0]["problems"], str(file) in done.err) == (0, 1, True), done
    assert "original-damaged" in done.err
    assert key(number) in person.rows()
    are_there(person, {number})
    assert person.run("show", key(number)).code == 4


@pytest.mark.parametrize("place", range(len(FORMS)))
def test_a_session_goes_on_when_an_earlier_version_of_its_file_is_damaged(tmp_path: Path, place: int) -> None:
    person = Person(tmp_path / "ann")
    for number in range(8):
        write(person, number, f"word{number}", "otter")
    person.sync()
    write(person, place, f"word{place}")
    person.sync()
    file = file_of(person, place)
    damage_original(person, file, is_earlier=True)
    write(person, place, f"word{place}", "plover")
    done = person.run("sync", "--json")
    assert (done.code, done.objects[0]["problems"]) == (0, 1), done
    assert (done.err.count("original-damaged"), str(file) in done.err) == (1, True)
    for _ in range(2):
        assert person.keys("plover") == person.keys(f"word{place}") == [key(place)]
        assert key(place) not in person.keys("otter")
        shown = person.run("show", key(place))
        assert (shown.code, "asked plover" in shown.out, "original-damaged" in shown.out) == (0, True, True)
        (found,) = [one for one in person.run("doctor", "--json").objects if one["finding"] == "unread-file"]
        assert (found["session"], str(file) in found["text"]) == (key(place), True)
        assert person.run("sync", "--json", "--reindex").objects[0]["problems"] == 1


@pytest.mark.parametrize("poisoned", range(len(FORMS)))
@pytest.mark.parametrize("damaged", range(len(FORMS)))
def test_one_poisoned_and_one_damaged_session_of_any_agent_cost_no_other(
    person: Person, poison: Callable[..., None], poisoned: int, damaged: int
) -> None:
    bad, broken, unread = poisoned + 8, damaged + 16, poisoned + COUNT
    person.sync()
    with Store(str(person.archive)) as record:
        assert next(record.rows("SELECT count(DISTINCT agent || cluster) FROM sources")) == (COUNT,)
    files = [damage(person, broken)]
    write(person, bad, f"word{bad}", "more")
    write(person, unread, f"word{unread}")
    files += [file_of(person, bad), file_of(person, unread)]
    poison(*files[1:])
    done = person.run("sync", "--json", "--reindex")
    assert done.code == 0, done
    assert done.objects[0]["problems"] == len(files)
    assert [str(file) in done.err for file in files] == [True] * len(files)
    are_there(person, {bad, broken})
    rows = person.rows()
    assert rows.keys() == {key(number) for number in range(COUNT)}
    assert all(person.show(key(number))["timeline"] for number in range(len(FORMS)))
    others = set(range(COUNT)) - {bad, broken}
    assert {row["key"] for row in person.search("asked", "--limit", "100")} == {
        key(number) for number in others
    }
    again = person.sync()
    assert (again["read"], again["problems"]) == (0, len(files))


def test_doctor_names_what_could_not_be_read(person: Person, poison: Callable[..., None]) -> None:
    person.sync()
    file = damage(person, DAMAGED)
    write(person, POISONED, f"word{POISONED}", "more")
    poison(file_of(person, POISONED))
    assert person.run("sync", "--reindex").code == 0
    found = [one for one in person.run("doctor", "--json").objects if one["finding"] == "unread-file"]
    assert [one["severity"] for one in found] == ["loss", "loss"]
    told = {one["session"]: one["text"] for one in found}
    assert told[key(POISONED)].endswith("[reader-failed]")
    assert str(file) in told[key(DAMAGED)]
    assert told[key(DAMAGED)].endswith("[original-damaged]")


@pytest.mark.parametrize("step", ["read", "join"])
@pytest.mark.parametrize(
    "command", [("show",), ("events",), ("export", "--format", "json"), ("show", "--view", "active")]
)
def test_a_session_is_shown_beside_a_file_on_which_the_reader_fails(
    tmp_path: Path, poison: Callable[..., None], step: str, command: tuple[str, ...]
) -> None:
    person, number = Person(tmp_path / "ann"), 0x3F6C2000
    for place, word in enumerate(
        ("healthy", "poisoned")
    ):  # ids that begin with the same five digits: one cluster
        FORMS["gemini-lines"].write(person.folder, number + place, turns(word))
    person.sync()
    before = person.run(*command, FORMS["gemini-lines"].key(number))
    assert (before.code, "healthy" in before.out) == (0, True)
    poison(file_holding(person, "poisoned"), step=step)
    assert person.run(*command, FORMS["gemini-lines"].key(number)) == before
    assert person.run(*command, FORMS["gemini-lines"].key(number + 1)).code == 3


@pytest.mark.parametrize("command", [("show",), ("export", "--format", "json")])
def test_a_session_is_shown_beside_a_damaged_original(tmp_path: Path, command: tuple[str, ...]) -> None:
    person, number = Person(tmp_path / "ann"), 0x3F6C2000
    for place, word in enumerate(("healthy", "damaged")):
        FORMS["gemini-lines"].write(person.folder, number + place, turns(word))
    person.sync()
    before = person.run(*command, FORMS["gemini-lines"].key(number))
    damage_original(person, file_holding(person, "damaged"))
    assert person.run(*command, FORMS["gemini-lines"].key(number)) == before
    assert person.run(*command, FORMS["gemini-lines"].key(number + 1)).code == 4


# Logs of many conversations, sessions that cannot be written, and homes that cannot be looked through ---------------

LOGS = {
    ".gemini/tmp/almanac/logs.json": json.dumps(
        [{"sessionId": uuid(0xDD000), "messageId": 0, "type": "user", "message": "lostword",
          "timestamp": "2026-02-01T09:00:00.000Z"}]
    ),
    ".codex/history.jsonl": as_lines([{"session_id": thread(0xDD000), "ts": 1769936400, "text": "lostword"}]),
}  # fmt: skip


@pytest.mark.parametrize("step", ["read", "group_key", "log_folder", "join"])
@pytest.mark.parametrize("log", LOGS)
def test_a_log_on_which_the_reader_fails_costs_no_other(
    person: Person, poison: Callable[..., None], log: str, step: str
) -> None:
    file = write_file(person.folder / log, LOGS[log])
    poison(file, step=step)
    done = person.run("sync", "--json")
    assert done.code == 0, done
    assert (done.objects[0]["problems"], str(file) in done.err) == (1, True)
    are_there(person, set())
    assert person.rows().keys() == {key(number) for number in range(COUNT)}
    assert kept_bytes(person, file) == file.read_bytes()
    again = person.sync()
    assert (again["read"], again["problems"]) == (0, 1)
    (found,) = [one for one in person.run("doctor", "--json").objects if one["finding"] == "unread-file"]
    assert str(file) in found["text"]


@pytest.mark.parametrize("log", LOGS)
def test_a_log_that_takes_too_long_is_put_off(
    person: Person, monkeypatch: pytest.MonkeyPatch, log: str
) -> None:
    file = write_file(person.folder / log, LOGS[log])
    monkeypatch.setattr("retold.synchronization.plan.time_budget", lambda _: BUDGET)
    for agent in AGENTS.values():

        def read(source: Any, *more: Any, whole: Any = agent.read) -> Any:
            ends = time.monotonic() + TOO_LONG * (source.path == file)
            while time.monotonic() < ends:
                pass
            return whole(source, *more)

        monkeypatch.setattr(agent, "read", read)
    done = person.run("sync", "--json")
    assert done.code == 0, done
    assert (done.objects[0]["problems"], "reader-timeout" in done.err) == (1, True)
    assert person.rows().keys() == {key(number) for number in range(COUNT)}
    assert kept_bytes(person, file) == file.read_bytes()


def test_a_log_that_takes_too_long_is_put_off_where_a_project_is_excluded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person(tmp_path / "ann")
    person.archive.mkdir()
    (person.archive / "config.toml").write_text('exclude = ["almanac"]\n')
    for log, text in LOGS.items():
        write_file(person.folder / log, text)
    file = write_file(person.folder / ".gemini/tmp/charts/logs.json", LOGS[next(iter(LOGS))])
    monkeypatch.setattr("retold.synchronization.plan.time_budget", lambda _: BUDGET)
    agent, seconds = AGENTS["gemini"], []

    def read(source: Any, *more: Any, whole: Any = agent.read) -> Any:
        started = time.monotonic()
        try:
            while source.path == file and time.monotonic() < started + TOO_LONG:
                pass
        finally:
            seconds.append(time.monotonic() - started)
        return whole(source, *more)

    monkeypatch.setattr(agent, "read", read)
    done = person.run("sync", "--json")
    assert done.code == 0, done
    assert (done.objects[0]["problems"], "reader-timeout" in done.err) == (1, True)
    # Both logs are read twice: with all that they say, and without the excluded project.
    assert (len(seconds), max(seconds) < TOO_LONG) == (4, True)


@pytest.mark.parametrize("step", ["group_key", "log_folder", "join"])
def test_what_was_kept_of_a_log_stays_when_the_reader_fails_on_it(
    person: Person, poison: Callable[..., None], step: str
) -> None:
    files = [write_file(person.folder / log, text) for log, text in LOGS.items()]
    person.sync()
    lost = {row for row in person.rows() if row not in {key(number) for number in range(COUNT)}}
    assert len(lost) == len(LOGS)
    poison(*files, step=step)
    done = person.run("sync", "--reindex", "--json")
    assert (done.code, done.objects[0]["problems"]) == (0, len(LOGS)), done
    assert lost <= person.rows().keys()
    are_there(person, set())


@pytest.mark.parametrize(
    "error", [TypeError("unhashable type"), TooSlow(), FileChangedError("logs.json")], ids=repr
)
@pytest.mark.parametrize("log", LOGS)
def test_a_log_that_cannot_be_compared_with_its_earlier_version_costs_no_other(
    person: Person, monkeypatch: pytest.MonkeyPatch, log: str, error: Exception
) -> None:
    file = write_file(person.folder / log, LOGS[log])
    person.sync()

    def contains_values(*_: Any) -> bool:
        raise error

    monkeypatch.setattr("retold.synchronization.containment.contains_values", contains_values)
    more = LOGS[log].replace("lostword", "otherword")
    file.write_text(more + LOGS[log] if log.endswith("l") else f"{more[:-1]}, {LOGS[log][1:]}")
    write(person, COUNT, "later")
    done = person.run("sync", "--json")
    assert done.code == 0, done
    assert done.objects[0]["problems"] == 1
    assert person.keys("later") == [key(COUNT)]
    assert len(person.keys("lostword")) == 1
    are_there(person, set())


@pytest.mark.parametrize("number", [0, POISONED, COUNT - 1])
def test_a_session_that_cannot_be_written_costs_no_other(
    person: Person, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    person.age()
    whole = Writer._values  # noqa: SLF001 - the step in which a value may be one that SQLite does not take

    def values(writer: Any, rows: Any, name: str) -> Any:
        told = whole(writer, rows, name)
        return tuple(object() if one == key(number) else one for one in told)

    monkeypatch.setattr(Writer, "_values", values)
    file = file_of(person, number)
    done = person.run("sync", "--json")
    assert done.code == 0, done
    assert (done.objects[0]["problems"], done.objects[0]["new_sessions"]) == (1, COUNT - 1)
    assert ("reader-failed" in done.err, str(file) in done.err) == (True, True)
    are_there(person, {number})
    assert key(number) not in person.rows()
    assert kept_bytes(person, file) == file.read_bytes()
    again = person.sync()
    assert (again["read"], again["problems"]) == (0, 1)
    monkeypatch.undo()
    assert person.run("sync", "--reindex").code == 0
    other = Person(person.folder, person.folder / "undisturbed")
    other.sync()
    assert not table_differences(archive_contents(person.archive), archive_contents(other.archive))


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("step", ["find_sources", "find_clues", "read_retention_limit"])
def test_an_agent_that_fails_to_look_through_its_home_costs_no_other_agent(
    person: Person, monkeypatch: pytest.MonkeyPatch, step: str, agent: str
) -> None:
    def fail(*_: Any) -> None:
        raise TypeError("unhashable type: 'list'")

    with monkeypatch.context() as patched:
        patched.setattr(AGENTS[agent], step, fail)
        for _ in range(2):
            done = person.run("sync", "--json")
            assert (done.code, done.objects[0]["problems"]) == (0, 1), done
            assert done.err == f"retold: {agent}: TypeError: unhashable type: 'list' [reader-failed]\n"
            are_there(person, {number for number in range(COUNT) if key(number).startswith(agent)})
    assert person.sync()["problems"] == 0
    are_there(person, set())


@pytest.mark.parametrize("step", ["find_sources", "find_clues"])
@pytest.mark.parametrize("agent", AGENTS)
def test_files_are_present_after_a_reindex_in_which_an_agent_fails_to_look(
    person: Person, monkeypatch: pytest.MonkeyPatch, step: str, agent: str
) -> None:
    def fail(*_: Any) -> None:
        raise TypeError("unhashable type: 'list'")

    person.sync()
    asked = "SELECT count(*) FROM sources WHERE NOT is_present"
    for _ in range(2):
        with monkeypatch.context() as patched:
            patched.setattr(AGENTS[agent], step, fail)
            assert person.run("sync", "--reindex").code == 0
        for number in range(len(FORMS)):
            assert [one["state"] for one in person.show(key(number))["sources"]] == ["present"]
        with Store(str(person.archive)) as record:
            assert next(record.rows(asked)) == (0,)
        person.sync()


def test_files_of_forgotten_sessions_are_counted_when_an_agent_fails_to_look(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.sync()
    assert person.run("forget", "-y", key(0)).code == 0
    assert person.sync()["found"] == COUNT

    def fail(*_: Any) -> None:
        raise TypeError("unhashable type: 'list'")

    monkeypatch.setattr(AGENTS["gemini"], "find_sources", fail)
    done = person.run("sync", "--json")
    assert (done.code, done.objects[0]["found"], done.objects[0]["problems"]) == (0, COUNT, 1)


# Other readers of sessions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["read", "join"])
@pytest.mark.parametrize("number", range(len(FORMS)))
def test_an_import_takes_every_file_on_which_the_reader_does_not_fail(
    tmp_path: Path, poison: Callable[..., None], number: int, step: str
) -> None:
    ann, ben = Person(tmp_path / "ann"), Person(tmp_path / "ben")
    for one in range(8):
        write(ben, one, f"word{one}")
    ann.sync()
    ben.sync()
    file = file_of(ben, number)
    poison(file, step=step)
    done = ann.run("import", str(ben.archive), "--json")
    assert (done.code, done.objects[0]["new_sessions"]) == (0, 7), done
    assert ("reader-failed" in done.err, file.name in done.err) == (True, True)
    assert ann.rows().keys() == {key(one) for one in range(8)} - {key(number)}
    assert all(ann.keys(f"word{one}") == [key(one)] for one in range(8) if one != number)


@pytest.mark.parametrize("step", ["read", "join"])
def test_stats_without_an_archive_leave_out_a_file_on_which_the_reader_fails(
    tmp_path: Path, poison: Callable[..., None], step: str
) -> None:
    person, other = Person(tmp_path / "ann"), Person(tmp_path / "other")
    for number in range(8):
        write(person, number, f"word{number}")
    for number in range(1, 8):
        write(other, number, f"word{number}")
    expected = other.run("stats", "--json", "--by", "agent")
    poison(file_of(person, 0), step=step)
    done = person.run("stats", "--json", "--by", "agent")
    assert (done.code, done.out) == (0, expected.out)
    assert done.err.count("[reader-failed]") == 1


@pytest.mark.parametrize("harm", ["damage", "read", "join"])
@pytest.mark.parametrize("form", ["md", "jsonl"])
def test_an_export_of_many_leaves_out_a_session_that_cannot_be_read(
    tmp_path: Path, poison: Callable[..., None], harm: str, form: str
) -> None:
    person, folder = Person(tmp_path / "ann"), tmp_path / "exported"
    for number in range(8):
        write(person, number, f"word{number}")
    person.sync()
    output = folder / "all" if form == "md" else folder / "all.jsonl"
    output.parent.mkdir()
    expected = [person.run("export", key(number), "--format", form) for number in range(8) if number != 2]
    file = file_of(person, 2)
    if harm == "damage":
        damage_original(person, file)
    else:
        poison(file, step=harm)
    done = person.run(
        "export", "--all", "--format", form, "-o", f"{output}/" if form == "md" else str(output)
    )
    assert done.code == (4 if harm == "damage" else 3), done
    assert done.err.count(f"retold: {key(2)} is left out: ") == 1
    texts = [one.read_text() for one in folder.rglob("*") if one.is_file()]
    assert sorted("".join(texts).splitlines()) == sorted("".join(one.out for one in expected).splitlines())
    assert not any("word2" in text for text in texts)
    alone = person.run("export", key(2), "--format", form)
    assert (alone.code, alone.out) == (done.code, "")


def test_an_export_leaves_out_a_damaged_subagent_alone(tmp_path: Path) -> None:
    person = Person(tmp_path / "ann")
    main = FORMS["claude"].write(person.folder, 1, turns("heron"))
    records = [
        {**record, "isSidechain": True, "agentId": "a1b2c3"} for record in claude_records(1, turns("otter"))
    ]
    beside = write_file(main.with_suffix("") / "subagents/agent-a1b2c3.jsonl", as_lines(records))
    person.sync()
    damage_original(person, beside)
    write(person, 3, "plover")
    person.sync()
    done = person.run("export", "--all", "--format", "jsonl", "-o", str(tmp_path / "all.jsonl"))
    assert (done.code, done.err.count("is left out")) == (4, 1), done
    text = (tmp_path / "all.jsonl").read_text()
    assert ("answered heron" in text, "answered plover" in text, "answered otter" in text) == (
        True,
        True,
        False,
    )
