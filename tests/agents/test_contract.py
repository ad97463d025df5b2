"""The contract of agents: what every agent in the registry must do, whatever files it reads.

The checks run on every case by every agent. An error names the check, the file and the offset.
"""

import json
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from retold.agents.bookmarks import Bookmark, ReadWholeError
from retold.agents.protocol import Agent, AgentHome, Reading, Source
from retold.agents.registry import AGENTS
from retold.lake.remote import RemoteDisk
from retold.model.problem import Problem
from retold.model.serialization import to_builtins
from retold.model.session import Session
from retold.reading.disk import DISK, Disk
from retold.synchronization.continuation import choose_bookmark, read_on
from support import cases
from support.disks import MemoryDisk, RecordingDisk, watch_paths

pytestmark = pytest.mark.slow

every_agent = pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
slow_to_draw = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
LINES = ("claude-jsonl", "codex-items", "codex-jsonl", "gemini-jsonl", "gemini-stream-json")
"""The formats in which every line is a record."""
MARK = "a record of a kind that nobody has met"
RENDERED = re.compile(r"\*\*(.*?)\*\* (.*)", re.DOTALL)
"""A thought as Gemini CLI writes it into content: `**subject** description`."""
REWRITTEN_KEYS = frozenset(
    (
        "timestamp", "startTime", "lastUpdated", "type", "role", "kind", "id", "sessionId", "status", "severity",
        "messageId", "delta", "$rewindTo", "agentId", "tool_id", "fg", "projectHash", "functionResponse.name",
        "messageCount", "userMessageCount", "firstUserMessage", "ordinal", "record_type", "ts", "updated_at", "image_url",
        "total_token_usage", "last_token_usage", "thread_token_usage", "payload.usage",
        "uuid", "parentUuid", "leafUuid", "sourceToolAssistantUUID", "input_tokens", "output_tokens", "ephemeral_5m_input_tokens",
    )
)  # fmt: skip
"""Keys whose values the model renames, counts by itself, or leaves out by design (colours)."""

CONTENTS = [
    (cases.FOLDER / case / file).read_bytes() for case in cases.NAMES for file in cases.input_files(case)
]


@contextmanager
def located(file: Path, offset: int) -> Iterator[None]:
    """Add the file and the byte offset, or line, to an error that is raised inside."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in {file} at {offset}")
        raise


@st.composite
def damaged_files(draw: st.DrawFn) -> bytes:
    """Draw a case's file with one piece of it replaced."""
    data = draw(st.sampled_from(CONTENTS))
    start = draw(st.integers(0, len(data)))
    end = draw(st.integers(start, min(start + 40, len(data))))
    return data[:start] + draw(st.binary(max_size=12)) + data[end:]


def join_all(agent: Agent, found: Sequence[Reading] | Problem) -> list[Session]:
    """Join both views of every reading; return nothing if the file was refused."""
    if isinstance(found, Problem):
        return []
    return [agent.join([reading], view) for reading in found for view in ("full", "active")]


def read_bytes(agent: Agent, file: Path, data: bytes) -> list[Session]:
    file.write_bytes(data)
    return join_all(agent, agent.read(Source(file)))


def grow(file: Path, data: bytes) -> None:
    """Append the missing end; keep the file's time, so that only its content can make a difference."""
    with file.open("ab") as end:
        end.write(data[end.tell() :])
    os.utime(file, (cases.MODIFIED_AT, cases.MODIFIED_AT))


def line_ends(data: bytes) -> list[int]:
    """Return the start of a file, the offset behind each line, and the end."""
    return [0, *(place + 1 for place, byte in enumerate(data) if byte == ord("\n")), len(data)]


