"""Made-up files of Codex: rollouts of threads and subagents, the history of prompts, and the session index."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from retold.demo.story import Ask, Compact, Notice, Rewind, Shell, Story, StoryCall, parse_change
from retold.demo.timeline import (
    INSTRUCTIONS,
    VERSIONS,
    Dice,
    File,
    Json,
    Moment,
    PlayedCall,
    Stage,
    StoryAnswer,
    StorySetting,
    StoryUsage,
    final_report,
    format_lines,
    format_time,
)

AGENTS = "multi_agent_v1"


class DemoCall(msgspec.Struct, frozen=True):
    """A call as Codex records it. A search by the API has no output of its own."""

    item: Json
    end_event: Json | None = None
    output: Json | None = None


def describe_calls(played: PlayedCall, root: str, thread_id: str, dice: Dice) -> Iterator[DemoCall]:
    """Yield the records of a call; a subagent has two, to start it and to wait for it."""
    call, call_id = played.call, f"call_{dice.name(24)}"
    match call.kind:
        case "edit" | "write":
            yield _apply_patch(call, call_id, root)
        case "web" | "fetch":
            yield _search(call, f"ws_{dice.hex(40)}")
        case "mcp":
            yield _mcp(call, call_id)
        case "agent":
            yield from _spawn(played, thread_id, (call_id, f"call_{dice.name(24)}"))
        case "todo":
            plan = [{"step": text, "status": status} for text, status in call.todos()]
            yield _function("update_plan", {"plan": plan}, call_id, "Plan updated")
        case _:
            yield _execute(call, call_id, root, dice)


def _function(name: str, args: Json, call_id: str, output: str, namespace: str | None = None) -> DemoCall:
    place = {"namespace": namespace} if namespace else {}
    item = {"type": "function_call", "id": f"fc_{call_id[5:]}", "name": name, **place}
    return DemoCall(
        {**item, "arguments": json.dumps(args, ensure_ascii=False), "call_id": call_id},
        None,
        {"type": "function_call_output", "id": f"fco_{call_id[5:]}", "call_id": call_id, "output": output},
    )


def _execute(call: StoryCall, call_id: str, root: str, dice: Dice) -> DemoCall:
    commands = {
        "read": f"sed -n '1,200p' {call.what}",
        "list": f"ls {call.what}",
        "grep": f"rg -n {json.dumps(call.what)}",
        "find": f"rg --files -g {json.dumps(call.what)}",
    }
    args = {"cmd": commands.get(call.kind, call.what), "workdir": root}
    if call.fate == "stopped":
        return _function("exec_command", args, call_id, "exec command rejected by user")
    code = 1 if call.fate == "failed" else 0
    seconds = f"0.{dice.between(1000, 9999)}"
    head = f"Chunk ID: {dice.hex(6)}\nWall time: {seconds} seconds\nProcess exited with code {code}\n"
    output = f"Original token count: {len(call.body) // 4 + 1}\nOutput:\n{call.body}\n"
    return _function("exec_command", args, call_id, head + output)


def _apply_patch(call: StoryCall, call_id: str, root: str) -> DemoCall:
    path = f"{root}/{call.what}"
    if call.kind == "write":
        rows = "".join(f"+{row}\n" for row in call.body.splitlines())
        patch = f"*** Begin Patch\n*** Add File: {call.what}\n{rows}*** End Patch\n"
        change: Json = {"type": "add", "content": f"{call.body}\n"}
        letter = "A"
    else:
        patch = parse_change(call.body).patch(call.what)
        diff = "".join(patch.splitlines(keepends=True)[2:-1])
        change, letter = {"type": "update", "unified_diff": diff, "move_path": None}, "M"
    stdout = f"Success. Updated the following files:\n{letter} {call.what}\n"
    item = {
        "type": "custom_tool_call",
        "id": f"ctc_{call_id[5:]}",
        "call_id": call_id,
        "name": "apply_patch",
    }
    end_event = {
        "type": "patch_apply_end",
        "call_id": call_id,
        "stdout": stdout,
        "stderr": "",
        "success": True,
    }
    output = f"Exit code: 0\nWall time: 0 seconds\nOutput:\n{stdout}"
    return DemoCall(
        {**item, "input": patch},
        {**end_event, "changes": {path: change}, "status": "completed"},
        {
            "type": "custom_tool_call_output",
            "id": f"ctco_{call_id[5:]}",
            "call_id": call_id,
            "output": output,
        },
    )


def _search(call: StoryCall, call_id: str) -> DemoCall:
    action: Json = {"type": "search", "query": call.what, "queries": [call.what]}
    if call.kind == "fetch":
        action = {"type": "open_page", "url": call.what}
    item = {"type": "web_search_call", "id": call_id, "status": "completed", "action": action}
    return DemoCall(
        item, {"type": "web_search_end", "call_id": call_id, "query": call.what, "action": action}
    )


def _mcp(call: StoryCall, call_id: str) -> DemoCall:
    server, tool, args = call.on_server()
    call_record = _function(tool, args, call_id, call.body, f"mcp__{server}")
    result: Json = {"Ok": {"content": [{"type": "text", "text": call.body}], "isError": False}}
    if call.fate == "failed":
        result = {"Err": call.body}
    end_event = {
        "type": "mcp_tool_call_end",
        "call_id": call_id,
        "duration": {"secs": 0, "nanos": 41_000_000},
    }
    invocation = {"server": server, "tool": tool, "arguments": args}
    return msgspec.structs.replace(
        call_record, end_event={**end_event, "invocation": invocation, "result": result}
    )


def _spawn(played: PlayedCall, thread_id: str, call_ids: tuple[str, str]) -> Iterator[DemoCall]:
    nickname, prompt = played.call.delegation()
    started = json.dumps({"agent_id": thread_id, "nickname": nickname})
    yield _function("spawn_agent", {"message": prompt}, call_ids[0], started, AGENTS)
    status = {"status": {thread_id: {"completed": final_report(played)}}, "timed_out": False}
    output = json.dumps(status, ensure_ascii=False)
    yield _function("wait_agent", {"targets": [thread_id]}, call_ids[1], output, AGENTS)


WINDOW = 258_400
SUMMED_UP = (
    "Another language model started to solve this problem and produced a summary of its thinking process. "
    "Use this to build on the work that has already been done.\n"
)
_LIMITS = {"limit_id": "codex", "limit_name": None, "primary": None, "secondary": None, "plan_type": "plus"}


class DemoRollout(msgspec.Struct):
    """The lines of a thread so far, and the running total of its tokens."""

    thread_id: str
    root: str
    model: str
    dice: Dice
    records: list[Json] = []
    started: list[tuple[str, PlayedCall]] = []
    total: StoryUsage = StoryUsage(0, 0, 0, 0)
    last: StoryUsage = StoryUsage(0, 0, 0, 0)
    turn_id: str = ""
    turn_at: datetime | None = None
    last_said: str = ""

    def play(self, moment: Moment) -> None:
        """Record a moment."""
        match moment.event:
            case Ask(text):
                self._prompt(text, moment.at)
            case StoryAnswer() as answer:
                self._answer(answer, moment)
            case Shell(command, output):
                result = f"Exit code: 0\nDuration: 0.0412 seconds\nOutput:\n{output}"
                inner = f"<command>\n{command}\n</command>\n<result>\n{result}\n</result>"
                self.message("user", f"<user_shell_command>\n{inner}\n</user_shell_command>", moment.at)
            case Notice(kind, text):
                name = "stream_error" if kind == "error" else "warning"
                self.event(moment.at, type=name, message=text)
            case Rewind():
                self.end_turn(moment.at)
                self.event(moment.at, type="thread_rolled_back", num_turns=1)
            case Compact(summary):
                self._compact(summary, moment.at)

    def put(self, kind: str, payload: Json, at: datetime) -> None:
        """Append a line."""
        self.records.append({"timestamp": format_time(at), "type": kind, "payload": payload})

    def event(self, at: datetime, **payload: object) -> None:
        """Append an event for the screen."""
        self.put("event_msg", payload, at)

    def item(self, payload: Json, at: datetime) -> None:
        """Append an item of the model's history."""
        passed = {"turn_id": self.turn_id} if self.turn_id else {}
        self.put("response_item", {**payload, "internal_chat_message_metadata_passthrough": passed}, at)

    def message(self, role: str, text: str, at: datetime) -> None:
        """Append a message."""
        kind = "output_text" if role == "assistant" else "input_text"
        message = {"type": "message", "id": f"msg_{self.dice.uuid7(at)}", "role": role}
        self.item({**message, "content": [{"type": kind, "text": text}]}, at)

    def begin_turn(self, at: datetime) -> None:
        """Begin a turn, and end the one before."""
        self.end_turn(at)
        self.turn_id, self.turn_at, self.last_said = self.dice.uuid7(at), at, ""
        self.event(
            at,
            type="task_started",
            turn_id=self.turn_id,
            started_at=int(at.timestamp()),
            model_context_window=WINDOW,
            collaboration_mode_kind="default",
        )

    def end_turn(self, at: datetime) -> None:
        """End the turn if one is running, as aborted if the model answered nothing."""
        if self.turn_at is None:
            return
        began = int(self.turn_at.timestamp())
        took = {"started_at": began, "completed_at": max(began, int(at.timestamp()) - 20)}
        if self.last_said:
            self.event(
                at, type="task_complete", turn_id=self.turn_id, last_agent_message=self.last_said, **took
            )
        else:
            self.event(at, type="turn_aborted", turn_id=self.turn_id, reason="interrupted", **took)
        self.turn_at = None

    def context(self, at: datetime) -> None:
        """Append the settings of the turn."""
        self.put(
            "turn_context",
            {
                "turn_id": self.turn_id,
                "cwd": self.root,
                "workspace_roots": [self.root],
                "current_date": f"{at:%Y-%m-%d}",
                "timezone": "Etc/UTC",
                "approval_policy": "on-request",
                "sandbox_policy": {"type": "workspace-write", "network_access": False},
                "model": self.model,
                "personality": "pragmatic",
                "effort": "medium",
                "summary": "auto",
            },
            at,
        )

    def _prompt(self, text: str, at: datetime) -> None:
        if self.turn_at is None or self.last_said:
            self.begin_turn(at)
        self.context(at)
        self.message("user", text, at)
        self.event(at, type="user_message", message=text, images=[], local_images=[], text_elements=[])

    def _answer(self, answer: StoryAnswer, moment: Moment) -> None:
        at = moment.at
        for thought in answer.thoughts:
            text = f"**{thought.subject}**\n\n{thought.text}"
            self.event(at, type="agent_reasoning", text=text)
            summary = {"type": "reasoning", "id": f"rs_{self.dice.hex(40)}"}
            sealed = {"content": None, "encrypted_content": f"gAAAA{self.dice.name(96)}"}
            self.item({**summary, "summary": [{"type": "summary_text", "text": text}], **sealed}, at)
        if answer.text:
            self.event(at, type="agent_message", message=answer.text, phase=None, memory_citation=None)
            self.message("assistant", answer.text, at)
            self.last_said = answer.text
        for played in answer.calls:
            for call in self._describe(played):
                self._record_call(call, played)
        self._count(answer.spent, moment.ended_at)

    def _describe(self, played: PlayedCall) -> Iterator[DemoCall]:
        thread_id = self.dice.uuid7(played.at)
        if played.inner:
            self.started.append((thread_id, played))
        return describe_calls(played, self.root, thread_id, self.dice)

    def _record_call(self, call: DemoCall, played: PlayedCall) -> None:
        self.item(call.item, played.at)
        if call.end_event is not None:
            self.event(played.ended_at, **call.end_event)
        if call.output is not None:
            self.item(call.output, played.ended_at)

    def _count(self, spent: StoryUsage, at: datetime) -> None:
        before, self.last = self.total, spent
        self.total = StoryUsage(
            before.input + spent.input,
            before.cached + spent.cached,
            before.output + spent.output,
            before.reasoning + spent.reasoning,
        )
        info = {"total_token_usage": _figures(self.total), "last_token_usage": _figures(spent)}
        counted = {**info, "model_context_window": WINDOW}
        self.event(at, type="token_count", info=counted, rate_limits=_LIMITS)

    def _compact(self, summary: str, at: datetime) -> None:
        prompts = [
            record["payload"]
            for record in self.records
            if record["payload"].get("role") == "user" and "<" not in str(record["payload"]["content"])[:30]
        ]
        self.begin_turn(at)
        self.message("assistant", summary, at)
        self._count(
            StoryUsage(
                self.last.input + self.last.output, self.last.input // 128 * 128, len(summary) // 4, 0
            ),
            at,
        )
        message = {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": SUMMED_UP + summary}],
        }
        self.put(
            "compacted", {"message": SUMMED_UP + summary, "replacement_history": [*prompts, message]}, at
        )
        self.event(at, type="context_compacted")
        self.last_said = summary
        self.end_turn(at)


