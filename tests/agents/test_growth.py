"""The steps of a reader grow with its file, however the records refer to each other."""

import ast
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import retold
from retold.agents import claude
from retold.agents.gemini import find_home, find_leftovers
from retold.agents.gemini.state import Version, add_version
from retold.agents.protocol import Leftover, Reading, Source
from retold.model.problem import Problem
from retold.model.serialization import to_builtins
from retold.model.session import Entry, Message, Part, Session, ToolCall
from retold.reading.disk import DISK
from support.step_counter import assert_linear

SIZE = 150


def at(number: int) -> str:
    return f"2026-03-01T{9 + number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}.000Z"


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


# Gemini CLI.

GEMINI_START = {"sessionId": uuid(1), "projectHash": "h", "startTime": at(0)}


def gemini_user(number: int, key: str | None = None) -> Any:
    return {"id": key or f"u{number}", "type": "user", "timestamp": at(number), "content": f"Say {number}."}


def gemini_call(number: int) -> Any:
    return {"id": f"c{number}", "name": "read_file", "args": {"file_path": "a.py"}, "status": "success"}


GEMINI: dict[str, Callable[[int], list[Any]]] = {
    "one id again and again": lambda size: [gemini_user(number, "u") for number in range(size)],
    "a rewind after each prompt": lambda size: [
        record for number in range(size) for record in (gemini_user(number), {"$rewindTo": f"u{number}"})
    ],
    "rewinds to nothing": lambda size: [
        *map(gemini_user, range(size)),
        *({"$rewindTo": f"x{number}"} for number in range(size)),
    ],
    "short lists": lambda size: [
        *map(gemini_user, range(size)),
        *({"$set": {"messages": [gemini_user(number)]}} for number in range(size)),
    ],
    "copies in short lists": lambda size: [
        {"$set": {"messages": [gemini_user(1, f"v{number}")]}} for number in range(size)
    ],
    "many beginnings": lambda size: [{**GEMINI_START, "startTime": at(number)} for number in range(size)],
    "many calls": lambda size: [
        {
            "id": "g",
            "type": "gemini",
            "timestamp": at(1),
            "content": "",
            "toolCalls": list(map(gemini_call, range(size))),
        }
    ],
}

# Claude Code.


def claude_line(number: int, parent: int | None, content: Any = "Go on.", role: str = "user") -> Any:
    message: Any = {"role": role, "content": content}
    if role == "assistant":
        message |= {"id": f"m{number}", "model": "claude", "usage": {"input_tokens": 1, "output_tokens": 1}}
    return {
        "parentUuid": None if parent is None else uuid(parent),
        "sessionId": uuid(999_999),
        "cwd": "/work/almanac",
        "version": "2.0.0",
        "type": role,
        "uuid": uuid(number),
        "timestamp": at(number),
        "message": message,
    }


def claude_use(number: int, key: str) -> Any:
    use = {"type": "tool_use", "id": key, "name": "Bash", "input": {"command": "ls"}}
    return claude_line(number, number - 1 if number else None, [use], "assistant")


def claude_uses(number: int, size: int) -> Any:
    uses = [
        {"type": "tool_use", "id": f"t{place}", "name": "Bash", "input": {"command": "ls"}}
        for place in range(size)
    ]
    return claude_line(number, 500_000, uses, "assistant")


def claude_results(number: int, *ids: str) -> Any:
    results = [{"type": "tool_result", "tool_use_id": name, "content": f"Done {number}."} for name in ids]
    return claude_line(number, number - 1, results)


CLAUDE: dict[str, Callable[[int], list[Any]]] = {
    "a chain": lambda size: [claude_line(number, number - 1 if number else None) for number in range(size)],
    "a chain from its end": lambda size: [
        claude_line(number, number - 1 if number else None) for number in reversed(range(size))
    ],
    "a star": lambda size: [claude_line(number, 0 if number else None) for number in range(size)],
    "a circle": lambda size: [claude_line(number, (number + 1) % size) for number in range(size)],
    "parents that are nowhere": lambda size: [
        claude_line(number, 500_000 + number) for number in range(size)
    ],
    "one uuid": lambda size: [claude_line(1, None, f"Say {number}.") for number in range(size)],
    "one id of calls": lambda size: [claude_use(number, "t") for number in range(size)],
    "calls": lambda size: [claude_use(number, f"t{number}") for number in range(size)],
    "many calls in a line": lambda size: [
        claude_uses(0, size),
        *(claude_results(number + 1, f"t{number}") for number in range(size)),
    ],
    "many calls and many results in a line": lambda size: [
        claude_uses(0, size),
        claude_results(1, *(f"t{number}" for number in range(size))),
    ],
    "results before their calls": lambda size: [
        claude_results(1, *(f"t{number}" for number in range(size))),
        claude_uses(2, size),
    ],
    "a line with many calls again": lambda size: [
        {**claude_uses(0, size), "timestamp": at(number)} for number in range(2)
    ],
    "a branch at each line": lambda size: [
        line
        for number in range(size)
        for line in (
            claude_line(2 * number, 2 * number - 2 if number else None),
            claude_line(2 * number + 1, 2 * number),
        )
    ],
}

