"""A session that cannot be written brings nothing back that its cluster has of forgotten and excluded sessions."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from retold.archive.store import Packer, Store
from retold.archive.writer import ClusterUpdate, Writer
from support.conversation_files import (
    ROOT,
    at,
    gemini_head,
    gemini_json,
    gemini_key,
    gemini_records,
    turns,
    uuid,
    write_file,
)
from support.gemini_home import sha
from support.person import Person
from support.traces import traces

KEPT, OTHER = 0x3F6C2000, 0x3F6C2001
"""Numbers of sessions whose ids begin with the same five digits: their files are one cluster."""
VAULT = "/home/ann/dev/vault"


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path / "ann")


@pytest.fixture
def fail_on(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let the writer fail on the session with a key."""

    def fail(key: str) -> None:
        whole = Writer._values  # noqa: SLF001 - the step in which a value may be one that SQLite does not take

        def values(writer: Any, rows: Any, name: str) -> Any:
            return tuple(object() if one == key else one for one in whole(writer, rows, name))

        monkeypatch.setattr(Writer, "_values", values)

    return fail


def moved(file: Path, name: str) -> Path:
    return file.rename(file.with_name(name))


def in_vault(person: Person, number: int, word: str) -> None:
    """Write a session and a log of its prompts in a folder that names its project by a hash."""
    said = turns(word)
    document = json.dumps({**gemini_head(number, said), "messages": gemini_records(number, said)})
    folder = person.folder / ".gemini/tmp" / sha(VAULT)
    text = document.replace(ROOT, VAULT).replace(sha(ROOT), sha(VAULT))
    write_file(folder / f"chats/session-2026-03-01T10-00-{uuid(number)[:8]}.json", text)
    prompt = {"sessionId": uuid(number), "messageId": 0, "type": "user", "message": f"asked {word}"}
    write_file(folder / "logs.json", json.dumps([{**prompt, "timestamp": at(0)}]))


def kept_bytes(person: Person, file: Path) -> bytes | None:
    with Store(str(person.archive)) as record:
        asked = "SELECT originals.id FROM originals JOIN sources ON sources.id = source WHERE path = ? AND is_latest"
        found = record.row(asked, (str(file),))
        return None if found is None else record.originals.read(found[0])


@pytest.mark.parametrize("is_unwritten", [False, True])
def test_a_new_file_of_a_forgotten_session_is_not_named(
    person: Person, fail_on: Callable[[str], None], *, is_unwritten: bool
) -> None:
    gemini_json(person.folder, KEPT, turns("lighthouse"))
    gemini_json(person.folder, OTHER, turns("xyloidal"))
    person.sync()
    assert person.run("forget", "-y", gemini_key(OTHER)).code == 0
    person.sync()
    gemini_json(person.folder, KEPT, turns("lighthouse", "growing"))
    file = moved(
        gemini_json(person.folder, OTHER, turns("xyloidal", "later")),
        f"session-2026-03-02T10-00-{uuid(OTHER)[:8]}.json",
    )
    if is_unwritten:
        fail_on(gemini_key(KEPT))
    done = person.run("sync", "--json")
    assert (done.code, done.objects[0]["problems"]) == (0, int(is_unwritten)), done
    assert file.stem not in done.err
    for word in (file.stem, uuid(OTHER), "xyloidal"):
        assert [*traces(person, word.lower())] == []
    assert [*person.rows()] == [gemini_key(KEPT)]


@pytest.mark.parametrize("is_unwritten", [False, True])
def test_a_log_is_kept_without_the_prompts_of_an_excluded_session(
    person: Person, fail_on: Callable[[str], None], *, is_unwritten: bool
) -> None:
    person.archive.mkdir()
    (person.archive / "config.toml").write_text('exclude = ["vault"]\n')
    gemini_json(person.folder, KEPT, turns("lighthouse"))
    person.sync()
    gemini_json(person.folder, KEPT, turns("lighthouse", "growing"))
    in_vault(person, OTHER, "xyloidal")
    if is_unwritten:
        fail_on(gemini_key(KEPT))
    done = person.run("sync", "--json")
    assert (done.code, done.objects[0]["problems"]) == (0, int(is_unwritten)), done
    assert [*traces(person, "xyloidal")] == []
    assert [*person.rows()] == [gemini_key(KEPT)]