def _figures(spent: StoryUsage) -> Json:
    """Return tokens as Codex counts them: the output includes the reasoning."""
    output = spent.output + spent.reasoning
    return {
        "input_tokens": spent.input,
        "cached_input_tokens": spent.cached,
        "cache_write_input_tokens": 0,
        "output_tokens": output,
        "reasoning_output_tokens": spent.reasoning,
        "total_tokens": spent.input + output,
    }


BASE = {
    "text": "You are Codex, a coding agent. You and the user share one workspace.",
    "provenance": {"type": "model", "model": "gpt-5.5"},
}
PERMISSIONS = (
    "<permissions instructions>\nFilesystem sandboxing defines which files can be read or written. "
    "`sandbox_mode` is `workspace-write`.\n</permissions instructions>"
)


class Thread(msgspec.Struct, frozen=True):
    """A story of Codex with its rollout and its moments."""

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
    """Yield every file of the home; a story must come after the story that it is forked from."""
    threads: dict[str, Thread] = {}
    for story in stories:
        threads[story.id] = _thread(story, setting, threads)
    for thread in threads.values():
        if "lost" not in thread.story.marks:
            yield _file(thread.rollout, thread.started_at, thread.ended_at, thread.story)
            for thread_id, played in thread.rollout.started:
                yield _subagent(thread, thread_id, played)
    yield from _lists(list(threads.values()))


