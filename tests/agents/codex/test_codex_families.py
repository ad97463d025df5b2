"""Threads in several files, and files of several threads: forks, threads turned back, archives, lists."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import zstandard

from retold import Message, Session, Text, ToolCall
from retold.agents import codex
from retold.agents.protocol import AgentHome, Reading, Source
from retold.model.problem import Problem
from retold.model.session import View
from retold.reading.disk import DISK, Disk
from retold.sessions.conversations import group_scraps, join_conversations
from support.codex_home import (
    Json,
    as_text,
    at,
    event_line,
    line,
    message_line,
    meta_line,
    thread_id,
    token_line,
    turn,
    usage,
    with_ordinals,
    write,
)
from support.disks import MemoryDisk, watch_paths
from support.synced_archive import sync_archive

MAIN, FORK, BACK = thread_id(0, 1), thread_id(100, 2), thread_id(50, 3)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".codex" / "sessions").mkdir(parents=True)
    return tmp_path / ".codex"


def sessions(*homes: Path, view: View = "full") -> dict[str, Session]:
    """Every thread in some homes, by its id; a file that cannot be read fails the test."""
    with TemporaryDirectory() as folder:
        env, others = {"CODEX_HOME": str(homes[0])}, [(None, home) for home in homes[1:]]
        archive = sync_archive(folder, env, others, ["codex"])
        assert not archive.problems
        assert archive.refusals() == []
        return {str(session.native_id): session for session in archive.sessions(view)}


def on_disk(disk: Disk, home: Path) -> dict[str, Session]:
    """Every thread that a disk holds, by its id; all files are taken for one cluster."""
    clustered, loose = list[Reading](), list[Reading]()
    for source in codex.find_sources(AgentHome(home, home / "sessions", disk=disk)):
        assert isinstance(source, Source)
        readings = codex.read(source)
        assert not isinstance(readings, Problem)
        (loose if source.cluster is None else clustered).extend(readings)
    shared = group_scraps(codex, loose)
    told = join_conversations(codex, clustered, shared)
    groups = {group for group, _, _ in told}
    lost = [codex.join(said) for group, said in shared.groups.items() if group not in groups]
    return {str(session.native_id): session for session in (*(one for _, _, one in told), *lost)}


def texts(session: Session) -> list[tuple[str, str, bool]]:
    """What was said in a session, what became of it, and whether it was said there."""
    return [
        (part.text, entry.fate, entry.own)
        for entry in session.timeline
        if isinstance(entry, Message)
        for part in entry.parts
        if isinstance(part, Text)
    ]


def base_of(thread: str, end: int) -> dict[str, object]:
    return {"history_mode": "paginated", "history_base": {"thread_id": thread, "end_ordinal_exclusive": end}}


def two_turns() -> list[dict[str, object]]:
    return with_ordinals(
        [meta_line(MAIN, 0), *turn(1, "First.", "Done.", 1), *turn(10, "Second.", "Also done.", 2)]
    )


def test_a_thread_turned_back_is_one_session_of_two_files(home: Path) -> None:
    write(home, MAIN, two_turns())
    later = [meta_line(MAIN, 50, **base_of(MAIN, 6)), *turn(51, "Another way.", "Done anew.", 2)]
    write(home, f"{MAIN}_{BACK}", with_ordinals(later, 6))
    (session,) = sessions(home).values()
    assert texts(session) == [
        ("First.", "live", True), ("Done.", "live", True), ("Second.", "rewound", True), ("Also done.", "rewound", True),
        ("Another way.", "live", True), ("Done anew.", "live", True),
    ]  # fmt: skip
    assert (session.usage.requests, session.usage.input, session.counts.prompts) == (3, 300, 3)
    assert (session.kind, len(session.sources), session.problems) == ("main", 2, ())
    (active,) = sessions(home, view="active").values()
    assert [text for text, _, _ in texts(active)] == ["First.", "Done.", "Another way.", "Done anew."]


def test_a_base_ends_before_the_ordinal_that_is_named(home: Path) -> None:
    """The answer to the second prompt has ordinal 8."""
    write(home, MAIN, two_turns())
    later = [meta_line(MAIN, 50, **base_of(MAIN, 8)), *turn(51, "Another way.", "Done again.", 2)]
    file = write(home, f"{MAIN}_{BACK}", with_ordinals(later, 8))
    found = codex.read(Source(file))
    assert not isinstance(found, Problem)
    said = [text for text, _, _ in texts(codex.join(found))]
    assert said == ["First.", "Done.", "Second.", "Another way.", "Done again."]


def test_what_was_turned_back_twice_is_rewound_as_a_whole(home: Path) -> None:
    write(home, MAIN, two_turns())
    later = [meta_line(MAIN, 50, **base_of(MAIN, 6)), *turn(51, "Another way.", "Done anew.", 2)]
    write(home, f"{MAIN}_{BACK}", with_ordinals(later, 6))
    last = [meta_line(MAIN, 80, **base_of(MAIN, 6)), *turn(81, "A third way.", "Done at last.", 2)]
    write(home, f"{MAIN}_{thread_id(80, 4)}", with_ordinals(last, 6))
    (session,) = sessions(home, view="active").values()
    assert [text for text, _, _ in texts(session)] == ["First.", "Done.", "A third way.", "Done at last."]
    assert session.usage.requests == 4


def test_one_file_of_a_thread_turned_back_brings_its_base_along(home: Path) -> None:
    write(home, MAIN, two_turns())
    later = [meta_line(MAIN, 50, **base_of(MAIN, 6)), *turn(51, "Another way.", "Done anew.", 2)]
    file = write(home, f"{MAIN}_{BACK}", with_ordinals(later, 6))
    found = codex.read(Source(file))
    assert not isinstance(found, Problem)
    assert [text for text, _, _ in texts(codex.join(found))] == [
        "First.",
        "Done.",
        "Another way.",
        "Done anew.",
    ]


@pytest.mark.parametrize("folder", ["sessions/2026/03/01", "sessions/2026/02/28", "archived_sessions"])
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_fork_goes_on_from_a_file_wherever_it_lies(home: Path, folder: str, is_packed: bool) -> None:  # noqa: FBT001
    base = write(home, MAIN, two_turns(), folder)
    if is_packed:
        base.with_name(f"{base.name}.zst").write_bytes(zstandard.compress(base.read_bytes()))
        base.unlink()
    own = [
        meta_line(FORK, 100, forked_from_id=MAIN, **base_of(MAIN, 6)),
        *turn(101, "Elsewhere.", "Done here.", 2),
    ]
    write(home, FORK, with_ordinals(own, 6))
    fork = sessions(home)[FORK]
    assert texts(fork) == [
        ("First.", "live", False), ("Done.", "live", False), ("Elsewhere.", "live", True), ("Done here.", "live", True),
    ]  # fmt: skip
    assert (fork.kind, fork.parent, fork.first_prompt) == ("fork", f"codex:{MAIN}", "Elsewhere.")
    assert (fork.usage.requests, fork.usage.input, fork.problems) == (1, 100, ())


def test_a_fork_of_a_fork_has_three_files(home: Path) -> None:
    write(home, MAIN, two_turns())
    own = [
        meta_line(FORK, 100, forked_from_id=MAIN, **base_of(MAIN, 6)),
        *turn(101, "Elsewhere.", "Done here.", 2),
    ]
    write(home, FORK, with_ordinals(own, 6))
    third = thread_id(200, 5)
    last = [
        meta_line(third, 200, forked_from_id=FORK, **base_of(FORK, 12)),
        *turn(201, "Further.", "Done there.", 3),
    ]
    write(home, third, with_ordinals(last, 12))
    assert [text for text, _, _ in texts(sessions(home)[third])] == [
        "First.", "Done.", "Elsewhere.", "Done here.", "Further.", "Done there.",
    ]  # fmt: skip


def test_files_that_go_on_from_each_other_end(home: Path) -> None:
    write(home, MAIN, with_ordinals([meta_line(MAIN, 0, **base_of(FORK, 6)), *turn(1, "First.", "Done.", 1)]))
    write(
        home,
        FORK,
        with_ordinals([meta_line(FORK, 100, **base_of(MAIN, 6)), *turn(101, "Elsewhere.", "Done.", 2)]),
    )
    assert set(sessions(home)) == {MAIN, FORK}


def copied(lines: list[dict[str, object]], second: int) -> list[dict[str, object]]:
    """Return lines as a fork copies them: with its own time."""
    return [{**line, "timestamp": at(second)} for line in lines]


def test_a_turn_of_the_millisecond_in_which_a_fork_was_made_is_its_own(home: Path) -> None:
    def begun(turn_id: str) -> Json:
        return event_line(40, "task_started", turn_id=turn_id)

    parent = [meta_line(MAIN, 0), begun(thread_id(1, 11)), *turn(1, "First.", "Done.", 1)]
    own = [begun(thread_id(100, 12)), *turn(100, "Elsewhere.", "Done here.", 2)]
    write(home, MAIN, parent)
    write(home, FORK, [meta_line(FORK, 100, forked_from_id=MAIN), *copied(parent, 100), *own])
    fork = sessions(home)[FORK]
    assert [text for text, _, is_own in texts(fork) if is_own] == ["Elsewhere.", "Done here."]


def test_a_copy_without_turn_ids_is_told_by_comparison_with_its_parent(home: Path) -> None:
    parent = [meta_line(MAIN, 0, cli_version="0.98.0"), *turn(1, "First.", "Done.", 1)]
    write(home, MAIN, [*parent, *turn(20, "Later.", "Much later.", 2)])
    own = [
        meta_line(FORK, 100, forked_from_id=MAIN),
        *copied(parent, 100),
        *turn(101, "Elsewhere.", "Done here.", 2),
    ]
    write(home, FORK, own)
    fork = sessions(home)[FORK]
    assert texts(fork) == [
        ("First.", "live", False), ("Done.", "live", False), ("Elsewhere.", "live", True), ("Done here.", "live", True),
    ]  # fmt: skip
    assert (fork.usage.requests, fork.usage.input, fork.counts.prompts) == (1, 100, 1)


def spawned_lines(*beginning: Json) -> list[Json]:
    """Return a fork of which the last copied count has no item: a fork for an agent copies no calls."""
    parent = [
        meta_line(MAIN, 0),
        event_line(1, "task_started", turn_id=thread_id(1, 9)),
        *turn(1, "First.", "Done.", 1),
        token_line(3, usage(1100, 110), usage(1000, 100)),
    ]
    own = [
        message_line(102, "assistant", "Done here."),
        token_line(103, usage(1200, 120), usage(100, 10)),
    ]
    return [meta_line(FORK, 100, forked_from_id=MAIN), *copied(parent, 100), *beginning, *own]


OWN_TURN = thread_id(101, 8)
BEGINNINGS = {
    "its turn": [event_line(101, "task_started", turn_id=OWN_TURN)],
    "its context": [line(101, "turn_context", {"turn_id": OWN_TURN})],
    "its prompt": [message_line(101, "user", "Elsewhere."), line(101, "turn_context", {"turn_id": OWN_TURN})],
    "the copied count again": [
        event_line(101, "task_started", turn_id=OWN_TURN),
        token_line(101, usage(1100, 110), usage(1000, 100)),
    ],
}


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_the_last_count_that_a_fork_copied_is_its_parents(home: Path, beginning: str) -> None:
    write(home, FORK, spawned_lines(*BEGINNINGS[beginning]))
    fork = sessions(home)[FORK]
    assert (fork.usage.requests, fork.usage.input, fork.usage.output) == (1, 100, 10)
    counted = [
        (entry.usage.input, entry.own, len(entry.parts))
        for entry in fork.timeline
        if isinstance(entry, Message) and entry.usage
    ]
    assert counted == [(100, False, 1), (1000, False, 0), (100, True, 1)]


def test_a_request_that_a_fork_copied_counts_in_its_parent_alone(home: Path) -> None:
    parent = [
        meta_line(MAIN, 0),
        *turn(1, "First.", "Done.", 1),
        token_line(3, usage(1100, 110), usage(1000, 100)),
    ]
    write(home, MAIN, parent)
    write(home, FORK, spawned_lines(*BEGINNINGS["its turn"]))
    found = sessions(home)
    assert [(found[name].usage.requests, found[name].usage.input) for name in (MAIN, FORK)] == [
        (2, 1100),
        (1, 100),
    ]


def test_a_copied_count_without_turn_ids_is_told_by_comparison_with_its_parent(home: Path) -> None:
    parent = [
        meta_line(MAIN, 0, cli_version="0.98.0"),
        *turn(1, "First.", "Done.", 1),
        token_line(3, usage(1100, 110), usage(1000, 100)),
    ]
    write(home, MAIN, parent)
    own = [
        message_line(101, "user", "Elsewhere."),
        message_line(102, "assistant", "Done here."),
        token_line(103, usage(1200, 120), usage(100, 10)),
    ]
    write(home, FORK, [meta_line(FORK, 100, forked_from_id=MAIN), *copied(parent, 100), *own])
    fork = sessions(home)[FORK]
    assert (fork.usage.requests, fork.usage.input) == (1, 100)


def test_a_copy_of_which_no_line_is_its_own_counts_nothing(home: Path) -> None:
    parent = [
        meta_line(MAIN, 0),
        event_line(1, "task_started", turn_id=thread_id(1, 9)),
        *turn(1, "First.", "Done.", 1),
    ]
    write(home, FORK, [meta_line(FORK, 100, forked_from_id=MAIN), *copied(parent, 100)])
    fork = sessions(home)[FORK]
    assert (fork.usage.requests, fork.counts.prompts) == (0, 0)


def test_a_subagent_names_its_parent_and_is_named_by_a_call(home: Path) -> None:
    child = thread_id(2, 6)
    call = {
        "type": "function_call",
        "name": "spawn_agent",
        "namespace": "multi_agent_v1",
        "arguments": "{}",
        "call_id": "c",
    }
    output = {"type": "function_call_output", "call_id": "c", "output": json.dumps({"agent_id": child})}
    write(home, MAIN, [meta_line(MAIN, 0), line(1, "response_item", call), line(3, "response_item", output)])
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": MAIN, "depth": 1}}}
    write(home, child, [meta_line(child, 2, source=spawned), *turn(3, "A task.", "Done.", 1)])
    found = sessions(home)
    parts = [part for entry in found[MAIN].timeline if isinstance(entry, Message) for part in entry.parts]
    assert [part.child for part in parts if isinstance(part, ToolCall)] == [f"codex:{child}"]
    assert (found[child].kind, found[child].parent, found[child].first_prompt) == (
        "subagent",
        f"codex:{MAIN}",
        None,
    )


def test_the_lists_name_threads_and_keep_prompts_of_lost_ones(home: Path) -> None:
    write(home, MAIN, [meta_line(MAIN, 0), *turn(1, "First.", "Done.", 1)])
    names = [{"id": MAIN, "thread_name": name, "updated_at": at(5)} for name in ("Old", "The first")]
    (home / "session_index.jsonl").write_text(as_text(names), encoding="utf-8")
    typed = [{"session_id": thread, "ts": 1_772_355_601, "text": "First."} for thread in (MAIN, FORK)]
    (home / "history.jsonl").write_text(as_text(typed), encoding="utf-8")
    found = sessions(home)
    assert (found[MAIN].summary, found[MAIN].kind, found[MAIN].counts.prompts) == ("The first", "main", 1)
    assert (found[FORK].kind, found[FORK].first_prompt, found[FORK].key) == (
        "prompts-only",
        "First.",
        f"codex:{FORK}",
    )


def test_files_kept_elsewhere_go_on_from_each_other_there(home: Path) -> None:
    base = write(home, MAIN, two_turns(), "sessions/2026/02/28")
    base.with_name(f"{base.name}.zst").write_bytes(zstandard.compress(base.read_bytes()))
    base.unlink()
    own = [
        meta_line(BACK, 50, forked_from_id=MAIN, **base_of(MAIN, 6)),
        *turn(51, "Another way.", "Done anew.", 2),
    ]
    write(home, BACK, with_ordinals(own, 6))
    parent = thread_id(80, 4)
    lines = [meta_line(parent, 80), *turn(81, "First.", "Done.", 1)]
    write(home, parent, lines)
    write(
        home,
        FORK,
        [meta_line(FORK, 100, forked_from_id=parent), *lines, *turn(101, "Elsewhere.", "Here.", 2)],
    )
    typed = [{"session_id": thread_id(90, 5), "ts": 1_772_355_700, "text": "Lost."}]
    (home / "history.jsonl").write_text(as_text(typed), encoding="utf-8")
    expected, memory = on_disk(DISK, home), MemoryDisk.of(home)
    assert len(expected) == 5
    shutil.rmtree(home)
    with watch_paths(home) as touched:
        assert on_disk(memory, home) == expected
    assert touched == set()


def test_copies_of_one_file_in_two_homes_are_one_session(home: Path, tmp_path: Path) -> None:
    lines = two_turns()
    write(home, MAIN, lines[:6])
    write(tmp_path / "backup" / ".codex", MAIN, lines, "archived_sessions")
    (session,) = sessions(home, tmp_path / "backup" / ".codex").values()
    assert (session.usage.requests, session.counts.prompts, len(session.sources)) == (2, 2, 2)
    assert session.extra["archived"] is True


def test_a_plain_file_wins_over_a_packed_one_of_its_name(home: Path) -> None:
    file = write(home, MAIN, two_turns())
    file.with_name(f"{file.name}.zst").write_bytes(zstandard.compress(b"old"))
    assert [session.counts.prompts for session in sessions(home).values()] == [2]


def found_names(home: AgentHome) -> Iterator[str]:
    return (source.path.name for source in codex.find_sources(home) if isinstance(source, Source))


def test_only_rollouts_and_lists_are_found(home: Path) -> None:
    write(home, MAIN, two_turns())
    for name in (
        "auth.json",
        "config.toml",
        "state_5.sqlite",
        "sessions/notes.jsonl",
        f"sessions/rollout-{MAIN}.jsonl.tmp",
    ):
        (home / name).write_text("{}")
    write(home, FORK, two_turns(), "sessions/1/2/3/4/5")
    assert list(found_names(AgentHome(home, home / "sessions"))) == [
        f"rollout-2026-03-01T10-00-00-{MAIN}.jsonl"
    ]


def test_homes_come_from_the_environment(home: Path, tmp_path: Path) -> None:
    user = {"HOME": str(tmp_path)}
    assert [found.path for found in codex.find_homes(user)] == [home]
    assert [found.path for found in codex.find_homes({**user, "CODEX_HOME": "/else"})] == [Path("/else")]
    chosen = next(codex.find_homes({**user, "CODEX_SESSIONS_DIR": "/only"}))
    assert (chosen.path, chosen.sessions) == (home, Path("/only"))


def test_a_home_is_known_by_its_name_or_by_what_lies_in_it(home: Path, tmp_path: Path) -> None:
    assert codex.find_home(tmp_path) == codex.find_home(home) == AgentHome(home, home / "sessions")
    backup = tmp_path / "backup"
    (backup / "sessions").mkdir(parents=True)
    assert codex.find_home(backup) is None
    write(backup, MAIN, two_turns())
    assert codex.find_home(backup) == AgentHome(backup, backup / "sessions")


def test_a_count_that_repeats_the_fork_is_not_its_own(home: Path) -> None:
    own = [
        meta_line(FORK, 100, forked_from_id=MAIN, **base_of(MAIN, 6)),
        message_line(101, "user", "Here?"),
        message_line(102, "assistant", "Yes."),
    ]
    write(home, FORK, with_ordinals([*own, token_line(102, usage(1100, 110), usage(100, 10))], 6))
    assert sessions(home)[FORK].usage.input == 100
