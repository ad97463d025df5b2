"""What several sessions hold is counted once, and belongs to the earliest: whoever comes first, whichever the agent."""

import json
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from retold.model.builder import Draft, assemble_session
from retold.model.session import Coverage, Kind, Message, Project, Session, SourceFile, Usage, sum_usage
from retold.synchronization.user_changes import forget
from support import fake_agent
from support.ownership_rule import may_count, resolve_ownership
from support.synced_archive import SyncedArchive, sync_archive, sync_conversations

pytestmark = pytest.mark.slow

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
MICROSECOND = 1e-6 / 60
"""As a part of a minute."""


@pytest.fixture(autouse=True, scope="module")
def made() -> Iterator[None]:
    with fake_agent.registered():
        yield


def message(number: int, minute: float = 0, request: int | None = None) -> Message:
    """An answer with an id, and a request, that no other number has."""
    asked = number if request is None else request
    written = asked if asked % 3 else None  # some requests tell nothing of it
    usage = Usage(
        f"msg_{asked:016}", 100 + asked, 10, written, 5, None, None, 105 + asked, cache_write_1h=written
    )
    at = START + timedelta(minutes=minute)
    return Message(f"{number:08}-0000-4000-8000-000000000000", "assistant", at, "live", None, "m", usage, ())


