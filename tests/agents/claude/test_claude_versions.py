"""Lines with the same id and another text: the later one stands, and the earlier one is superseded in the full view."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from retold import Message, Session
from retold.model.session import Attachment, View
from support.conversation_files import as_lines, write_file
from support.person import Person
from support.synced_archive import sync_conversations
from support.token_homes import Request, claude_file, claude_records

Json = dict[str, Any]
ASKED = [Request(number, number, "claude-opus-4-5", 100 * number, output=10 * number) for number in (1, 2, 3)]
LINES = claude_records(1, ASKED)
OLD = "-home-ann-old"


def with_text(line: Json, text: str, **more: Any) -> Json:
    """Return a line that says something else under the same id."""
    message = line["message"]
    content = text if isinstance(message["content"], str) else [{"type": "text", "text": text}]
    return {**line, "message": {**message, "content": content, **more}}


def texts(session: Session) -> list[tuple[str, str]]:
    """What was said in a session, and what became of it."""
    return [
        (getattr(part, "text", ""), entry.fate)
        for entry in session.timeline
        if isinstance(entry, Message)
        for part in entry.parts
    ]


def write_copies(home: Path, now: list[Json], earlier: list[Json]) -> None:
    """Write two copies of a session; the second was modified earlier."""
    write_file(claude_file(home, 1), as_lines(now))
    before = write_file(claude_file(home, 1, OLD), as_lines(earlier))
    os.utime(before, (1_700_000_000, 1_700_000_000))


def conversation(home: Path, view: View = "full") -> Session:
    (session,) = sync_conversations(home, agent="claude", view=view)
    return session


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("length", [2, 6])
def test_a_text_that_only_an_earlier_copy_has_is_superseded(tmp_path: Path, place: int, length: int) -> None:
    earlier = [*LINES[:place], with_text(LINES[place], "heron"), *LINES[place + 1 : length]]
    write_copies(tmp_path, LINES, earlier)
    found = conversation(tmp_path)
    assert [one for one in texts(found) if one[1] == "superseded"] == [("heron", "superseded")]
    assert [one for one, fate in texts(found) if fate == "live"] == [
        one for one, _ in texts(conversation(tmp_path, "active"))
    ]
    assert (found.usage.requests, found.usage.input, found.usage.output) == (3, 600, 60)


def test_the_copy_that_was_modified_last_stands(tmp_path: Path) -> None:
    now = [LINES[0], with_text(LINES[1], "heron"), *LINES[2:4]]
    write_copies(tmp_path, now, LINES)
    found = conversation(tmp_path)
    assert ("heron", "live") in texts(found)
    assert ("answered 1, 1", "superseded") in texts(found)
    assert found.usage.output == 60


def test_the_beginning_of_a_text_is_no_version_of_it(tmp_path: Path) -> None:
    write_copies(tmp_path, LINES, [LINES[0], with_text(LINES[1], "answered"), *LINES[2:]])
    assert {fate for _, fate in texts(conversation(tmp_path))} == {"live"}


def test_copies_that_say_the_same_are_one(tmp_path: Path) -> None:
    said = [LINES[0], with_text(LINES[1], "heron"), LINES[1], *LINES[2:]]
    write_copies(tmp_path, said, [{**line, "gitBranch": "other"} for line in said])
    assert texts(conversation(tmp_path)).count(("heron", "superseded")) == 1
    assert len(texts(conversation(tmp_path))) == len(LINES) + 1


def test_a_text_that_was_rewritten_in_place_is_found(tmp_path: Path) -> None:
    person = Person(tmp_path / "home", tmp_path / "archive")
    file = write_file(
        claude_file(person.folder, 1), as_lines([LINES[0], with_text(LINES[1], "heron"), *LINES[2:]])
    )
    person.sync()
    write_file(file, as_lines(LINES))
    os.utime(file, (1_900_000_000, 1_900_000_000))
    person.sync()
    (hit,) = person.run("search", "heron", "--json").objects
    assert hit["key"] in person.rows()
    (shown,) = person.run("show", hit["key"], "--json").objects
    assert [entry["fate"] for entry in shown["timeline"] if "heron" in json.dumps(entry)] == ["superseded"]


def test_a_line_written_again_for_another_response_leaves_the_tokens_of_both(tmp_path: Path) -> None:
    again = with_text(LINES[1], "heron", id="msg_other", usage={"input_tokens": 7, "output_tokens": 1})
    more = {**with_text(LINES[1], "more", usage={"input_tokens": 100, "output_tokens": 15}), "uuid": "later"}
    write_file(claude_file(tmp_path, 1), as_lines([*LINES[:2], again, more, *LINES[2:]]))
    found = conversation(tmp_path)
    assert (found.usage.requests, found.usage.input, found.usage.output) == (4, 607, 66)


def test_a_subagents_line_written_again_in_a_main_file_is_superseded(tmp_path: Path) -> None:
    task = {**LINES[0], "uuid": "task-line-of-the-subagent", "parentUuid": None, "isSidechain": True}
    done = {**LINES[1], "uuid": "done-line-of-the-subagent", "parentUuid": task["uuid"], "isSidechain": True}
    lines = [*LINES[2:], task, with_text(done, "heron"), done]
    write_file(claude_file(tmp_path, 1), as_lines(lines))
    _, child = sorted(sync_conversations(tmp_path, agent="claude"), key=lambda one: one.kind)
    assert texts(child)[1:] == [("answered 1, 1", "live"), ("heron", "superseded")]


def test_a_picture_that_only_an_earlier_copy_has_is_superseded(tmp_path: Path) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVyb24="}}
    message = {"role": "user", "content": [{"type": "text", "text": "asked"}]}
    plain = {**LINES[0], "message": message}
    with_picture = {**plain, "message": {**message, "content": [*message["content"], picture]}}
    write_copies(tmp_path, [plain, *LINES[1:]], [with_picture, *LINES[1:]])
    entries = [entry for entry in conversation(tmp_path).timeline if isinstance(entry, Message)]
    found = [
        (entry.fate, part.data) for entry in entries for part in entry.parts if isinstance(part, Attachment)
    ]
    assert found == [("superseded", "aGVyb24=")]