def test_the_bytes_of_a_session_that_has_the_path_of_a_forgotten_one_are_kept(
    person: Person, fail_on: Callable[[str], None]
) -> None:
    file = gemini_json(person.folder, OTHER, turns("xyloidal"))
    person.sync()
    assert person.run("forget", "-y", gemini_key(OTHER)).code == 0
    person.sync()
    moved(gemini_json(person.folder, KEPT, turns("lighthouse")), file.name)
    fail_on(file_key := f"gemini:{file.stem}")
    done = person.run("sync", "--json")
    assert (done.code, done.objects[0]["problems"]) == (0, 1), done
    assert file_key not in person.rows()
    assert kept_bytes(person, file) == file.read_bytes()
    assert [*traces(person, "xyloidal")] == []


@pytest.mark.parametrize("is_unwritten", [False, True])
def test_what_lies_beside_a_session_that_cannot_be_written_is_kept(
    person: Person, fail_on: Callable[[str], None], *, is_unwritten: bool
) -> None:
    gemini_json(person.folder, OTHER, turns("xyloidal"))
    person.sync()
    assert person.run("forget", "-y", gemini_key(OTHER)).code == 0
    gemini_json(person.folder, KEPT, turns("lighthouse"))
    folder = person.folder / ".gemini/tmp/almanac/tool-outputs" / f"session-{uuid(KEPT)}"
    beside = write_file(folder / "output.txt", "a long output")
    if is_unwritten:
        fail_on(gemini_key(KEPT))
    done = person.run("sync", "--json")
    assert (done.code, done.objects[0]["problems"]) == (0, int(is_unwritten)), done
    assert kept_bytes(person, beside) == beside.read_bytes()


# The writer's memory after a rollback -------------------------------------------------------------------------------


@pytest.fixture
def parcels(person: Person, monkeypatch: pytest.MonkeyPatch) -> list[ClusterUpdate]:
    """Return the parcels of a reindex of two sessions."""
    gemini_json(person.folder, 1 << 12, turns("lighthouse"))
    gemini_json(person.folder, 2 << 12, turns("harbour"))
    person.sync()
    found: list[ClusterUpdate] = []
    with monkeypatch.context() as patched:
        whole = Writer.put

        def put(writer: Writer, one: ClusterUpdate) -> ClusterUpdate:
            found.append(one)
            return whole(writer, one)

        patched.setattr(Writer, "put", put)
        person.sync("--reindex")
    return [one for one in found if one.sessions]


@pytest.fixture
def record(person: Person, parcels: list[ClusterUpdate]) -> Iterator[Store]:
    assert len(parcels) == 2
    with Store(str(person.archive), can_write=True) as record:
        yield record


@pytest.fixture
def writer(record: Store) -> Writer:
    return Writer(record, 1, lambda _model, _at, _figures: None)


def failing(parcel: ClusterUpdate) -> ClusterUpdate:
    """Return a parcel on which the writer fails in its last step."""
    return replace(parcel, scraps={1: object()})


def test_a_session_whose_old_rows_are_back_is_not_fresh(writer: Writer, parcels: list[ClusterUpdate]) -> None:
    first, second = parcels
    writer.put(failing(first))
    assert (writer.just_written, writer.changed_sessions, writer.new_sessions) == (set(), set(), set())
    writer.put(second)
    writer.put(failing(first))
    assert (len(writer.just_written), len(writer.changed_sessions)) == (1, 1)


def test_a_session_that_is_not_removed_after_all_stays_touched(
    record: Store, writer: Writer, parcels: list[ClusterUpdate]
) -> None:
    former, name = (one.sessions[0].uid for one in parcels)
    number = next(record.rows("SELECT id FROM sessions WHERE uid = ?", (former,)))[0]
    writer.changed_sessions.add(number)
    writer.commit()
    writer.put(failing(ClusterUpdate("gemini", None, [], [], aliases={former: name})))
    assert writer.changed_sessions == {number}


def test_a_chunk_is_read_again_after_a_rollback(record: Store, writer: Writer) -> None:
    def put(text: bytes) -> None:
        packer = Packer()
        packer.add(text)
        record.originals.write(1 << 40, packer.finish())

    writer.begin()
    put(b"one")
    assert record.originals.read(1 << 40) == b"one"
    writer.put(failing(ClusterUpdate("gemini", None, [], [])))
    put(b"two")
    assert record.originals.read(1 << 40) == b"two"
