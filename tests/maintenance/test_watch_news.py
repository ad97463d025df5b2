"""What is new, reading after reading: nothing is told twice and nothing is lost, however files grow."""

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

from retold.archive.store import Store
from retold.maintenance.watch import SECOND_HAND, EventDiff, News, SessionWatch, WatchListener
from retold.model.events import (
    AnyStep,
    AssistantText,
    SessionEnd,
    SessionStart,
    ToolResult,
    ToolUse,
    UserPrompt,
    steps_with_messages,
)
from retold.model.session import Session
from retold.sessions.load import load_session
from retold.synchronization.update import SyncOptions
from support.conversation_files import (
    FORMS,
    Form,
    as_lines,
    claude_records,
    codex_records,
    dice,
    gemini_head,
    gemini_records,
    turns,
    write_file,
)
from support.gemini_home import GeminiHome, call, gemini, user
from support.synced_archive import sync_archive

WORDS = ("ebb", "flood", "flood", "spring", "neap", "neap", "slack")
"""Some are said twice: both times count."""
Said = tuple[str, str]


class Follower:
    """A watch in this process, that looks when it is told to."""

    def __init__(self, folder: Path) -> None:
        self.home, self.archive = folder / "ann", folder / "retold"
        self.home.mkdir()
        self.problems: list[object] = []
        ear = WatchListener(lambda: None, lambda _done, _size: None, lambda _: None, self.problems.append)
        self._watch = SessionWatch(SyncOptions(str(self.archive), {"HOME": str(self.home)}), ear)
        self.told: list[tuple[str, AnyStep]] = []

    def begin(self) -> None:
        self._watch.begin()

    def look(self) -> list[News]:
        found = self._watch.look()
        self.told += [(news.session.key, step) for news in found for step in news.steps]
        return found

    def kept(self) -> Counter[tuple[str, Said]]:
        """Return everything that the archive would tell."""
        with Store(str(self.archive)) as record:
            keys = [key for (key,) in record.rows("SELECT key FROM sessions")]
            sessions = [session for key in keys if (session := load_session(record, key)) is not None]
        return Counter(
            (session.key, said(step))
            for session in sessions
            if session.kind not in SECOND_HAND
            for message, step in steps_with_messages(session, with_text=True)
            if not isinstance(step, SessionEnd) and (message is None or message.own)
        )

    def counted(self) -> Counter[tuple[str, Said]]:
        return Counter((key, said(step)) for key, step in self.told)


def said(step: AnyStep) -> Said:
    match step:
        case ToolUse() | ToolResult():
            return type(step).__name__, step.call_id
        case UserPrompt() | AssistantText():
            return type(step).__name__, step.text
        case _:
            return type(step).__name__, ""


@pytest.fixture
def follower(tmp_path: Path) -> Follower:
    return Follower(tmp_path)


def appended(files: Sequence[tuple[Path, bytes]], random: Random) -> Iterator[None]:
    """Append to files in small pieces, in any order, wherever that cuts a line."""
    left = {path: data for path, data in files if data}
    while left:
        path = random.choice(sorted(left))
        length = random.choice((1, 30, 300, 1500))
        with path.open("ab") as file:
            file.write(left[path][:length])
        left[path] = left[path][length:]
        if not left[path]:
            del left[path]
        yield


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_told_twice_or_lost_under_small_appends(follower: Follower, seed: int) -> None:
    said_by = {
        "gemini-lines": [{**gemini_head(1, ()), "kind": "main"}, *gemini_records(1, turns(*WORDS))],
        "claude": claude_records(2, turns(*WORDS)),
        "codex": codex_records(3, turns(*WORDS)),
    }
    files = []
    for number, (name, records) in enumerate(said_by.items(), start=1):
        path = FORMS[name].write(follower.home, number, [])
        path.write_bytes(b"")
        files.append((path, as_lines(records).encode()))
    follower.begin()
    random = dice(seed)
    for _ in appended(files, random):
        if random.random() < 0.4:
            follower.look()
    follower.look()
    told = follower.counted()
    assert told == follower.kept()
    prompts = [count for (_, (kind, _)), count in told.items() if kind == "UserPrompt"]
    assert sum(prompts) == 3 * len(WORDS)
    assert set(prompts) == {1, 2}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_file_written_anew_tells_only_what_was_added(follower: Follower, form: Form) -> None:
    form.write(follower.home, 1, turns(*WORDS[:2]))
    follower.begin()
    for count in range(3, len(WORDS) + 1):
        form.write(follower.home, 1, turns(*WORDS[:count]))
        (news,) = follower.look()
        texts = [step.text for step in news.steps if isinstance(step, UserPrompt | AssistantText)]
        assert texts == [f"asked {WORDS[count - 1]}", f"answered {WORDS[count - 1]}"]
        assert follower.look() == []


