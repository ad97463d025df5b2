"""Requests of a session whose file is gone count in the earliest session that copied them, until the file is back."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from support.conversation_files import as_lines, uuid, write_file
from support.home_ledgers import ledger_from_archive
from support.person import Person
from support.synced_archive import sync_archive
from support.token_homes import Request, claude_file, claude_records

PARENT, ELDER, YOUNGER = 1, 2, 3
ASKED = [
    Request(number, 10 * number, "claude-opus-4-5", 100 * number, output=number) for number in range(1, 5)
]
LINES = claude_records(PARENT, ASKED)
COPIED = LINES[:4]
"""Two requests of the parent."""


def write_child(home: Path, session: int, own: list[dict[str, Any]]) -> None:
    lines = [*COPIED, *({**line, "sessionId": uuid(session)} for line in own)]
    write_file(claude_file(home, session), as_lines(lines))


def counted(person: Person) -> dict[str, tuple[int, int | None]]:
    """Requests and input tokens of every session; an archive made from scratch has the same ledger."""
    person.sync()
    with TemporaryDirectory() as folder:
        sync_archive(folder, {"HOME": str(person.folder)})
        assert ledger_from_archive(folder) == ledger_from_archive(str(person.archive))
    usages = {row["native_id"]: row["usage"] for row in person.rows().values()}
    return {name: (usage["requests"], usage["input"]) for name, usage in usages.items()}


def test_copied_requests_count_in_the_earliest_copy_until_their_file_appears(tmp_path: Path) -> None:
    person = Person(tmp_path / "home", tmp_path / "archive")
    write_child(person.folder, YOUNGER, LINES[6:])
    assert counted(person) == {uuid(YOUNGER): (3, 700)}
    write_child(person.folder, ELDER, LINES[4:6])
    assert counted(person) == {uuid(ELDER): (3, 600), uuid(YOUNGER): (1, 400)}
    write_file(claude_file(person.folder, PARENT), as_lines(COPIED))
    assert counted(person) == {uuid(PARENT): (2, 300), uuid(ELDER): (1, 300), uuid(YOUNGER): (1, 400)}


def test_a_session_that_only_copied_owns_no_request_of_a_session_that_made_it(tmp_path: Path) -> None:
    person = Person(tmp_path / "home", tmp_path / "archive")
    undated = {
        "type": "user",
        "sessionId": uuid(ELDER),
        "uuid": uuid(ELDER),
        "parentUuid": COPIED[-1]["uuid"],
    }
    write_child(person.folder, ELDER, [{**undated, "message": {"role": "user", "content": "And now?"}}])
    write_file(claude_file(person.folder, PARENT), as_lines(LINES))
    assert counted(person) == {uuid(PARENT): (4, 1000), uuid(ELDER): (0, None)}