def _thread(story: Story, setting: StorySetting, threads: Mapping[str, Thread]) -> Thread:
    dice = Dice("codex", story.id)
    parent = threads[story.forked_from] if story.forked_from else None
    copied = len(format_lines(parent.rollout.records)) // 10 if parent else 0
    stage = Stage(setting.start(story.when), INSTRUCTIONS["codex"] + copied, dice)
    moments = tuple(stage.play(story.beats))
    at = moments[0].at
    rollout = DemoRollout(dice.uuid7(at), setting.root(story.project), story.model, dice)
    forked = {"forked_from_id": parent.rollout.thread_id} if parent else {}
    how = ("codex_exec", "exec") if "exec" in story.marks else ("codex_cli_rs", "cli")
    rollout.put("session_meta", _about(rollout, at, originator=how[0], source=how[1], **forked), at)
    if parent:
        rollout.records.extend({**record, "timestamp": format_time(at)} for record in parent.rollout.records)
        rollout.total = parent.rollout.total
    _play(rollout, moments, is_first=parent is None)
    return Thread(story, rollout, moments)


def _about(rollout: DemoRollout, at: datetime, **more: object) -> Json:
    """Return the metadata in the first line."""
    facts = {
        "session_id": rollout.thread_id,
        "id": rollout.thread_id,
        "timestamp": format_time(at),
        "cwd": rollout.root,
        "cli_version": VERSIONS["codex"],
        "model_provider": "openai",
        "base_instructions": BASE,
        "history_mode": "legacy",
        "git": {"branch": "main"},
    }
    return {**facts, **more}


