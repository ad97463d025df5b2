"""What the real Claude Code writes down is read back whole, and the active view is what it sends when it resumes."""

import copy
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import retold
from conftest import available
from retold.model.session import View
from support.fake_anthropic import (
    FAILING,
    LISTING,
    PARALLEL,
    TASK,
    THOUGHT,
    Served,
    Spent,
    is_reminder,
    total,
)
from support.real_claude import (
    FORKING,
    NEWEST,
    REWINDING,
    VERSIONS,
    ClaudeHome,
    Line,
    install_claude,
    make_claude_home,
    read_lines,
    require_isolation,
    write_lines,
)
from support.real_gemini import cache_folder
from support.synced_archive import sync_archive

pytestmark = pytest.mark.real_cli

Stage = Callable[[str, str], ClaudeHome]
"""An empty place for a version of the CLI, by what is to be played there; the same name is the same place."""
Talked = Callable[[str], tuple[ClaudeHome, list[str]]]
"""A conversation that was resumed twice, and its sessions: one, or one each where a resume copies."""
Said = tuple[str, str]
"""Who said it, and what: the words, or the id of a call."""

TYPED = ["please THINK and LIST what is here", "now in PARALLEL", "something to FAIL"]


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    with available():
        require_isolation()

    @cache
    def made(version: str, scene: str) -> ClaudeHome:
        with available():
            command = install_claude(cache_folder(os.environ), version)
        return make_claude_home(command, version, tmp_path_factory.mktemp(f"{scene}-{version}") / "place")

    return made


@pytest.fixture(scope="session")
def talked(stage: Stage) -> Talked:
    @cache
    def played(version: str) -> tuple[ClaudeHome, list[str]]:
        place = stage(version, "talk")
        ids = [place.ask(TYPED[0])]
        for words in TYPED[1:]:
            ids.append(place.ask(words, "--resume", ids[-1]))
        return place, list(dict.fromkeys(ids))

    return played


def sessions(place: ClaudeHome, view: View = "full") -> list[retold.Session]:
    """Every conversation in the home of a place, the oldest first."""
    with TemporaryDirectory() as folder:
        archive = sync_archive(folder, {"CLAUDE_CONFIG_DIR": str(place.config)}, agents=["claude"])
        assert not archive.problems
        return archive.sessions(view)


def session_of(place: ClaudeHome, native_id: str, view: View = "full") -> retold.Session:
    (session,) = [
        one for one in sessions(place, view) if one.native_id == native_id and one.kind != "subagent"
    ]
    return session


def messages(session: retold.Session, *, own: bool = True) -> Iterator[retold.Message]:
    """The messages that are the session's own, or that are copies."""
    return (entry for entry in session.timeline if isinstance(entry, retold.Message) and entry.own is own)


def prompts(session: retold.Session) -> list[str]:
    return [message.prompt for message in messages(session) if message.prompt is not None]


def calls(session: retold.Session) -> list[retold.ToolCall]:
    return [
        part for message in messages(session) for part in message.parts if isinstance(part, retold.ToolCall)
    ]


def spent(read: Iterable[retold.Session]) -> Spent:
    """What sessions took, as the API counts it: without the cached in the input."""
    parts = [
        Spent(
            (usage.input or 0) - (usage.cached or 0) - (usage.cache_write or 0),
            usage.cached or 0,
            usage.cache_write or 0,
            usage.output or 0,
        )
        for usage in (session.usage for session in read)
    ]
    return sum(parts, Spent())


def told(session: retold.Session) -> list[Said]:
    """Everything that human and model say in a view, in its order."""
    said: list[Said] = []
    for entry in session.timeline:
        if isinstance(entry, retold.Message) and entry.prompt is not None:
            said.append(("user", entry.prompt.strip()))
        elif isinstance(entry, retold.Message) and entry.role == "assistant":
            said += (("assistant", part.text) for part in entry.parts if isinstance(part, retold.Text))
            said += (("call", part.id) for part in entry.parts if isinstance(part, retold.ToolCall))
    return said


