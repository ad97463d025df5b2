"""Made-up files of Claude Code: transcripts of sessions and subagents."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

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
    format_document,
    format_lines,
    format_time,
)

REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, "
    "the new_string was NOT written to the file). "
)


class DemoCall(msgspec.Struct, frozen=True):
    """A call as Claude Code records it, without its id: input, content for the model, and `toolUseResult`."""

    name: str
    input: Json
    content: Any
    shown: Any
    is_error: bool | None = None


def describe_calls(played: PlayedCall, root: str, agent_id: str) -> Iterator[DemoCall]:
    """Yield the records of a call; each item of a todo list is a call."""
    call = played.call
    if call.kind == "todo":
        yield from _tasks(call)
        return
    demo = _agent(played, agent_id) if call.kind == "agent" else _plain(call, root)
    if call.fate == "stopped":
        reason = f"{REFUSED}To tell you how to proceed, the user said:\n{call.body}"
        demo = msgspec.structs.replace(demo, content=reason, shown=f"Error: {REFUSED}", is_error=True)
    elif call.fate == "failed" and call.kind != "run":
        words = f"<tool_use_error>{call.body}</tool_use_error>"
        demo = msgspec.structs.replace(demo, content=words, shown=f"Error: {call.body}", is_error=True)
    yield demo


def _plain(call: StoryCall, root: str) -> DemoCall:
    match call.kind:
        case "edit" | "write":
            return _change(call, f"{root}/{call.what}")
        case "run" | "list":
            return _run(call)
        case "read" | "grep" | "find":
            return _look(call, root)
        case "mcp":
            server, tool, args = call.on_server()
            content = [{"type": "text", "text": call.body}]
            return DemoCall(f"mcp__{server}__{tool}", args, content, content)
        case _:
            return _web(call)


def _run(call: StoryCall) -> DemoCall:
    command = f"ls {call.what}" if call.kind == "list" else call.what
    args = {"command": command, "description": f"Run {command.split()[0]}"}
    if call.fate == "failed":
        words = f"Exit code 1\n{call.body}"
        return DemoCall("Bash", args, words, f"Error: {words}", is_error=True)
    shown = {
        "stdout": call.body,
        "stderr": "",
        "interrupted": False,
        "isImage": False,
        "noOutputExpected": False,
    }
    return DemoCall("Bash", args, call.body, shown, is_error=False)


def _change(call: StoryCall, path: str) -> DemoCall:
    if call.kind == "write":
        args: Json = {"file_path": path, "content": f"{call.body}\n"}
        shown: Json = {"type": "create", "filePath": path, "content": args["content"], "structuredPatch": []}
        return DemoCall(
            "Write", args, f"File created successfully at: {path}", {**shown, "originalFile": None}
        )
    change = parse_change(call.body)
    old, new = change.old.removesuffix("\n"), change.new.removesuffix("\n")
    args = {"file_path": path, "old_string": old, "new_string": new, "replace_all": False}
    shown = {
        "filePath": path,
        "oldString": old,
        "newString": new,
        "originalFile": change.old,
        "structuredPatch": change.hunks(),
        "userModified": False,
        "replaceAll": False,
    }
    return DemoCall("Edit", args, f"The file {path} has been updated successfully.", shown)


def _look(call: StoryCall, root: str) -> DemoCall:
    rows = call.body.splitlines()
    match call.kind:
        case "read":
            path = f"{root}/{call.what}"
            numbered = "\n".join(f"{number:6}\u2192{row}" for number, row in enumerate(rows, start=1))
            counts = {"numLines": len(rows), "startLine": 1, "totalLines": len(rows)}
            file = {"filePath": path, "content": call.body, **counts}
            return DemoCall("Read", {"file_path": path}, numbered, {"type": "text", "file": file})
        case "find":
            names = [f"{root}/{row}" for row in rows]
            shown: Json = {"filenames": names, "durationMs": 31, "numFiles": len(names), "truncated": False}
            return DemoCall("Glob", {"pattern": call.what}, "\n".join(names), shown)
        case _:
            args = {"pattern": call.what, "output_mode": "content", "-n": True}
            shown = {
                "mode": "content",
                "numFiles": 0,
                "filenames": [],
                "content": call.body,
                "numLines": len(rows),
            }
            return DemoCall("Grep", args, call.body, shown)


def _web(call: StoryCall) -> DemoCall:
    if call.kind == "fetch":
        args = {"url": call.what, "prompt": "What does this page say about the question?"}
        size = len(call.body.encode())
        counts = {"bytes": size * 40, "code": 200, "codeText": "OK", "durationMs": 2140}
        return DemoCall("WebFetch", args, call.body, {**counts, "result": call.body, "url": call.what})
    content = f'Web search results for query: "{call.what}"\n\n{call.body}'
    shown = {"query": call.what, "results": [call.body], "durationSeconds": 3.2}
    return DemoCall("WebSearch", {"query": call.what}, content, shown)


def _tasks(call: StoryCall) -> Iterator[DemoCall]:
    for number, (text, _) in enumerate(call.todos(), start=1):
        args = {"subject": text, "description": text, "activeForm": text}
        shown = {"task": {"id": str(number), "subject": text}}
        yield DemoCall("TaskCreate", args, f"Task #{number} created successfully: {text}", shown)


def _agent(played: PlayedCall, agent_id: str) -> DemoCall:
    name, prompt = played.call.delegation()
    answer = {"type": "text", "text": final_report(played)}
    hint = {
        "type": "text",
        "text": f"agentId: {agent_id} (use SendMessage with to: '{agent_id}' to continue this agent)",
    }
    shown = {
        "status": "completed",
        "prompt": prompt,
        "agentId": agent_id,
        "agentType": name,
        "content": [answer],
        "totalDurationMs": int((played.ended_at - played.at).total_seconds() * 1000),
        "totalToolUseCount": len([moment for moment in played.inner if getattr(moment.event, "calls", ())]),
    }
    short = " ".join(prompt.split()[:5])
    return DemoCall(
        "Agent", {"description": short, "prompt": prompt, "subagent_type": name}, [answer, hint], shown
    )


CAVEAT = (
    "<local-command-caveat>Caveat: The messages below were generated by the user while running local commands. "
    "DO NOT respond to these messages or otherwise consider them in your response unless the user explicitly asks "
    "you to.</local-command-caveat>"
)
CONTINUED = (
    "This session is being continued from a previous conversation that ran out of context. "
    "The summary below covers the earlier portion of the conversation.\n\nSummary:\n"
)


class DemoTranscript(msgspec.Struct):
    """The lines of a session, or of one of its subagents, so far."""

    session_id: str
    root: str
    model: str
    dice: Dice
    agent_id: str | None = None
    records: list[Json] = []
    leaf: str | None = None
    prompts: list[str | None] = []
    started: list[tuple[str, PlayedCall]] = []
    prompt_id: str = ""

    def play(self, moment: Moment) -> None:
        """Record a moment."""
        match moment.event:
            case Ask(text):
                self._prompt(text, moment.at)
            case StoryAnswer() as answer:
                self._answer(answer, moment)
            case Shell(command, output):
                self.say(f"<bash-input>{command}</bash-input>", moment.at)
                self.say(f"<bash-stdout>{output}</bash-stdout><bash-stderr></bash-stderr>", moment.at)
            case Notice(text=text):
                self._api_error(text, moment.at)
            case Rewind():
                self.leaf = self.prompts.pop()  # the next prompt has the same parent as the last
            case Compact(summary):
                self._compact(summary, moment.at)

    def put(self, at: datetime, **record: object) -> str:
        """Append a line whose parent is the last one, and return its id."""
        name = self.dice.uuid()
        chain = {"parentUuid": self.leaf, "isSidechain": self.agent_id is not None}
        agent = {"agentId": self.agent_id} if self.agent_id else {}
        setting = {
            "userType": "external",
            "entrypoint": "cli",
            "cwd": self.root,
            "sessionId": self.session_id,
            "version": VERSIONS["claude"],
            "gitBranch": "main",
        }
        self.records.append(
            {**chain, **agent, **record, "uuid": name, "timestamp": format_time(at), **setting}
        )
        self.leaf = name
        return name

    def say(self, content: object, at: datetime, **more: object) -> str:
        """Append a line in the role of the user."""
        return self.put(at, type="user", message={"role": "user", "content": content}, **more)

    def _prompt(self, text: str, at: datetime) -> None:
        self.prompts.append(self.leaf)
        self.prompt_id = self.dice.uuid()
        mode = {} if self.agent_id else {"permissionMode": "default"}
        name = self.say(text, at, promptId=self.prompt_id, **mode)
        if not self.agent_id:
            snapshot = {"messageId": name, "trackedFileBackups": {}, "timestamp": format_time(at)}
            record = {"type": "file-history-snapshot", "messageId": name, "snapshot": snapshot}
            self.records.append({**record, "isSnapshotUpdate": False})

    def _answer(self, answer: StoryAnswer, moment: Moment) -> None:
        pairs = [(demo, played) for played in answer.calls for demo in self._describe(played)]
        records = [(f"toolu_01{self.dice.name(22)}", demo, played) for demo, played in pairs]
        blocks: list[Json] = [
            {
                "type": "thinking",
                "thinking": f"{thought.subject}. {thought.text}",
                "signature": self.dice.name(88),
            }
            for thought in answer.thoughts
        ]
        if answer.text:
            blocks.append({"type": "text", "text": answer.text})
        blocks += [
            {"type": "tool_use", "id": name, "name": demo.name, "input": demo.input}
            for name, demo, _ in records
        ]
        names = list(self._blocks(blocks, answer.spent, moment))
        for (name, demo, played), line in zip(records, names[len(blocks) - len(records) :], strict=True):
            self._result(name, demo, played.ended_at, line)

    def _describe(self, played: PlayedCall) -> Iterator[DemoCall]:
        agent_id = f"a{self.dice.hex(16)}"
        if played.inner:
            self.started.append((agent_id, played))
        return describe_calls(played, self.root, agent_id)

    def _blocks(self, blocks: list[Json], spent: StoryUsage, moment: Moment) -> Iterator[str]:
        """Append a response, one line for each block, and yield the ids of the lines."""
        response, request = f"msg_01{self.dice.name(22)}", f"req_011C{self.dice.name(20)}"
        reason = "tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn"
        for place, block in enumerate(blocks):
            at = moment.at + timedelta(milliseconds=400 * place)
            message = {
                "id": response,
                "type": "message",
                "role": "assistant",
                "model": self.model,
                "content": [block],
                "stop_reason": reason,
                "stop_sequence": None,
                "usage": _usage(spent, is_last=place == len(blocks) - 1),
            }
            yield self.put(at, message=message, requestId=request, type="assistant")

    def _result(self, call_id: str, demo: DemoCall, at: datetime, line: str) -> None:
        self.leaf = line
        block: Json = {"tool_use_id": call_id, "type": "tool_result", "content": demo.content}
        if demo.is_error is not None:
            block["is_error"] = demo.is_error
        shown = {} if self.agent_id else {"toolUseResult": demo.shown}
        self.say([block], at, promptId=self.prompt_id, **shown, sourceToolAssistantUUID=line)

    def _api_error(self, text: str, at: datetime) -> None:
        error = {"type": "error", "error": {"type": "overloaded_error", "message": text}}
        self.put(
            at,
            type="system",
            subtype="api_error",
            level="error",
            error={"status": 529, "error": error},
            retryInMs=612.4,
            retryAttempt=1,
            maxRetries=10,
        )

    def _compact(self, summary: str, at: datetime) -> None:
        last, self.leaf = self.leaf, None
        facts = {"trigger": "manual", "preTokens": 90_000 + self.dice.between(0, 40_000)}
        self.put(
            at,
            logicalParentUuid=last,
            type="system",
            subtype="compact_boundary",
            content="Conversation compacted",
            isMeta=False,
            level="info",
            compactMetadata=facts,
        )
        self.say(CONTINUED + summary, at, isVisibleInTranscriptOnly=True, isCompactSummary=True)
        self.say(CAVEAT, at, isMeta=True)
        command = (
            "<command-name>/compact</command-name>\n            <command-message>compact</command-message>\n"
        )
        self.say(f"{command}            <command-args></command-args>", at)
        self.say("<local-command-stdout>Compacted (ctrl+o to see full summary)</local-command-stdout>", at)


def _usage(spent: StoryUsage, *, is_last: bool) -> Json:
    """Return the usage in a line: the output tokens so far, and the other counts of the whole response."""
    fresh = min(6, spent.input - spent.cached)
    written = spent.input - spent.cached - fresh
    whole = spent.output + spent.reasoning
    return {
        "input_tokens": fresh,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": spent.cached,
        "output_tokens": whole if is_last else min(whole, 9),
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
        "service_tier": "standard",
        "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": written},
        "inference_geo": "",
        "iterations": [],
        "speed": "standard",
    }


SUBAGENT_MODEL = "claude-haiku-4-5-20251001"


def claude_files(stories: Sequence[Story], setting: StorySetting) -> Iterator[File]:
    """Yield every file of the home; a story must come after the story that it is forked from."""
    written: dict[str, DemoTranscript] = {}
    for story in stories:
        dice = Dice("claude", story.id)
        transcript = DemoTranscript(dice.uuid(), setting.root(story.project), story.model, dice)
        written[story.id] = transcript
        base = _copy_parent(transcript, written, story)
        stage = Stage(setting.start(story.when), INSTRUCTIONS["claude"] + base, dice)
        for moment in stage.play(story.beats):
            transcript.play(moment)
        yield from _files(story, transcript, setting, stage.at)


def _copy_parent(transcript: DemoTranscript, written: Mapping[str, DemoTranscript], story: Story) -> int:
    """Begin a fork with copies of the lines of its parent; return their number of tokens."""
    if story.forked_from is None:
        return 0
    parent = written[story.forked_from]
    copied = [record for record in parent.records if "uuid" in record]
    transcript.records.extend({**record, "sessionId": transcript.session_id} for record in copied)
    transcript.leaf = parent.leaf
    return len(format_lines(copied)) // 12


def _files(story: Story, transcript: DemoTranscript, setting: StorySetting, at: datetime) -> Iterator[File]:
    folder = f".claude/projects/{setting.claude_name(story.project)}"
    records = [*transcript.records, *_names(story, transcript.session_id)]
    yield File(f"{folder}/{transcript.session_id}.jsonl", format_lines(records), at)
    for agent_id, played in transcript.started:
        path = f"{folder}/{transcript.session_id}/subagents/agent-{agent_id}"
        kind, task = played.call.delegation()
        meta = {"agentType": kind, "description": " ".join(task.split()[:5])}
        yield File(f"{path}.meta.json", format_document(meta), played.at)
        yield File(f"{path}.jsonl", format_lines(_subagent(transcript, agent_id, played)), played.ended_at)


def _names(story: Story, session_id: str) -> Iterator[Json]:
    """Yield the title, given by the person or the model, and the last prompt."""
    if "named" in story.marks:
        yield {"type": "custom-title", "customTitle": story.title, "sessionId": session_id}
    elif "untitled" not in story.marks:
        yield {"type": "ai-title", "aiTitle": story.title, "sessionId": session_id}
    yield {"type": "last-prompt", "lastPrompt": story.prompts()[-1], "sessionId": session_id}


def _subagent(parent: DemoTranscript, agent_id: str, played: PlayedCall) -> list[Json]:
    transcript = DemoTranscript(parent.session_id, parent.root, SUBAGENT_MODEL, parent.dice, agent_id)
    _, task = played.call.delegation()
    for moment in (Moment(played.at, played.at, Ask(task)), *played.inner):
        transcript.play(moment)
    return transcript.records