# Codex CLI.


def codex_line(number: int, kind: str, payload: Any) -> Any:
    return {"timestamp": at(number), "type": kind, "payload": payload}


def codex_user(number: int, text: str | None = None) -> Any:
    content = [{"type": "input_text", "text": text or f"Say {number}."}]
    return codex_line(number, "response_item", {"type": "message", "role": "user", "content": content})


def codex_event(number: int, kind: str, **more: Any) -> Any:
    return codex_line(number, "event_msg", {"type": kind, **more})


def codex_count(number: int) -> Any:
    used = {"input_tokens": number, "output_tokens": number, "total_tokens": 2 * number}
    info = {"total_token_usage": used, "last_token_usage": used}
    return codex_event(number, "token_count", info=info)


def codex_call(number: int, name: str, call_id: str) -> Any:
    call = {"type": "function_call", "name": name, "arguments": "{}", "call_id": call_id}
    return codex_line(number, "response_item", call)


def codex_end(number: int, call_id: str) -> Any:
    return codex_event(number, "exec_command_end", call_id=call_id, command=["ls"], exit_code=0)


CODEX_START = codex_line(
    0, "session_meta", {"id": uuid(5), "timestamp": at(0), "cwd": "/work/almanac", "cli_version": "0.50.0"}
)

CODEX: dict[str, Callable[[int], list[Any]]] = {
    "counts of tokens": lambda size: [
        line for number in range(size) for line in (codex_user(number), codex_count(number))
    ],
    "nothing but counts": lambda size: list(map(codex_count, range(size))),
    "compactions": lambda size: [
        line
        for number in range(size)
        for line in (
            codex_user(number),
            codex_line(number, "compacted", {"message": "", "replacement_history": []}),
        )
    ],
    "turns taken back at the end": lambda size: [
        *map(codex_user, range(size)),
        *(codex_event(number, "thread_rolled_back", num_turns=1) for number in range(size)),
    ],
    "one id of results": lambda size: [
        codex_line(
            number, "response_item", {"type": "function_call_output", "call_id": "c", "output": "done"}
        )
        for number in range(size)
    ],
    "calls before a script": lambda size: [
        *(codex_call(number, "shell", f"c{number}") for number in range(size)),
        codex_call(size, "exec", "script"),
        *(codex_end(number, f"other{number}") for number in range(size)),
    ],
    "events long after their words": lambda size: [
        *map(codex_user, range(size)),
        *(codex_event(number, "user_message", message=f"Say {number}.") for number in range(size)),
    ],
    "forks of forks": lambda size: [
        codex_line(number, "session_meta", {"id": uuid(number), "forked_from_id": uuid(number + 1)})
        for number in range(size)
    ],
}


def cases() -> Iterator[Any]:
    named = {
        "gemini": ("session-2026-03-01T09-00-00000000.jsonl", GEMINI_START, GEMINI),
        "claude": (f"{uuid(999_999)}.jsonl", None, CLAUDE),
        "codex": (f"rollout-2026-03-01T09-00-00-{uuid(5)}.jsonl", CODEX_START, CODEX),
    }
    for agent, (file, start, shapes) in named.items():
        for name, shape in shapes.items():
            yield pytest.param(file, start, shape, id=f"{agent}: {name}")


@pytest.mark.parametrize(("name", "start", "shape"), list(cases()))
def test_steps_grow_with_the_file(
    tmp_path: Path, name: str, start: Any, shape: Callable[[int], list[Any]]
) -> None:
    def prepare(size: int) -> Callable[[], object]:
        file = tmp_path / str(size) / name
        file.parent.mkdir(exist_ok=True)
        records = [*([start] if start else []), *shape(size)]
        file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        return lambda: list(retold.read(file))

    assert_linear(prepare, SIZE)


class CountingList(list[Version]):
    """A list that counts the items that slices copy."""

    copied = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        if isinstance(place, slice):
            self.copied += len(found)
        return found


def test_a_new_version_of_a_message_copies_few_of_the_others() -> None:
    versions = CountingList()
    for number in range(2_000):
        add_version(versions, {"id": "u", "content": str(number)}, (number, 0))
    assert len(versions) == 2_000
    assert versions.copied <= 64 * 2_000


def test_outputs_are_compared_with_many_sessions_in_linear_time(tmp_path: Path) -> None:
    def prepare(size: int) -> Callable[[], list[Leftover]]:
        project = tmp_path / str(size) / ".gemini" / "tmp" / "almanac"
        for number in range(size):
            outputs = project / "tool-outputs" / f"session-{number:08x}-0000-4000-8000-000000000000"
            outputs.mkdir(parents=True, exist_ok=True)
            (outputs / "one.txt").write_text("text")
            chat = project / "chats" / f"session-2026-03-01T09-00-{number // 2:08x}.jsonl"
            chat.parent.mkdir(exist_ok=True)
            chat.touch()
        home = find_home(tmp_path / str(size), DISK)
        assert home is not None
        return lambda: list(find_leftovers(home))

    assert len(prepare(9)()) == 4
    assert_linear(prepare, 40)