def sent(served: Served) -> list[Said]:
    """Everything that a request says human and model said, and the answer to it."""
    said: list[Said] = []
    for message in (*served.request["messages"], {"role": "assistant", "content": served.content}):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            if block["type"] == "tool_use":
                said.append(("call", block["id"]))
            elif block["type"] == "text" and message["role"] != "system" and not is_reminder(block):
                said.append((message["role"], block["text"].strip()))
    return said


def served_to(place: ClaudeHome, prompt: str) -> Served:
    """The last response to a prompt."""
    return [served for served in place.turns() if prompt in served.words][-1]


@pytest.mark.parametrize("version", VERSIONS)
class TestAConversation:
    def test_has_every_prompt_once(self, talked: Talked, version: str) -> None:
        place, ids = talked(version)
        read = [session_of(place, native_id) for native_id in ids]
        assert [prompt for session in read for prompt in prompts(session)] == TYPED

    def test_has_every_call_with_its_result(self, talked: Talked, version: str) -> None:
        place, ids = talked(version)
        found = {call.id: call for native_id in ids for call in calls(session_of(place, native_id))}
        asked = [block for one in place.turns() for block in one.content if block["type"] == "tool_use"]
        assert list(found) == [block["id"] for block in asked]
        assert [call.arguments["command"] for call in found.values()] == [LISTING, *PARALLEL, FAILING]
        assert [call.status for call in found.values()] == ["success"] * 3 + ["error"]
        assert [call.result for call in found.values()][:3] == ["main.py", "first", "second"]
        *_, failed = found.values()
        assert "broken" in (failed.error or "")

    def test_keeps_the_thoughts(self, talked: Talked, version: str) -> None:
        place, ids = talked(version)
        parts = [part for message in messages(session_of(place, ids[0])) for part in message.parts]
        assert [part.text for part in parts if isinstance(part, retold.Thinking)] == [THOUGHT]

    def test_took_what_was_served(self, talked: Talked, version: str) -> None:
        place, ids = talked(version)
        read = [session_of(place, native_id) for native_id in ids]
        assert spent(read) == total(place.turns())
        assert sum(session.usage.requests for session in read) == len(place.turns())

    def test_is_active_as_it_is_sent(self, talked: Talked, version: str) -> None:
        place, ids = talked(version)
        assert told(session_of(place, ids[-1], "active")) == sent(place.turns()[-1])

    def test_is_the_same_by_its_file_alone(self, talked: Talked, version: str) -> None:
        place, ids = talked(version)
        (session,) = retold.read(place.file(ids[-1]), "active")
        assert told(session) == sent(place.turns()[-1])


@pytest.mark.parametrize("version", REWINDING)
def test_the_last_count_of_a_response_is_the_one_that_counts(stage: Stage, version: str) -> None:
    place = stage(version, "slow")
    native_id = place.ask("THINK and LIST, but SLOW")
    assert spent([session_of(place, native_id)]) == total(place.turns())


@pytest.mark.parametrize("version", FORKING)
def test_a_fork_owns_only_what_came_after(stage: Stage, version: str) -> None:
    place = stage(version, "fork")
    first = place.ask("LIST what is here")
    other = place.ask("another way", "--resume", first, "--fork-session")
    session, fork = session_of(place, first), session_of(place, other)
    assert (prompts(session), prompts(fork)) == (["LIST what is here"], ["another way"])
    copied = [message.id for message in messages(fork, own=False)]
    assert set(copied) == {message.id for message in messages(session)}
    assert spent([fork]) == place.turns()[-1].spent
    assert spent([session, fork]) == total(place.turns())
    assert told(session_of(place, other, "active")) == sent(place.turns()[-1])


