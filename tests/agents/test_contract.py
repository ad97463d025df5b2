"""What every agent's module must do, whatever files it reads: written once, asked of each agent in the registry."""

import json
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retold.agents.protocol import Agent, Home, Reading, Source
from retold.agents.registry import AGENTS
from retold.lake.remote import RemoteDisk
from retold.model.problem import Problem
from retold.model.session import Session
from retold.model.wire import as_builtins
from retold.reading.disk import DISK, Disk
from support import cases
from support.cases import every_case
from support.disks import MemoryDisk, RecordingDisk, watch_paths

every_agent = pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
slow_to_draw = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
LINES = ("claude-jsonl", "codex-items", "codex-jsonl", "gemini-jsonl", "gemini-stream-json")
"""The formats in which every line is a record."""
MARK = "a record of a kind that nobody has met"
RENDERED = re.compile(r"\*\*(.*?)\*\* (.*)", re.DOTALL)
"""A thought as Gemini CLI writes it into content: `**subject** description`."""
WRITTEN_OTHERWISE = frozenset(
    (
        "timestamp", "startTime", "lastUpdated", "type", "role", "kind", "id", "sessionId", "status", "severity",
        "messageId", "delta", "$rewindTo", "agentId", "tool_id", "fg", "projectHash", "functionResponse.name",
        "messageCount", "userMessageCount", "firstUserMessage", "ordinal", "record_type", "ts", "updated_at", "image_url",
        "total_token_usage", "last_token_usage", "thread_token_usage", "payload.usage",
        "uuid", "parentUuid", "leafUuid", "sourceToolAssistantUUID", "input_tokens", "output_tokens", "ephemeral_5m_input_tokens",
    )
)  # fmt: skip
"""Keys whose values the model tells in its own words, counts by itself, or leaves out by design (colours)."""

MATERIAL = [cases.FOLDER / case / file for case in cases.NAMES for file in cases.input_files(case)]
CONTENTS = [file.read_bytes() for file in MATERIAL]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A case's file with a piece of it replaced."""
    data = draw(st.sampled_from(CONTENTS))
    start = draw(st.integers(0, len(data)))
    end = draw(st.integers(start, min(start + 40, len(data))))
    return data[:start] + draw(st.binary(max_size=12)) + data[end:]


def joined(agent: Agent, found: Sequence[Reading] | Problem) -> list[Session]:
    """Both views of everything that was read; nothing, if it was refused."""
    if isinstance(found, Problem):
        return []
    return [agent.join([reading], view) for reading in found for view in ("full", "active")]


def read_bytes(agent: Agent, file: Path, data: bytes) -> list[Session]:
    file.write_bytes(data)
    return joined(agent, agent.read(Source(file)))


def grow(file: Path, data: bytes) -> None:
    """Append what the file lacks; its time stays, so that only its content can make a difference."""
    with file.open("ab") as end:
        end.write(data[end.tell() :])
    os.utime(file, (cases.MODIFIED_AT, cases.MODIFIED_AT))


@every_agent
@slow_to_draw
@given(data=st.binary(max_size=400))
def test_arbitrary_bytes_never_raise(agent: Agent, data: bytes, tmp_path: Path) -> None:
    read_bytes(agent, tmp_path / "file", data)


@every_agent
@slow_to_draw
@given(data=damaged())
def test_damaged_files_never_raise_and_stay_tellable(agent: Agent, data: bytes, tmp_path: Path) -> None:
    for session in read_bytes(agent, tmp_path / "session-x.jsonl", data):
        as_builtins(session)


@every_agent
@every_case
def test_the_same_bytes_give_the_same_session(agent: Agent, case: str, tmp_path: Path) -> None:
    folder = cases.copy_case(case, tmp_path)
    for file in cases.input_files(case):
        source = Source(folder / file)
        first, second = agent.read(source), agent.read(source)
        assert joined(agent, first) == joined(agent, second)
        if not isinstance(first, Problem) and not isinstance(second, Problem):
            assert [agent.group(reading) for reading in first] == [agent.group(reading) for reading in second]