def _play(rollout: DemoRollout, moments: Sequence[Moment], *, is_first: bool = True) -> None:
    """Record a thread from its first turn to its last."""
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
    return File(f".codex/{folder}/{name}", format_lines(rollout.records), ended_at)


def _subagent(thread: Thread, thread_id: str, played: PlayedCall) -> File:
    parent = thread.rollout
    nickname, task = played.call.delegation()
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
    about = _about(rollout, played.at, **source, **more, agent_nickname=nickname)
    rollout.put("session_meta", about, played.at)
    _play(rollout, (Moment(played.at, played.at, Ask(task)), *played.inner))
    return _file(rollout, played.at, played.ended_at, thread.story)


def _lists(threads: Sequence[Thread]) -> Iterator[File]:
    """Yield the history of prompts typed in the terminal, and the names of threads."""
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
    yield File(".codex/history.jsonl", format_lines(entry for _, entry in typed), typed[-1][0])
    named = [thread for thread in threads if "untitled" not in thread.story.marks]
    rows = [
        {
            "id": thread.rollout.thread_id,
            "thread_name": thread.story.title,
            "updated_at": thread.ended_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        for thread in sorted(named, key=lambda thread: thread.ended_at)
    ]
    yield File(".codex/session_index.jsonl", format_lines(rows), max(thread.ended_at for thread in named))