@pytest.mark.parametrize("version", REWINDING)
def test_what_was_rewound_is_told_and_counted_but_not_active(stage: Stage, version: str) -> None:
    place = stage(version, "rewind")
    native_id = place.ask("one")
    place.ask("two", "--resume", native_id)
    answer = next(line for line in read_lines(place.file(native_id)) if line["type"] == "assistant")
    place.ask("instead", "--resume", native_id, "--resume-session-at", answer["uuid"])
    place.ask("on", "--resume", native_id)
    session = session_of(place, native_id)
    fates = {message.prompt: message.fate for message in messages(session) if message.prompt}
    assert fates == {"one": "live", "two": "rewound", "instead": "live", "on": "live"}
    assert spent([session]) == total(place.turns())
    assert told(session_of(place, native_id, "active")) == sent(place.turns()[-1])


@pytest.mark.parametrize("version", FORKING)
def test_a_compaction_leaves_what_is_sent_afterwards(stage: Stage, version: str) -> None:
    place = stage(version, "compact")
    native_id = place.ask("LIST what is here")
    place.ask("two", "--resume", native_id)
    place.ask("/compact", "--resume", native_id)
    place.ask("after", "--resume", native_id)
    session = session_of(place, native_id)
    assert prompts(session) == ["LIST what is here", "two", "/compact", "after"]
    events = [entry for entry in session.timeline if isinstance(entry, retold.Event)]
    assert [event.kind for event in events if event.kind == "compaction"]
    assert spent([session]) == total(place.turns())  # what the summary took is not recorded with a message
    active = [said for said in told(session_of(place, native_id, "active")) if said != ("user", "/compact")]
    words = ("LIST what is here", "two", "after")
    assert active == [said for said in sent(place.turns()[-1]) if said[0] != "user" or said[1] in words]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_subagent_is_a_session_of_its_own(stage: Stage, version: str) -> None:
    place = stage(version, "delegate")
    native_id = place.ask("please DELEGATE it")
    session = session_of(place, native_id)
    (call,) = calls(session)
    children = {one.key: one for one in sessions(place) if one.kind == "subagent"}
    child = children[call.child or ""]
    assert (call.canonical, child.parent, child.key in session.children) == ("agent", session.key, True)
    assert (prompts(session), prompts(child)) == (["please DELEGATE it"], [])
    assert [part.arguments["command"] for part in calls(child)] == [LISTING]
    asked = [served for served in place.turns() if TASK in json.dumps(served.request["messages"][0])]
    assert spent([child]) == total(asked)
    assert spent([session, child]) == total(place.turns())


@pytest.mark.parametrize("version", REWINDING)
def test_a_large_output_is_read_from_the_file_it_was_moved_to(stage: Stage, version: str) -> None:
    place = stage(version, "flood")
    native_id = place.ask("a FLOOD please")
    (call,) = calls(session_of(place, native_id))
    assert call.full_result is not None
    assert call.full_result.split() == [str(number) for number in range(1, 20001)]
    assert (call.result or "").startswith("<persisted-output>")


def test_the_name_that_was_given_last_is_the_title(stage: Stage) -> None:
    place = stage(NEWEST, "title")
    native_id = place.ask("one", "--name", "a name")
    place.ask("/rename another name", "--resume", native_id)
    assert session_of(place, native_id).title == "another name"


def turn(lines: Sequence[Line], parent: str | None, words: str, at: str) -> list[Line]:
    """A question and its answer, as if somebody had said it there and then."""
    asked, answered = (
        copy.deepcopy(next(line for line in reversed(lines) if line["type"] == kind))
        for kind in ("user", "assistant")
    )
    asked |= {"uuid": f"{words} asked", "parentUuid": parent, "timestamp": at}
    asked["message"]["content"] = words
    answered |= {"uuid": f"{words} answered", "parentUuid": asked["uuid"], "timestamp": at}
    answered["message"] |= {"id": f"msg {words}", "content": [{"type": "text", "text": f"{words}, answered"}]}
    return [asked, answered]


def after(line: Line, seconds: int) -> str:
    """The time that much later than a line, as the CLI writes it."""
    at = datetime.fromisoformat(line["timestamp"]) + timedelta(seconds=seconds)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


