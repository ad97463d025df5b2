"""What several sessions hold is counted once, and belongs to the earliest: whoever comes first, whichever the agent."""

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from retold.agents.registry import AGENTS
from retold.ingest.gather import find_all, gather
from retold.ingest.kinship import Kinship
from retold.model.assemble import Draft, assembled
from retold.model.entries import Message
from retold.model.project import Project
from retold.model.session import Coverage, Kind, Session, SourceFile
from retold.model.usage import Usage, totals

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


def message(number: int, minute: int) -> Message:
    """An answer with an id and a request that no other number has."""
    usage = Usage(
        f"msg_{number:016}", 100 + number, 10, number, 5, None, None, 105 + number, cache_write_1h=1
    )
    at = START + timedelta(minutes=minute)
    return Message(f"{number:08}-0000-4000-8000-000000000000", "assistant", at, "live", None, "m", usage, ())


def session(
    key: str, numbers: Sequence[int], minute: int, kind: Kind = "main", parent: str | None = None
) -> Session:
    entries = tuple(message(number, minute) for number in numbers)
    started_at = START + timedelta(minutes=minute)
    draft = Draft(
        key=key,
        agent="made",
        native_id=key,
        kind=kind,
        project=Project("/home/ann", None, f"hash of {key}", "recorded"),
        started_at=started_at,
        ended_at=started_at,
        status="success",
        parent=parent,
        sources=(SourceFile(None, key, "made", 1),),
        coverage=Coverage(1, 0),
        problems=(),
        full=entries,
        active=entries,
    )
    return assembled(draft, "full")


def told(*sessions: Session) -> dict[str, Session]:
    kinship = Kinship()
    seen = list(kinship.watch(sessions))
    return {one.key: kinship.told(one) for one in seen}


def own(one: Session) -> list[str | None]:
    return [entry.id for entry in one.timeline if isinstance(entry, Message) and entry.own]


@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_copy_belongs_to_the_session_that_began_first(*, is_reversed: bool) -> None:
    first, second = session("made:a", [1, 2], 0), session("made:b", [1, 2, 3], 5)
    found = told(*([second, first] if is_reversed else [first, second]))
    assert found["made:a"] == first
    fork = found["made:b"]
    assert (fork.kind, fork.parent) == ("fork", "made:a")
    assert own(fork) == [message(3, 0).id]
    assert fork.usage == totals([usage for entry in second.timeline[2:] if (usage := entry.usage)])  # type: ignore[union-attr]


def test_a_copy_that_says_nothing_of_its_own_took_nothing() -> None:
    found = told(session("made:a", [1, 2], 0), session("made:b", [1, 2], 5))
    assert found["made:b"].usage == totals(())
    assert own(found["made:b"]) == []


def test_what_is_listed_is_counted_as_what_is_shown() -> None:
    """A list has no timelines any more when it asks."""
    kinship = Kinship()
    rows = [
        msgspec.structs.replace(one, timeline=())
        for one in kinship.watch([session("made:a", [1, 2], 0), session("made:b", [1, 2, 3], 5)])
    ]
    shown = told(session("made:a", [1, 2], 0), session("made:b", [1, 2, 3], 5))
    assert [kinship.told(row).usage for row in rows] == [one.usage for one in shown.values()]


def test_strangers_stay_as_they_are() -> None:
    sessions = [session("made:a", [1], 0), session("made:b", [2], 5)]
    assert list(told(*sessions).values()) == sessions


def test_children_are_named_wherever_they_lie() -> None:
    found = told(
        session("made:a/2", [3], 4, "subagent", "made:a"),
        session("made:a", [1], 0),
        session("made:a/1", [2], 2, "subagent", "made:a"),
    )
    assert found["made:a"].children == ("made:a/1", "made:a/2")


def test_a_fork_is_no_child() -> None:
    found = told(session("made:a", [1], 0), session("made:b", [2], 5, "fork", "made:a"))
    assert (found["made:a"].children, found["made:b"].parent) == ((), "made:a")


def test_two_sessions_never_have_one_key() -> None:
    found = told(*(session("made:a", [number], number) for number in range(4)))
    assert list(found)[:2] == ["made:a", "made:a~hash o"]
    assert len(found) == 4
    assert sum(one.usage.requests for one in found.values()) == 4


@given(
    numbers=some.lists(some.lists(some.integers(0, 9), max_size=6, unique=True), max_size=5),
    seed=some.integers(),
)
def test_every_request_is_counted_once_in_whatever_order(numbers: list[list[int]], seed: int) -> None:
    sessions = [session(f"made:{place}", held, place) for place, held in enumerate(numbers)]
    random.Random(seed).shuffle(sessions)  # noqa: S311 - no secret
    found = told(*sessions)
    every = {number for held in numbers for number in held}
    assert sum(one.usage.requests for one in found.values()) == len(every)
    assert sum(one.usage.input or 0 for one in found.values()) == sum(100 + number for number in every)


def test_absurd_counts_do_no_harm() -> None:
    huge = message(1, 0)
    assert huge.usage is not None

    absurd = msgspec.structs.replace(huge, usage=msgspec.structs.replace(huge.usage, input=2**70, output=-5))
    first = msgspec.structs.replace(session("made:a", [1], 0), timeline=(absurd,))
    second = msgspec.structs.replace(session("made:b", [1, 2], 5), timeline=(absurd, message(2, 0)))
    assert told(first, second)["made:b"].kind == "fork"


def claude_lines(session_id: str, numbers: Sequence[int]) -> str:
    lines: list[dict[str, Any]] = []
    for number in numbers:
        usage = {"input_tokens": 10, "output_tokens": number}
        lines.append(
            {
                "type": "assistant",
                "uuid": f"{number:08}-0000-4000-8000-000000000000",
                "parentUuid": lines[-1]["uuid"] if lines else None,
                "sessionId": session_id,
                "timestamp": f"2026-03-01T09:0{number}:00.000Z",
                "cwd": "/home/ann/dev/almanac",
                "message": {
                    "id": f"msg_{number}",
                    "role": "assistant",
                    "model": "claude-x",
                    "content": [{"type": "text", "text": f"answer {number}"}],
                    "usage": usage,
                },
            }
        )
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_a_fork_of_claude_code_counts_only_its_own(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "-home-ann-dev-almanac"
    folder.mkdir(parents=True)
    first, second = "00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"
    (folder / f"{first}.jsonl").write_text(claude_lines(first, [1, 2]))
    (folder / f"{second}.jsonl").write_text(claude_lines(second, [1, 2, 3]))
    agent = AGENTS["claude"]
    home = agent.home_in(tmp_path)
    assert home is not None
    found = told(*gather(agent, find_all(agent, [home]), lambda _: None))
    assert {key: one.usage.output for key, one in found.items()} == {
        f"claude:{first}": 3,
        f"claude:{second}": 3,
    }
    assert (found[f"claude:{second}"].kind, found[f"claude:{second}"].parent) == ("fork", f"claude:{first}")
