"""Ghosts: which files beside a session hold nothing, and which only look like it."""

import json
from pathlib import Path

import pytest

from retold.agents.gemini import find_ghosts, find_home
from retold.agents.gemini.raw import ENVIRONMENT_ID

ID = "6f1d2c3b-1111-4222-8333-944445555666"
HEAD = {"sessionId": ID, "projectHash": "ab" * 32, "startTime": "2026-03-01T10:00:00.000Z", "kind": "main"}
SETTING = {
    "id": ENVIRONMENT_ID,
    "type": "user",
    "content": [{"text": "<session_context>x</session_context>"}],
}
ASKED = {
    "id": "m1",
    "type": "user",
    "timestamp": "2026-03-01T10:00:01.000Z",
    "content": "where is the quokka?",
}
HELP = {"id": "m2", "type": "user", "timestamp": "2026-03-01T10:00:01.000Z", "content": "/help"}


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    folder = tmp_path / ".gemini" / "tmp" / "den" / "chats"
    folder.mkdir(parents=True)
    return folder


def write(chats: Path, name: str, *records: object) -> Path:
    file = chats / name
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return file


def found(chats: Path) -> list[str]:
    home = find_home(chats.parents[3])
    assert home is not None
    return [ghost.source.path.name for ghost in find_ghosts(home)]


def test_a_file_without_conversation_beside_the_real_one_is_a_ghost(chats: Path) -> None:
    real = write(chats, "session-2026-03-01T10-00-6f1d2c3b.jsonl", HEAD, ASKED)
    write(chats, "session-2026-03-01T11-00-6f1d2c3b.jsonl", HEAD)
    write(chats, "session-2026-03-01T12-00-6f1d2c3b.jsonl", HEAD, SETTING)
    home = find_home(chats.parents[3])
    assert home is not None
    assert [(ghost.native_id, ghost.real) for ghost in find_ghosts(home)] == [(ID, (real,))] * 2


def test_without_a_real_file_there_is_no_ghost(chats: Path) -> None:
    write(chats, "session-2026-03-01T11-00-6f1d2c3b.jsonl", HEAD, SETTING)
    write(chats, "session-2026-03-01T12-00-6f1d2c3b.jsonl", HEAD)
    assert found(chats) == []


@pytest.mark.parametrize(
    "said", [ASKED, HELP, {"$rewindTo": "m1"}, {"something": "new"}], ids=["asked", "help", "rewound", "new"]
)
def test_a_file_in_which_anything_stands_is_none(chats: Path, said: object) -> None:
    write(chats, "session-2026-03-01T10-00-6f1d2c3b.jsonl", HEAD, ASKED)
    write(chats, "session-2026-03-01T11-00-6f1d2c3b.jsonl", HEAD, SETTING, said)
    assert found(chats) == []


def test_a_torn_file_and_one_of_another_session_are_none(chats: Path) -> None:
    write(chats, "session-2026-03-01T10-00-6f1d2c3b.jsonl", HEAD, ASKED)
    write(chats, "session-2026-03-01T11-00-6f1d2c3b.jsonl", HEAD | {"sessionId": ID[:-1] + "7"})
    (chats / "session-2026-03-01T12-00-6f1d2c3b.jsonl").write_text(
        json.dumps(HEAD) + '\n{"id": "m', encoding="utf-8"
    )
    assert found(chats) == []