@every_agent
@every_case
def test_a_file_cut_anywhere_is_read_or_refused(agent: Agent, case: str, tmp_path: Path) -> None:
    folder = cases.copy_case(case, tmp_path)
    for file in cases.input_files(case):
        whole = agent.read(Source(folder / file))
        told = whole_problems(agent, whole)
        is_lines = not isinstance(whole, Problem) and whole[0].format in LINES
        data = (folder / file).read_bytes()
        first_line = data.find(b"\n")
        # Who refuses the whole need not be asked about each byte of it.
        is_stranger = isinstance(whole, Problem)
        for size in reversed(cuts(data) if is_stranger else range(len(data))):
            os.truncate(folder / file, size)
            found = agent.read(Source(folder / file))
            if isinstance(found, Problem):
                continue
            for reading in found:
                session = agent.join([reading])
                if is_lines:
                    more = {(problem.code, problem.line) for problem in session.problems} - told
                    assert {code for code, _ in more} <= allowed(file_size=size, first_line=first_line), size


def allowed(file_size: int, first_line: int) -> set[str]:
    """A cut may be told, and may have cost a call; within the first line also what says whose file this is."""
    cut = {"truncated-tail", "orphan-tool-result"}
    return cut | {"unreadable-by-agent", "no-metadata"} if file_size < first_line else cut


def whole_problems(agent: Agent, found: Sequence[Reading] | Problem) -> set[tuple[str, int | None]]:
    sessions = joined(agent, found)
    return {(problem.code, problem.line) for session in sessions for problem in session.problems}


@every_agent
@every_case
def test_a_file_read_in_two_steps_is_the_file_read_at_once(agent: Agent, case: str, tmp_path: Path) -> None:
    folder = cases.copy_case(case, tmp_path)
    for file in cases.input_files(case):
        data = (folder / file).read_bytes()
        source = Source(folder / file)
        at_once = joined(agent, agent.read(source))
        for cut in cuts(data):
            os.truncate(source.path, cut)
            before = agent.read(source)
            grow(source.path, data)
            earlier = () if isinstance(before, Problem) else before
            assert joined(agent, agent.read(source, earlier)) == at_once, cut


@every_agent
@every_case
def test_a_file_that_grows_stays_in_its_group(agent: Agent, case: str, tmp_path: Path) -> None:
    folder = cases.copy_case(case, tmp_path)
    for file in cases.input_files(case):
        data = (folder / file).read_bytes()
        whole = agent.read(Source(folder / file))
        if isinstance(whole, Problem) or whole[0].format not in LINES:
            continue
        first_line = data.index(b"\n") + 1
        for cut in reversed(cuts(data)):
            os.truncate(folder / file, cut)
            part = agent.read(Source(folder / file))
            if cut >= first_line and not isinstance(part, Problem) and part[0].native_id is not None:
                assert agent.group(part[0]) == agent.group(whole[0])


def all_told(agent: Agent, case: str, folder: Path, disk: Disk) -> list[Any]:
    """All that an agent tells of a case when it looks through a disk, without the disk itself."""
    homes = [*agent.homes({"HOME": str(folder), "GEMINI_CLI_HOME": str(folder)}, disk)]
    home = agent.home_in(folder, disk) or Home(folder, folder, disk=disk)
    found = [
        one if isinstance(one, Problem) else (one.path, one.cluster)
        for known in (home, *homes)
        for one in agent.find(known)
    ]
    sources = [Source(folder / file, home) for file in cases.input_files(case)]
    sessions = [joined(agent, agent.read(source)) for source in sources]
    return [home.path, home.sessions, found, list(agent.clues(home)), sessions]


@every_agent
@every_case
def test_files_that_are_kept_elsewhere_are_read_as_those_on_the_disk(
    agent: Agent, case: str, tmp_path: Path
) -> None:
    folder = cases.copy_case(case, tmp_path)
    expected = all_told(agent, case, folder, DISK)
    memory = MemoryDisk.of(folder)
    shutil.rmtree(folder)
    with watch_paths(folder) as touched:
        assert all_told(agent, case, folder, memory) == expected
    assert touched == set()


@every_agent
@every_case
def test_files_that_are_reached_by_an_address_are_read_as_those_on_the_disk(
    agent: Agent, case: str, tmp_path: Path
) -> None:
    folder = cases.copy_case(case, tmp_path)
    expected = repr(all_told(agent, case, folder, DISK))
    found = all_told(agent, case, Path(f"file:{folder}"), RemoteDisk(f"file://{folder}"))
    assert repr(found).replace(f"file:{folder}", str(folder)) == expected


@every_agent
@every_case
def test_a_disk_is_asked_about_every_path(agent: Agent, case: str, tmp_path: Path) -> None:
    folder = cases.copy_case(case, tmp_path)
    disk = RecordingDisk(DISK)
    with watch_paths(folder) as touched:
        all_told(agent, case, folder, disk)
    assert touched == disk.paths
    assert {("open", str(folder / file)) for file in cases.input_files(case)} <= disk.asked