def test_a_session_that_was_there_before_and_vanishes_is_no_news(follower: Follower) -> None:
    made = GeminiHome(follower.home)
    file = made.json("almanac", 1, 1, [user("u1", 1, "Tide?"), gemini("g1", 2, "High.")])
    follower.begin()
    file.unlink()
    assert follower.look() == []
    shutil.rmtree(follower.home)
    assert follower.look() == []
    GeminiHome(follower.home).json("almanac", 1, 1, [user("u1", 1, "Tide?"), gemini("g1", 2, "Low.")])
    follower.look()
    assert [said(step) for _, step in follower.told] == [("AssistantText", "Low.")]


def test_a_file_that_shrinks_is_no_news(follower: Follower) -> None:
    made = GeminiHome(follower.home)
    messages = [user("u1", 1, "Tide?"), gemini("g1", 2, "High."), user("u2", 3, "And now?")]
    made.json("almanac", 1, 1, messages)
    follower.begin()
    made.json("almanac", 1, 1, messages[:1])
    assert follower.look() == []
    made.json("almanac", 1, 1, [*messages, gemini("g2", 4, "Low.")])
    follower.look()
    assert [said(step) for _, step in follower.told] == [("AssistantText", "Low.")]


def test_a_torn_document_is_told_when_it_is_whole(follower: Follower) -> None:
    """Whoever writes a whole file anew may be seen in the middle of it."""
    made = GeminiHome(follower.home)
    follower.begin()
    file = made.json("almanac", 1, 1, [user("u1", 1, "Tide?"), gemini("g1", 2, "It is high. " * 20)])
    data = file.read_bytes()
    for end in range(len(data) - 900, len(data), 100):
        file.write_bytes(data[:end])
        follower.look()
    file.write_bytes(data)
    follower.look()
    texts = [step.text for _, step in follower.told if isinstance(step, UserPrompt | AssistantText)]
    assert "".join(texts) == "Tide?" + "It is high. " * 20
    assert sum(isinstance(step, SessionStart) for _, step in follower.told) == 1


def test_a_log_of_prompts_and_a_checkpoint_are_not_told(follower: Follower) -> None:
    made = GeminiHome(follower.home)
    follower.begin()
    made.mark("almanac", "/home/ann/dev/almanac")
    made.logs("almanac", [(1, "Tide?"), (1, "/chat save spring")])
    made.write(
        "tmp/almanac/checkpoint-spring.json",
        '{"history": [{"role": "user", "parts": [{"text": "Tide?"}]}, {"role": "model", "parts": [{"text": "High."}]}]}',
    )
    assert follower.look() == []
    made.lines("almanac", 1, 1, [user("u1", 0, "Tide?"), gemini("g1", 2, "High.")])
    follower.look()
    assert [said(step)[1] for _, step in follower.told] == ["", "Tide?", "High."]


def test_what_stands_in_the_way_is_told_once(follower: Follower) -> None:
    follower.begin()
    for count in range(3):
        write_file(follower.home / ".codex/history.jsonl", "\n" * count)
        if count == 0:
            (follower.home / ".codex/sessions").symlink_to("sessions")  # round and round
        follower.look()
    assert len(follower.problems) == 1


@pytest.mark.shared
@pytest.mark.parametrize(
    "tree",
    [
        "0.61.0/interactive",
        "0.61.0/resume-same-minute",
        "0.61.0/interactive-resume-rewind",
        "0.38.2/resume",
    ],
)
def test_what_the_real_cli_wrote_is_told_once(shared: Path, follower: Follower, tree: str) -> None:
    """Its files, copied piece by piece in the order of their names."""
    root = shared / "corpus/gemini-cli" / tree / ".gemini"
    follower.begin()
    growing = sorted(path for path in root.rglob("chats/**/*.json*") if path.is_file())
    for path in sorted(path for path in root.rglob("*") if path.is_file() and path not in growing):
        copied(path, root, follower)
    for path in growing:
        lines = path.read_bytes().splitlines(keepends=True)
        for start in range(0, len(lines), 7):
            piece = b"".join(lines[start : start + 7])
            with copied(path, root, follower, b"" if start == 0 else None).open("ab") as file:
                file.write(piece)
            if path.suffix == ".jsonl":
                follower.look()
        follower.look()
    told = follower.counted()
    assert told == follower.kept()
    assert sum(told.values()) > 10