LATER, EARLIER = "2030-01-01T00:00:00.000Z", "2020-01-01T00:00:00.000Z"
Edit = Callable[[list[Line], list[Line]], Sequence[Line | str]]
"""What becomes of the lines of a transcript, given its answers: the last response's line each."""


def unmarked(lines: Iterable[Line]) -> list[Line]:
    """The lines without those that name the leaf."""
    return [line for line in lines if line["type"] != "last-prompt"]


def leaf(lines: Sequence[Line], uuid: str | None, **more: object) -> Line:
    return {
        "type": "last-prompt",
        "lastPrompt": "x",
        "leafUuid": uuid,
        "sessionId": lines[-1]["sessionId"],
        **more,
    }


def branch(lines: Sequence[Line], answers: Sequence[Line], at: str = LATER) -> list[Line]:
    return turn(lines, answers[0]["uuid"], "instead", at)


EDITS: dict[str, Edit] = {
    "a branch after the leaf was named": lambda old, said: [*old, *branch(old, said)],
    "a branch that is named the leaf": lambda old, said: [*old, *branch(old, said), leaf(old, "instead answered")],
    "a branch, and an earlier leaf named": lambda old, said: [
        *unmarked(old), leaf(old, said[1]["uuid"]), *branch(old, said),
    ],
    "a branch, and what both hang from is named": lambda old, said: [
        *old, *branch(old, said), leaf(old, said[0]["uuid"]),
    ],
    "a branch at the end, no leaf named": lambda old, said: [*unmarked(old), *branch(old, said)],
    "a branch at the end that is older": lambda old, said: [*unmarked(old), *branch(old, said, EARLIER)],
    "a leaf that is not there": lambda old, _: [*old, leaf(old, "nowhere")],
    "a leaf that was gone back to": lambda old, said: [*old, leaf(old, said[0]["uuid"], explicit=True)],
    "everything taken back": lambda old, _: [*old, leaf(old, None, explicit=True)],
    "a second root": lambda old, _: [*unmarked(old), *turn(old, None, "anew", LATER)],
    "a turn behind an unknown line, soon after": lambda old, said: [
        *unmarked(old), *turn(old, "nowhere", "anew", after(said[-1], seconds=4)),
    ],
    "a turn behind an unknown line, long after": lambda old, said: [
        *unmarked(old), *turn(old, "nowhere", "anew", after(said[-1], seconds=60)),
    ],
    "a sidechain": lambda old, said: [
        *unmarked(old), *({**line, "isSidechain": True} for line in turn(old, said[-1]["uuid"], "aside", LATER)),
    ],
    "a torn end": lambda old, said: [*old, json.dumps(turn(old, said[-1]["uuid"], "torn", LATER)[0])[:200]],
    "rubbish in the middle": lambda old, _: [*old[:9], "{ rubbish", *old[9:]],
    "two lines on one": lambda old, _: [json.dumps(old[0]) + json.dumps(old[1]), *old[2:]],
    "the same line again, in other words": lambda old, said: [
        *old, {**said[0], "message": {**said[0]["message"], "content": [{"type": "text", "text": "other words"}]}},
    ],
}  # fmt: skip


@pytest.fixture(scope="session")
def three_turns(stage: Stage) -> tuple[ClaudeHome, Path, list[Line]]:
    place = stage(NEWEST, "edits")
    native_id = place.ask("one")
    for words in ("two", "three"):
        place.ask(words, "--resume", native_id)
    return place, place.file(native_id), read_lines(place.file(native_id))


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edited_transcript_is_active_as_it_is_sent(
    three_turns: tuple[ClaudeHome, Path, list[Line]], edit: Edit
) -> None:
    place, file, lines = three_turns
    answers = [line for line in lines if line["type"] == "assistant"]
    write_lines(file, edit(lines, answers))
    (session,) = [one for one in retold.read(file, "active") if one.kind != "subagent"]
    place.ask("probe", "--resume", file.stem)
    assert [*told(session), ("user", "probe")] == sent(served_to(place, "probe"))[:-1]