SHORT_COPIES = {
    ("agents/gemini/restore.py", "parts"),  # a new list for each record
    ("reading/json_decode.py", "repairs"),  # two at most
}
"""Copies in loops that do not grow with the loop, by module and variable."""


def copies_in_loops(source: str) -> list[str]:
    """Return the variables that a loop replaces by a copy of themselves with more in it."""
    return [
        target.id
        for loop in ast.walk(ast.parse(source))
        if isinstance(loop, ast.For | ast.While)
        for statement in ast.walk(loop)
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.List | ast.Tuple)
        for part in statement.value.elts
        if isinstance(part, ast.Starred)
        for target in statement.targets
        if isinstance(target, ast.Name)
        and target.id in {name.id for name in ast.walk(part.value) if isinstance(name, ast.Name)}
    ]


@pytest.mark.parametrize(
    ("loop", "names"),
    [
        ("for a in b:\n    c = [*c, a]", ["c"]),
        ("while a:\n    c = (*(c or ()), a)", ["c"]),
        ("for a in b:\n    c = [*d, a]", []),
        ("c = [*c, a]", []),
    ],
)
def test_a_copy_in_a_loop_is_found(loop: str, names: list[str]) -> None:
    assert copies_in_loops(loop) == names


def test_no_loop_copies_what_it_collects() -> None:
    """Such copies are made by C code: no count of steps shows that their size grows with the square of the input."""
    folder = Path(retold.__file__).parent
    found = {
        (file.relative_to(folder).as_posix(), name)
        for file in folder.rglob("*.py")
        for name in copies_in_loops(file.read_text(encoding="utf-8"))
    }
    assert found == SHORT_COPIES


def test_subagents_of_one_file_with_one_id_are_joined_in_linear_time(tmp_path: Path) -> None:
    """Their ids are the beginnings of those of their lines; all their readings have the same state."""

    def prepare(size: int) -> Callable[[], object]:
        file = tmp_path / str(size) / f"{uuid(999_999)}.jsonl"
        lines = [{**claude_line(number, None), "isSidechain": True} for number in range(size)]
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        readings = claude.read(Source(file))
        assert not isinstance(readings, Problem)
        assert len(readings) == size
        return lambda: claude.join(readings)

    assert_linear(prepare, SIZE)


def test_a_claude_call_holds_some_results_and_its_line_the_rest(tmp_path: Path) -> None:
    """Each further one would copy all that it holds."""
    calls = [claude_use(0, "t"), *(claude_results(number, "t") for number in range(1, 400))]
    calls += [claude_results(400, *["t"] * 3)]
    (session,) = session_of(tmp_path / f"{uuid(999_999)}.jsonl", calls)
    (call,) = [part for entry in session.timeline for part in parts_of(entry) if isinstance(part, ToolCall)]
    assert len(call.other_results) == 199
    assert_told(session, [f"Done {number}." for number in range(1, 401)])


def test_a_codex_call_holds_some_results_and_events_and_the_timeline_the_rest(tmp_path: Path) -> None:
    """Each further one would copy all that it holds."""
    results = [
        codex_line(
            number,
            "response_item",
            {"type": "function_call_output", "call_id": "c", "output": f"Done {number}."},
        )
        for number in range(500)
    ]
    early = [
        codex_event(
            number, "exec_command_end", call_id="c", command=["ls"], exit_code=0, note=f"Seen {number}."
        )
        for number in range(500)
    ]
    lines = [CODEX_START, codex_call(0, "shell", "c"), *early, *results]
    (session,) = session_of(tmp_path / f"rollout-2026-03-01T09-00-00-{uuid(5)}.jsonl", lines)
    calls = [part for entry in session.timeline for part in parts_of(entry) if isinstance(part, ToolCall)]
    assert len(calls[0].other_results) == 200
    assert len(calls) == 301
    assert_told(
        session,
        [*(f"Done {number}." for number in range(500)), *(f"Seen {number}." for number in range(200, 500))],
    )


def session_of(file: Path, records: list[Any]) -> list[Session]:
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return list(retold.read(file))


def parts_of(entry: Entry) -> tuple[Part, ...]:
    return entry.parts if isinstance(entry, Message) else ()


def assert_told(session: Session, texts: list[str]) -> None:
    told = json.dumps(to_builtins(session))
    assert [text for text in texts if text not in told] == []


def test_copies_that_say_something_else_are_joined_in_linear_time(tmp_path: Path) -> None:
    """Each of many copies of one session has another text under the same id."""

    def prepare(size: int) -> Callable[[], Session]:
        readings: list[Reading] = []
        for number in range(size):
            file = tmp_path / str(size) / f"copy{number}" / f"{uuid(1)}.jsonl"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(claude_line(1, None, f"tide {number}.")) + "\n", encoding="utf-8")
            found = claude.read(Source(file))
            assert not isinstance(found, Problem)
            readings += found
        return lambda: claude.join(readings)

    assert len(prepare(9)().timeline) == 9
    assert_linear(prepare, 40)
