"""Sessions that are held for the next who asks."""

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from retold.archive.store import Store
from retold.model.session import Session, SourceFile
from retold.sessions.load import load_session
from retold.sessions.slices import SessionCache, load_slice
from support.full_session import KEY
from support.gemini_home import GeminiHome, gemini, user
from support.html_sessions import export_session, user_message
from support.person import Person


class Reader:
    """Reads made-up sessions, and remembers how often."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def of(self, name: str, size: int) -> Callable[[], Session]:
        def read() -> Session:
            self.read.append(name)
            source = SourceFile(None, name, "gemini-jsonl", size)
            return replace(export_session(user_message(name)).session, title=name, sources=(source,))

        return read


def test_what_was_read_is_not_read_again() -> None:
    held, reader = SessionCache(100), Reader()
    first = held.get(("a", KEY), reader.of("a", 60))
    assert held.get(("a", KEY), reader.of("a", 60)) is first
    assert reader.read == ["a"]


def test_another_stamp_is_another_session() -> None:
    held, reader = SessionCache(100), Reader()
    held.get(("a", b"1"), reader.of("old", 10))
    assert held.get(("a", b"2"), reader.of("new", 10)).title == "new"


def test_those_that_nobody_asked_for_longest_are_let_go() -> None:
    held, reader = SessionCache(100), Reader()
    for name, size in (("a", 40), ("b", 40), ("a", 40), ("c", 40), ("a", 40), ("b", 40)):
        held.get(name, reader.of(name, size))
    assert reader.read == ["a", "b", "c", "b"]


def test_a_large_one_is_not_held_and_takes_no_room() -> None:
    held, reader = SessionCache(100), Reader()
    for name, size in (("a", 90), ("big", 101), ("big", 101), ("a", 90)):
        held.get(name, reader.of(name, size))
    assert reader.read == ["a", "big", "big"]


def test_a_part_is_of_the_session_as_it_is_now(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ann")
    key = "gemini:session-2026-03-01T09-01-00000001"
    records = [user("u1", 1, "Where do herons nest?")]
    person = Person(home.folder)
    for change in (
        lambda: records.append(gemini("g1", 2, "In reeds.")),
        lambda: person.run("tag", key, "+birds"),
        lambda: person.run("name", key, "Herons"),
        lambda: records.append({"$rewindTo": "u1"}),
    ):
        home.lines("den", 1, 1, records, kind="main")
        person.sync()
        _is_whole(person, key)
        change()
        _is_whole(person, key)


def _is_whole(person: Person, key: str) -> None:
    with Store(str(person.archive)) as record:
        for view in ("full", "active"):
            part = load_slice(record, key, 0, 10, view)
            assert part is not None
            assert part.session == load_session(record, key, view)