def cuts(data: bytes) -> list[int]:
    """Return the offsets just before, at and behind every line end, and in the middle of every line."""
    ends = line_ends(data)
    middles = [(start + end) // 2 for start, end in pairwise(ends)]
    near = [end + step for end in ends for step in (-1, 0, 1)]
    return sorted({cut for cut in (*near, *middles) if 0 <= cut <= len(data)})


@every_agent
@slow_to_draw
@given(data=st.binary(max_size=400))
def test_arbitrary_bytes_never_raise(agent: Agent, data: bytes, tmp_path: Path) -> None:
    read_bytes(agent, tmp_path / "file", data)


@every_agent
@slow_to_draw
@given(data=damaged_files())
def test_damaged_files_never_raise_and_can_be_serialised(agent: Agent, data: bytes, tmp_path: Path) -> None:
    for session in read_bytes(agent, tmp_path / "session-x.jsonl", data):
        to_builtins(session)


@every_agent
@cases.every_case
def test_the_contract_holds(agent: Agent, case: str, tmp_path: Path) -> None:
    for check in CHECKS:
        check(agent, case, cases.copy_case(case, tmp_path / check.__name__))


def check_the_same_bytes_give_the_same_session(agent: Agent, case: str, folder: Path) -> None:
    for file in cases.input_files(case):
        source = Source(folder / file)
        first, second = agent.read(source), agent.read(source)
        assert join_all(agent, first) == join_all(agent, second), file
        if not isinstance(first, Problem) and not isinstance(second, Problem):
            assert [agent.group_key(reading) for reading in first] == [
                agent.group_key(reading) for reading in second
            ]


def check_a_file_cut_anywhere_is_read_or_refused(agent: Agent, case: str, folder: Path) -> None:
    for file in cases.input_files(case):
        source = Source(folder / file)
        whole = agent.read(source)
        known = {(problem.code, problem.line) for one in join_all(agent, whole) for problem in one.problems}
        data = source.path.read_bytes()
        first_line, around = data.find(b"\n"), {*cuts(data)}
        for _, sizes in spans(whole, data):
            source.path.write_bytes(data[: max(sizes, default=0)])
            for size in reversed(sizes):
                os.truncate(source.path, size)
                with located(file, size):
                    found = agent.read(source)
                    for session in join_all(agent, found) if size in around else ():
                        if is_lines(whole):
                            new = {(problem.code, problem.line) for problem in session.problems} - known
                            assert {code for code, _ in new} <= cut_problems(size, first_line)


def spans(whole: Sequence[Reading] | Problem, data: bytes) -> list[tuple[int, Sequence[int]]]:
    """Return the offsets at which a file is cut, with the length of what is read once for all of them.

    A cut within a line leaves the lines before it as they are. An agent that refuses the whole file is not asked about
    each byte of it.
    """
    if isinstance(whole, Problem):
        return [(0, cuts(data))]
    if not is_lines(whole):
        return [(0, range(len(data)))]
    return [(start, range(start, end)) for start, end in pairwise(line_ends(data))]


def is_lines(whole: Sequence[Reading] | Problem) -> bool:
    return not isinstance(whole, Problem) and whole[0].format in LINES


def cut_problems(size: int, first_line: int) -> set[str]:
    """Return the problems that a cut may cause; within the first line it may also cost the metadata."""
    codes = {"truncated-tail", "orphan-tool-result"}
    return codes | {"unreadable-by-agent", "no-metadata"} if size < first_line else codes


def check_a_file_that_is_read_on_is_the_file_read_at_once(agent: Agent, case: str, folder: Path) -> None:
    for file in cases.input_files(case):
        data = (folder / file).read_bytes()
        source = Source(folder / file, cluster="one", is_growing=True)
        at_once = agent.read(Source(source.path))
        if isinstance(at_once, Problem) or len(at_once) != 1:
            continue
        whole = agent.join(at_once)
        for cut in cuts(data):
            os.truncate(source.path, cut)
            with located(file, cut):
                before = agent.read(source)
                found = None
                if not isinstance(before, Problem) and len(before) == 1:
                    found = choose_bookmark(agent, before[0], agent.join(before))
                grow(source.path, data)
                if found is not None:
                    compare_read_on(agent, source, found.bookmark, whole)


def compare_read_on(agent: Agent, source: Source, bookmark: Bookmark, whole: Session) -> None:
    """Check that a file is read on from a bookmark as at once, or refused."""
    try:
        later = read_on(agent, source, bookmark)
    except ReadWholeError:
        return
    assert replace(later, timeline=()) == replace(whole, timeline=())
    assert later.timeline == whole.timeline[bookmark.beginning.entries :]


def check_a_file_that_grows_stays_in_its_group(agent: Agent, case: str, folder: Path) -> None:
    for file in cases.input_files(case):
        data = (folder / file).read_bytes()
        whole = agent.read(Source(folder / file))
        if isinstance(whole, Problem) or not is_lines(whole):
            continue
        first_line = data.index(b"\n") + 1
        for cut in reversed(cuts(data)):
            os.truncate(folder / file, cut)
            with located(file, cut):
                part = agent.read(Source(folder / file))
                if cut >= first_line and not isinstance(part, Problem) and part[0].native_id is not None:
                    assert agent.group_key(part[0]) == agent.group_key(whole[0])


def read_everything(agent: Agent, case: str, folder: Path, disk: Disk) -> list[Any]:
    """Return everything that an agent finds and reads in a case through a disk."""
    homes = [*agent.find_homes({"HOME": str(folder), "GEMINI_CLI_HOME": str(folder)}, disk)]
    home = agent.find_home(folder, disk) or AgentHome(folder, folder, disk=disk)
    found = [
        one if isinstance(one, Problem) else (one.path, one.cluster)
        for known in (home, *homes)
        for one in agent.find_sources(known)
    ]
    sources = [Source(folder / file, home) for file in cases.input_files(case)]
    sessions = [join_all(agent, agent.read(source)) for source in sources]
    return [home.path, home.sessions, found, list(agent.find_clues(home)), sessions]


def check_files_in_memory_are_read_as_those_on_disk(agent: Agent, case: str, folder: Path) -> None:
    expected = read_everything(agent, case, folder, DISK)
    memory = MemoryDisk.of(folder)
    shutil.rmtree(folder)
    with watch_paths(folder) as touched:
        assert read_everything(agent, case, folder, memory) == expected
    assert touched == set()


def check_files_at_an_address_are_read_as_those_on_disk(agent: Agent, case: str, folder: Path) -> None:
    expected = repr(read_everything(agent, case, folder, DISK))
    found = read_everything(agent, case, Path(f"file:{folder}"), RemoteDisk(f"file://{folder}"))
    assert repr(found).replace(f"file:{folder}", str(folder)) == expected


def check_a_disk_is_asked_about_every_path(agent: Agent, case: str, folder: Path) -> None:
    disk = RecordingDisk(DISK)
    with watch_paths(folder) as touched:
        read_everything(agent, case, folder, disk)
    assert touched == disk.paths
    assert {("open", str(folder / file)) for file in cases.input_files(case)} <= disk.asked


def check_related_sessions_keep_their_order(agent: Agent, case: str, folder: Path) -> None:
    groups: dict[str | None, list[Reading]] = defaultdict(list)
    for file in cases.input_files(case):
        found = agent.read(Source(folder / file))
        for reading in () if isinstance(found, Problem) else found:
            groups[agent.group_key(reading)].append(reading)
    sessions = [agent.join(group) for group in groups.values()]
    # Both orders are tried: children may stand before their parents.
    for family in (sessions, sessions[::-1]):
        pairs = zip(agent.relate(family), family, strict=True)
        assert all((one.native_id, one.sources) == (own.native_id, own.sources) for one, own in pairs)


def check_an_unknown_record_is_kept_and_reported(agent: Agent, case: str, folder: Path) -> None:
    for file in cases.input_files(case):
        data = (folder / file).read_bytes()
        found = agent.read(Source(folder / file))
        if not is_lines(found):
            continue
        lines = data.splitlines(keepends=True)
        unknown = json.dumps({"zyx": MARK}).encode() + b"\n"
        for line in range(1, len(lines)):
            with located(file, line):
                sessions = read_bytes(agent, folder / file, b"".join([*lines[:line], unknown, *lines[line:]]))
                is_kept = any(MARK in text for session in sessions for text in strings(to_builtins(session)))
                is_reported = any(
                    problem.line == line + 1 for session in sessions for problem in session.problems
                )
                assert (is_kept, is_reported) == (True, True)


def check_every_value_of_a_file_is_in_the_full_view(agent: Agent, case: str, folder: Path) -> None:
    for file in cases.input_files(case):
        found = agent.read(Source(folder / file))
        if isinstance(found, Problem):
            continue
        texts = "\x00".join(text for reading in found for text in session_texts(agent.join([reading])))
        missing = [text for text in values(decode_json(folder / file)) if not is_present(text, texts)]
        assert not missing, file


CHECKS: tuple[Callable[[Agent, str, Path], None], ...] = (
    check_the_same_bytes_give_the_same_session,
    check_a_file_cut_anywhere_is_read_or_refused,
    check_a_file_that_is_read_on_is_the_file_read_at_once,
    check_a_file_that_grows_stays_in_its_group,
    check_files_in_memory_are_read_as_those_on_disk,
    check_files_at_an_address_are_read_as_those_on_disk,
    check_a_disk_is_asked_about_every_path,
    check_related_sessions_keep_their_order,
    check_an_unknown_record_is_kept_and_reported,
    check_every_value_of_a_file_is_in_the_full_view,
)


def test_every_check_is_in_the_contract() -> None:
    assert {check.__name__ for check in CHECKS} == {name for name in globals() if name.startswith("check_")}


def session_texts(session: Session) -> Iterator[str]:
    """Yield every text of a session, and the texts of each message's parts joined as they were before the split."""
    tree = to_builtins(session)
    yield from strings(tree)
    for entry in tree["timeline"]:
        yield "".join(part.get("text") or "" for part in entry.get("parts", ()))


def is_present(text: str, texts: str) -> bool:
    """Tell whether a text is in the session; of a rendered thought and of JSON, whether all its pieces are."""
    rendered = RENDERED.fullmatch(text)
    return (
        text in texts
        or without_error_marks(text) in texts
        or (rendered is not None and all(half in texts for half in rendered.groups()))
        or (text.startswith("{") and all(value in texts for value in values(json_in(text))))
    )


def without_error_marks(text: str) -> str:
    """Return a text without the marks that Claude Code puts around errors."""
    return text.removeprefix("Error: ").removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")


def json_in(text: str) -> Any:
    """Return the JSON value that a text is, as Codex writes arguments and results; else the text itself."""
    try:
        return json.loads(text, parse_float=str)
    except ValueError:
        return text


def decode_json(file: Path) -> Iterator[Any]:
    """Yield the JSON values in a file: one of the whole file, or one of each line."""
    data = file.read_bytes()
    for piece in (data, *data.splitlines()):
        try:
            yield json.loads(piece, parse_float=str)
        except (ValueError, RecursionError):
            continue
        if piece is data:
            return


def strings(tree: Any) -> Iterator[str]:
    """Yield every text and number in a tree."""
    match tree:
        case dict():
            for value in tree.values():
                yield from strings(value)
        case list() | tuple():
            for value in tree:
                yield from strings(value)
        case None | bool():
            return
        case _:
            yield str(tree)


def values(tree: Any, key: str = "") -> Iterator[str]:
    """Yield every text and number that must be found again, without the white space around it."""
    match tree:
        case dict():
            for name, value in tree.items():
                if name not in REWRITTEN_KEYS and f"{key}.{name}" not in REWRITTEN_KEYS:
                    yield from values(value, "tokens" if key == "tokens" else name)
        case list() | Iterator():
            for value in tree:
                yield from values(value, key)
        case str():
            yield tree.encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip()
        case int() if type(tree) is int and key != "tokens":
            yield str(tree)
