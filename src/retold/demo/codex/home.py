"""All of Codex's home: a rollout for each story, and the two lists that tell of many."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from retold.demo.acts import Acted, Moment, Stage, StoryUsage
from retold.demo.cast import INSTRUCTIONS, VERSIONS, File, StorySetting
from retold.demo.codex.rollout import DemoRollout
from retold.demo.dice import Dice
from retold.demo.story import Ask, Story
from retold.demo.wording import Json, lines, stamp

BASE = {
    "text": "You are Codex, a coding agent. You and the user share one workspace.",
    "provenance": {"type": "model", "model": "gpt-5.5"},
}
PERMISSIONS = (
    "<permissions instructions>\nFilesystem sandboxing defines which files can be read or written. "
    "`sandbox_mode` is `workspace-write`.\n</permissions instructions>"
)


class Thread(msgspec.Struct, frozen=True):
    """A story of Codex that was played: its rollout, and when."""

    story: Story
    rollout: DemoRollout
    moments: tuple[Moment, ...]

    @property
    def started_at(self) -> datetime:
        """When it began."""
        return self.moments[0].at

    @property
    def ended_at(self) -> datetime:
        """When it ended."""
        return self.moments[-1].ended_at


def codex_files(stories: Sequence[Story], setting: StorySetting) -> Iterator[File]:
    """Yield every file of the home; a story that another was forked from stands before it."""
    threads: dict[str, Thread] = {}
    for story in stories:
        threads[story.id] = _thread(story, setting, threads)
    for thread in threads.values():
        if "lost" not in thread.story.marks:
            yield _file(thread.rollout, thread.started_at, thread.ended_at, thread.story)
            for thread_id, acted in thread.rollout.started:
                yield _subagent(thread, thread_id, acted)
    yield from _lists(list(threads.values()))


def _thread(story: Story, setting: StorySetting, threads: Mapping[str, Thread]) -> Thread:
    dice = Dice("codex", story.id)
    parent = threads[story.forked_from] if story.forked_from else None
    copied = len(lines(parent.rollout.records)) // 10 if parent else 0
    stage = Stage(setting.start(story.when), INSTRUCTIONS["codex"] + copied, dice)
    moments = tuple(stage.play(story.beats))
    at = moments[0].at
    rollout = DemoRollout(dice.uuid7(at), setting.root(story.project), story.model, dice)
    forked = {"forked_from_id": parent.rollout.thread_id} if parent else {}
    how = ("codex_exec", "exec") if "exec" in story.marks else ("codex_cli_rs", "cli")
    rollout.put("session_meta", _about(rollout, at, originator=how[0], source=how[1], **forked), at)
    if parent:
        rollout.records.extend({**record, "timestamp": stamp(at)} for record in parent.rollout.records)
        rollout.total = parent.rollout.total
    _play(rollout, moments, is_first=parent is None)
    return Thread(story, rollout, moments)


def _about(rollout: DemoRollout, at: datetime, **more: object) -> Json:
    """Return what the first line says."""
    told = {
        "session_id": rollout.thread_id,
        "id": rollout.thread_id,
        "timestamp": stamp(at),
        "cwd": rollout.root,
        "cli_version": VERSIONS["codex"],
        "model_provider": "openai",
        "base_instructions": BASE,
        "history_mode": "legacy",
        "git": {"branch": "main"},
    }
    return {**told, **more}


def _play(rollout: DemoRollout, moments: Sequence[Moment], *, is_first: bool = True) -> None:
    """Write a thread down from its first turn to its last."""
    at = moments[0].at
    rollout.begin_turn(at)
    if is_first:
        rollout.message("developer", PERMISSIONS, at)
        place = f"  <cwd>{rollout.root}</cwd>\n  <shell>bash</shell>\n  <current_date>{at:%Y-%m-%d}</current_date>"
        rollout.message("user", f"<environment_context>\n{place}\n</environment_context>", at)
    for moment in moments:
        rollout.play(moment)
    rollout.end_turn(moments[-1].ended_at)


def _file(rollout: DemoRollout, at: datetime, ended_at: datetime, story: Story) -> File:
    name = f"rollout-{at:%Y-%m-%dT%H-%M-%S}-{rollout.thread_id}.jsonl"
    folder = "archived_sessions" if "archived" in story.marks else f"sessions/{at:%Y/%m/%d}"
    return File(f".codex/{folder}/{name}", lines(rollout.records), ended_at)


def _subagent(thread: Thread, thread_id: str, acted: Acted) -> File:
    parent = thread.rollout
    nickname, task = acted.call.delegated()
    rollout = DemoRollout(thread_id, parent.root, parent.model, parent.dice, total=StoryUsage(0, 0, 0, 0))
    spawned = {
        "parent_thread_id": parent.thread_id,
        "depth": 1,
        "agent_path": None,
        "agent_nickname": nickname,
        "agent_role": "explorer",
    }
    more = {"session_id": parent.thread_id, "parent_thread_id": parent.thread_id, "thread_source": "subagent"}
    source = {"originator": "codex_cli_rs", "source": {"subagent": {"thread_spawn": spawned}}}
    about = _about(rollout, acted.at, **source, **more, agent_nickname=nickname)
    rollout.put("session_meta", about, acted.at)
    _play(rollout, (Moment(acted.at, acted.at, Ask(task)), *acted.inner))
    return _file(rollout, acted.at, acted.ended_at, thread.story)


def _lists(threads: Sequence[Thread]) -> Iterator[File]:
    """Yield the prompts that were typed in the terminal, and the names of threads."""
    typed = [
        (
            moment.at,
            {
                "session_id": thread.rollout.thread_id,
                "ts": int(moment.at.timestamp()),
                "text": moment.event.text,
            },
        )
        for thread in threads
        if "exec" not in thread.story.marks
        for moment in thread.moments
        if isinstance(moment.event, Ask)
    ]
    typed.sort(key=lambda entry: entry[0])
    yield File(".codex/history.jsonl", lines(entry for _, entry in typed), typed[-1][0])
    named = [thread for thread in threads if "untitled" not in thread.story.marks]
    rows = [
        {
            "id": thread.rollout.thread_id,
            "thread_name": thread.story.title,
            "updated_at": thread.ended_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        for thread in sorted(named, key=lambda thread: thread.ended_at)
    ]
    yield File(".codex/session_index.jsonl", lines(rows), max(thread.ended_at for thread in named))