def session(
    key: str, held: Sequence[int | Message], minute: float, kind: Kind = "main", parent: str | None = None
) -> Session:
    entries = tuple(one if isinstance(one, Message) else message(one, minute) for one in held)
    started_at = START + timedelta(minutes=minute)
    draft = Draft(
        key=key,
        agent=fake_agent.NAME,
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
    return assemble_session(draft, "full")


class Shelf:
    """An archive, and the home that it is filled from."""

    def __init__(self, folder: Path) -> None:
        self.home, self.archive, self._names = folder / "home", folder / "archive", count()
        self.home.mkdir()

    def put(self, *sessions: Session, names: Sequence[str] = ()) -> SyncedArchive:
        """Bring the archive up to date with more sessions, or with what became of those in files of these names."""
        for place, one in enumerate(sessions):
            fake_agent.write(self.home, names[place] if names else f"{next(self._names)}", one)
        return sync_archive(
            self.archive, {fake_agent.HOME_VARIABLE: str(self.home)}, agents=(fake_agent.NAME,)
        )


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def by_key(archive: SyncedArchive) -> dict[str, Session]:
    return {one.key: one for one in archive.sessions()}


def told(*sessions: Session) -> dict[str, Session]:
    """What an archive tells that met these sessions one after the other: the same as the rule says."""
    with TemporaryDirectory() as folder:
        shelf = Shelf(Path(folder))
        for one in sessions:
            archive = shelf.put(one)
        found = by_key(archive)
    assert found == resolve_ownership(sessions)
    return found


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
    assert fork.usage == sum_usage([usage for entry in second.timeline[2:] if (usage := entry.usage)])  # type: ignore[union-attr]


def test_a_copy_that_says_nothing_of_its_own_took_nothing() -> None:
    found = told(session("made:a", [1, 2], 0), session("made:b", [1, 2], 5))
    assert found["made:b"].usage == sum_usage(())
    assert own(found["made:b"]) == []


@pytest.mark.parametrize(("length", "kind"), [(15, "main"), (16, "fork")])
def test_only_a_long_id_tells_that_two_messages_are_one(length: int, kind: Kind, shelf: Shelf) -> None:
    held = msgspec.structs.replace(message(1), id="a" * length)
    later = msgspec.structs.replace(held, usage=message(2).usage)
    found = by_key(shelf.put(session("made:a", [held], 0), session("made:b", [later], 5)))
    assert found["made:b"].kind == kind


def test_what_is_listed_is_counted_as_what_is_shown(shelf: Shelf) -> None:
    """A list has no timelines."""
    archive = shelf.put(session("made:a", [1, 2], 0), session("made:b", [1, 2, 3], 5))
    shown = [msgspec.structs.replace(one, timeline=()) for one in archive.sessions()]
    assert [one.usage.requests for one in shown] == [2, 1]
    assert archive.summaries() == shown[::-1]


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


# Held by a place, with its beginning: messages, some of them of one request, and some that a file says are copies.
contents = some.tuples(
    some.lists(
        some.builds(
            lambda number, own: msgspec.structs.replace(message(number, 0, number // 2), own=own),
            some.integers(0, 9),
            some.sampled_from([True, True, True, False]),
        ),
        max_size=6,
        unique_by=lambda one: one.id,
    ),
    some.sampled_from([0, MICROSECOND, 1, 2]),
)
batches = some.lists(some.dictionaries(some.integers(0, 4), contents, min_size=1), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(batches)
def test_the_archive_comes_to_what_the_rule_says_however_it_got_there(
    written: list[dict[int, tuple[list[Message], float]]],
) -> None:
    with TemporaryDirectory() as folder:
        shelf, latest = Shelf(Path(folder)), dict[int, Session]()
        for batch in written:
            for place, (held, minute) in batch.items():
                kind: Kind = "subagent" if place == 4 else "main"
                parent = "made:0" if place == 4 else None
                latest[place] = session(f"made:{place}", held, minute, kind, parent)
            archive = shelf.put(*(latest[place] for place in batch), names=list(map(str, batch)))
        found = by_key(archive)
    expected = resolve_ownership(list(latest.values()))
    assert found == expected
    requests = {usage.request for one in latest.values() for usage in counted_usages(one)}
    assert sum(one.usage.requests for one in found.values()) == len(requests)


def counted_usages(one: Session) -> list[Usage]:
    messages = [entry for entry in one.timeline if isinstance(entry, Message)]
    return [
        entry.usage for entry in messages if entry.usage is not None and may_count(entry, entry.usage, one)
    ]


@settings(max_examples=40, deadline=None)
@given(
    numbers=some.lists(some.lists(some.integers(0, 9), max_size=6, unique=True), min_size=1, max_size=5),
    seed=some.integers(),
)
def test_every_request_is_counted_once_in_whatever_order(numbers: list[list[int]], seed: int) -> None:
    sessions = [session(f"made:{place}", held, place) for place, held in enumerate(numbers)]
    random.Random(seed).shuffle(sessions)  # noqa: S311 - no secret
    found = told(*sessions)
    every = {number for held in numbers for number in held}
    assert sum(one.usage.requests for one in found.values()) == len(every)
    assert sum(one.usage.input or 0 for one in found.values()) == sum(100 + number for number in every)


def test_what_a_forgotten_session_held_belongs_to_the_next(shelf: Shelf) -> None:
    first, second = session("made:a", [1, 2], 0), session("made:b", [1, 2, 3], 5)
    archive = shelf.put(first, second)
    assert by_key(archive)["made:b"].kind == "fork"
    forget(archive.folder, ["made:a"])
    assert archive.sessions() == [second]


def test_a_forgotten_child_is_nobodys(shelf: Shelf) -> None:
    parent = session("made:a", [1], 0)
    archive = shelf.put(parent, session("made:a/1", [2], 2, "subagent", "made:a"))
    assert by_key(archive)["made:a"].children == ("made:a/1",)
    forget(archive.folder, ["made:a/1"])
    assert archive.sessions() == [parent]


def test_absurd_counts_do_no_harm(shelf: Shelf) -> None:
    huge = message(1)
    assert huge.usage is not None
    usage = msgspec.structs.replace(huge.usage, input=2**70, output=-5, total=2**63)
    absurd = msgspec.structs.replace(huge, usage=usage)
    same = msgspec.structs.replace(absurd, usage=msgspec.structs.replace(usage, request="msg_another"))
    archive = shelf.put(
        session("made:a", [absurd, same], 0), session("made:b", [absurd, same, message(2)], 5)
    )
    fork = by_key(archive)["made:b"]
    assert (fork.kind, fork.usage.requests) == ("fork", 1)


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
    found = {one.key: one for one in sync_conversations(tmp_path, agent="claude")}
    assert {key: one.usage.output for key, one in found.items()} == {
        f"claude:{first}": 3,
        f"claude:{second}": 3,
    }
    assert (found[f"claude:{second}"].kind, found[f"claude:{second}"].parent) == ("fork", f"claude:{first}")