@every_agent
@every_case
def test_sessions_that_are_related_stay_in_their_places(agent: Agent, case: str, tmp_path: Path) -> None:
    folder = cases.copy_case(case, tmp_path)
    groups: dict[str | None, list[Reading]] = defaultdict(list)
    for file in cases.input_files(case):
        found = agent.read(Source(folder / file))
        for reading in () if isinstance(found, Problem) else found:
            groups[agent.group(reading)].append(reading)
    sessions = [agent.join(group) for group in groups.values()]
    # A family in either order: children may stand before their parents.
    for family in (sessions, sessions[::-1]):
        places = zip(agent.relate(family), family, strict=True)
        assert all((one.native_id, one.sources) == (own.native_id, own.sources) for one, own in places)


def cuts(data: bytes) -> list[int]:
    """Every end of a line, just before and behind it, and the middle of every line."""
    ends = [0, *(place + 1 for place, byte in enumerate(data) if byte == ord("\n")), len(data)]
    middles = [(start + end) // 2 for start, end in pairwise(ends)]
    near = [end + step for end in ends for step in (-1, 0, 1)]
    return sorted({cut for cut in (*near, *middles) if 0 <= cut <= len(data)})


@every_agent
@every_case
def test_an_unknown_record_is_kept_or_told(agent: Agent, case: str, tmp_path: Path) -> None:
    folder = cases.copy_case(case, tmp_path)
    for file in cases.input_files(case):
        data = (folder / file).read_bytes()
        found = agent.read(Source(folder / file))
        if isinstance(found, Problem) or found[0].format not in LINES:
            continue
        lines = data.splitlines(keepends=True)
        unknown = json.dumps({"zyx": MARK}).encode() + b"\n"
        for place in range(1, len(lines)):
            sessions = read_bytes(agent, folder / file, b"".join([*lines[:place], unknown, *lines[place:]]))
            kept = any(MARK in text for session in sessions for text in strings(as_builtins(session)))
            told = any(problem.line == place + 1 for session in sessions for problem in session.problems)
            assert kept, place
            assert told, place


@every_agent
@every_case
def test_every_value_of_a_file_is_in_the_full_view(agent: Agent, case: str, tmp_path: Path) -> None:
    folder = cases.copy_case(case, tmp_path)
    for file in cases.input_files(case):
        found = agent.read(Source(folder / file))
        if isinstance(found, Problem):
            continue
        held = "\x00".join(text for reading in found for text in told(agent.join([reading])))
        lost = [text for text in values(decoded(folder / file)) if not is_held(text, held)]
        assert not lost


def told(session: Session) -> Iterator[str]:
    """Every text of a session; those of a message's parts also in one, as they were before they were cut up."""
    tree = as_builtins(session)
    yield from strings(tree)
    for entry in tree["timeline"]:
        yield "".join(part.get("text") or "" for part in entry.get("parts", ()))


def is_held(text: str, held: str) -> bool:
    """Tell whether a text is found again; a thought rendered for the model, and JSON, count where their pieces are."""
    rendered = RENDERED.fullmatch(text)
    return (
        text in held
        or undressed(text) in held
        or (rendered is not None and all(half in held for half in rendered.groups()))
        or (text.startswith("{") and all(value in held for value in values(json_in(text))))
    )


def undressed(text: str) -> str:
    """A text without what Claude Code puts around errors."""
    return text.removeprefix("Error: ").removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")


def json_in(text: str) -> Any:
    """The JSON that a text is, as Codex writes arguments and results; the text, if it is none."""
    try:
        return json.loads(text, parse_float=str)
    except ValueError:
        return text


def decoded(file: Path) -> Iterator[Any]:
    """The JSON values in a file, where it holds any."""
    data = file.read_bytes()
    for piece in (data, *data.splitlines()):
        try:
            yield json.loads(piece, parse_float=str)
        except (ValueError, RecursionError):
            continue
        if piece is data:
            return


def strings(tree: Any) -> Iterator[str]:
    """Every text and number in a tree."""
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
    """Every text and number in a tree that should be found again, without the white space around it."""
    match tree:
        case dict():
            for name, value in tree.items():
                if name not in WRITTEN_OTHERWISE and f"{key}.{name}" not in WRITTEN_OTHERWISE:
                    yield from values(value, "tokens" if key == "tokens" else name)
        case list() | Iterator():
            for value in tree:
                yield from values(value, key)
        case str():
            yield tree.encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip()
        case int() if type(tree) is int and key != "tokens":
            yield str(tree)