def copied(path: Path, root: Path, follower: Follower, data: bytes | None = None) -> Path:
    """Copy a file into the home, unless it is there; given data, with that in it."""
    copy = follower.home / ".gemini" / path.relative_to(root)
    if not copy.exists():
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes() if data is None else data)
    return copy


# What was told of one session --------------------------------------------------------------------------------------


def session(folder: Path, records: Sequence[dict[str, object]]) -> Session:
    shutil.rmtree(folder, ignore_errors=True)
    GeminiHome(folder / "ann").lines("almanac", 1, 1, records)
    (found,) = sync_archive(folder / "retold", {"HOME": str(folder / "ann")}, agents=("gemini",)).sessions()
    return found


def told_texts(steps: Iterable[AnyStep]) -> list[str]:
    return [said(step)[1] for step in steps if not isinstance(step, SessionStart)]


def test_an_answer_that_grows_is_told_as_far_as_it_grew(tmp_path: Path) -> None:
    told = EventDiff()
    assert told_texts(told.new_steps(session(tmp_path, [gemini("g1", 1, "It is")]))) == ["It is"]
    assert told_texts(told.new_steps(session(tmp_path, [gemini("g1", 1, "It is high.")]))) == [" high."]
    assert told_texts(told.new_steps(session(tmp_path, [gemini("g1", 1, "It")]))) == []
    assert told_texts(told.new_steps(session(tmp_path, [gemini("g1", 1, "No: low.")]))) == ["No: low."]


def test_the_same_under_another_id_is_not_told_again(tmp_path: Path) -> None:
    told = EventDiff()
    list(told.new_steps(session(tmp_path, [user("u1", 1, "Go on."), gemini("g1", 2, "Done.")])))
    assert (
        told_texts(told.new_steps(session(tmp_path, [user("x1", 1, "Go on."), gemini("x2", 2, "Done.")])))
        == []
    )
    again = [
        user("x1", 1, "Go on."),
        gemini("x2", 2, "Done."),
        user("u3", 3, "Go on."),
        gemini("g3", 4, "Done."),
    ]
    assert told_texts(told.new_steps(session(tmp_path, again))) == ["Go on.", "Done."]


def test_a_call_is_told_once_whatever_its_message_and_name(tmp_path: Path) -> None:
    told = EventDiff()
    one = call("read_file", {"file_path": "a"}, 2)
    assert told_texts(told.new_steps(session(tmp_path, [gemini("g1", 1, "", [one])]))) == ["read_file-1"] * 2
    assert (
        told_texts(told.new_steps(session(tmp_path, [gemini("g2", 1, "", [{**one, "name": "read_one"}])])))
        == []
    )


def test_what_may_be_an_echo_is_told_when_the_session_goes_on(tmp_path: Path) -> None:
    """Nothing says that it stands for something earlier, so in the end it is what it seems."""
    told = EventDiff()
    begun = [user("u1", 1, "Go on."), gemini("g1", 2, "Done.")]
    list(told.new_steps(session(tmp_path, begun)))
    context = [{"text": "<session_context>\nToday\n</session_context>"}, {"text": "Go on."}]
    echo = {**user("u2", 3, ""), "content": context}
    assert told_texts(told.new_steps(session(tmp_path, [*begun, echo]))) == []
    assert told_texts(told.new_steps(session(tmp_path, [*begun, echo, gemini("g2", 4, "Well.")]))) == [
        "Go on.",
        "Well.",
    ]
    assert told_texts(told.new_steps(session(tmp_path, [*begun, echo, gemini("g2", 4, "Well.")]))) == []


def test_what_a_fork_has_of_its_parent_is_not_told_again(follower: Follower) -> None:
    FORMS["claude"].write(follower.home, 1, turns("ebb"))
    follower.begin()
    records = claude_records(1, turns("ebb"))
    fork = claude_records(2, turns("ebb", "flood"))
    copies = [{**one, "sessionId": fork[0]["sessionId"]} for one in records]
    own = fork[len(records) :]
    own[0] = {**own[0], "parentUuid": copies[-1]["uuid"]}
    path = FORMS["claude"].write(follower.home, 2, [])
    path.write_text(as_lines([*copies, *own]))
    follower.look()
    assert [said(step)[1] for _, step in follower.told if isinstance(step, UserPrompt)] == ["asked flood"]
