"""`/chat share` as we write it: what Gemini CLI itself writes of the same session, byte for byte."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from retold.agents.registry import read
from retold.export.formats.registry import FORMATS, ExportOptions, ExportSession
from retold.model.session import Attachment, Context, Event, Message, Session, Text, ToolCall
from support.full_session import agent, at, call, everything, session, session_with_text, user
from support.real_gemini import Driver

FORMS = {"share-md": "out.md", "share-json": "out.json"}
ENVIRONMENT = "<session_context>"
SCRIPT = """
ARGS --yolo
WAIT 9
TYPE first question about the project
ENTER
EXPECT 20 Fake answer to
TYPE SCENARIO:full look at @main.py
WAIT 1
ENTER
WAIT 1
ENTER
EXPECT 60 Done. I changed
WAIT 1
TYPE /chat share out.json
ESC
ENTER
WAIT 3
TYPE /chat share out.md
ESC
ENTER
WAIT 3
TYPE /quit
ESC
ENTER
WAIT 3
"""


def shared_as(form: str, told: Session) -> bytes:
    return b"".join(FORMATS[form].encode([ExportSession(told)], ExportOptions()))


def said(told: Session) -> list[Any]:
    """Who said what, and what came of each call; shares have neither ids of messages nor times."""
    return [part for entry in told.timeline if isinstance(entry, Message) for part in _said(entry)]


def _said(message: Message) -> Iterable[Any]:
    if message.prompt is not None:
        yield message.prompt.strip()
    for part in message.parts:
        if isinstance(part, ToolCall):
            yield part.name, part.arguments, part.result, part.error
        elif isinstance(part, Text) and message.role == "assistant":
            yield part.text.strip()


def test_everything_as_markdown(snapshot: SnapshotAssertion) -> None:
    assert shared_as("share-md", everything().session).decode() == snapshot


def test_everything_as_json(snapshot: SnapshotAssertion) -> None:
    assert shared_as("share-json", everything().session).decode() == snapshot


@pytest.mark.parametrize("form", FORMS)
def test_both_are_read_as_the_same_words(form: str, tmp_path: Path) -> None:
    told = everything().session
    live = msgspec.structs.replace(
        told, timeline=tuple(entry for entry in told.timeline if entry.fate == "live")
    )
    (tmp_path / FORMS[form]).write_bytes(shared_as(form, told))
    (found,) = read(tmp_path / FORMS[form])
    assert found.sources[0].format == ("gemini-share-markdown" if form == "share-md" else "gemini-share-json")
    assert said(found) == said(live)


@pytest.mark.parametrize("text", ["=1+1\x00", "\u2028\u202e", "```\n---\n", "</details><!--", "潮 🌊", '"\\'])
def test_json_holds_any_text(text: str) -> None:
    turns = json.loads(shared_as("share-json", session_with_text(text)))
    assert turns[0] == {"role": "user", "parts": [{"text": text}]}
    assert turns[2]["parts"][0]["functionResponse"]["response"] == {"output": text}
    assert turns[2]["parts"][1]["functionResponse"]["response"] == {"error": text}


def test_the_environment_stands_in_the_turn_that_follows() -> None:
    notice = Event(None, "notice", at(0), "live", f"{ENVIRONMENT}x")
    asked = json.loads(shared_as("share-json", session(notice, user(1, "hi"))))
    assert [part["text"] for part in asked[0]["parts"]] == [f"{ENVIRONMENT}x", "hi"]
    answered = json.loads(shared_as("share-json", session(notice, agent(1, Text("hi")))))
    assert [turn["role"] for turn in answered] == ["user", "model"]
    alone = json.loads(shared_as("share-json", session(notice)))
    assert len(alone) == 1


def test_a_call_without_a_result_has_none_and_pictures_come_along() -> None:
    picture = Attachment(None, "image/png", "aGk=")
    told = session(agent(1, call("draw", result="", attachments=(picture,)), call("wait", id="w")))
    turns = json.loads(shared_as("share-json", told))
    assert [list(part) for part in turns[0]["parts"]] == [["functionCall"], ["functionCall"]]
    assert turns[1]["parts"][1] == {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    assert "aGk=" not in shared_as("share-md", told).decode()


def test_what_the_agent_added_is_a_part_and_other_notices_are_none() -> None:
    notice = Event(None, "notice", at(0), "live", "Update available")
    turns = json.loads(shared_as("share-json", session(notice, user(1, "hi", Context("hook", "added")))))
    assert turns == [{"role": "user", "parts": [{"text": "hi"}, {"text": "added"}]}]


def test_results_that_only_mention_their_call_are_no_turn() -> None:
    told = session(user(1, None, Context("tool_result", None, "x")))
    assert shared_as("share-json", told) == b"[]"
    assert shared_as("share-md", told) == b""


def _before_the_compression(told: Session, environment: str) -> Session:
    """The session as it was when it was shared: what was compressed later was live then."""
    first = Event(None, "notice", None, "live", environment)
    entries = [entry for entry in told.timeline if entry.fate == "compacted"]
    live = tuple(msgspec.structs.replace(entry, fate="live") for entry in entries)
    return msgspec.structs.replace(told, timeline=(first, *live))


@pytest.mark.shared
@pytest.mark.parametrize("form", FORMS)
def test_what_the_cli_shared_comes_out_again(form: str, shared: Path) -> None:
    """The environment was recorded anew after the sharing, so it is taken from the shared file."""
    folder = shared / "corpus/gemini-cli/0.61.0/interactive"
    (file,) = folder.glob(".gemini/tmp/*/chats/session-2026-11-15T17-44-*.jsonl")
    (told,) = read(file)
    environment = json.loads((folder / "out.json").read_text(encoding="utf-8"))[0]["parts"][0]["text"]
    ours = shared_as(form, _before_the_compression(told, environment))
    assert ours == (folder / FORMS[form]).read_bytes()


@pytest.mark.shared
@pytest.mark.real_cli
def test_the_real_cli_shares_the_same(driven_gemini: Driver, tmp_path: Path) -> None:
    home, project, script = tmp_path / "home", tmp_path / "work" / "My.Proj_01", tmp_path / "share.txt"
    script.write_text(SCRIPT, encoding="utf-8")
    done = driven_gemini("0.61.0", home, project, str(script))
    assert done.returncode == 0, done.stdout
    (file,) = home.glob(".gemini/tmp/*/chats/session-*.jsonl")
    (told,) = read(file)
    for form, name in FORMS.items():
        theirs = (project / name).read_bytes()
        assert shared_as(form, told).decode() == theirs.decode()
        (tmp_path / name).write_bytes(shared_as(form, told))
        (ours,), (found,) = read(tmp_path / name), read(project / name)
        assert said(ours) == said(found)
