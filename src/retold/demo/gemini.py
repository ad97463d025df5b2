"""Made-up records of Gemini CLI: messages, tool calls and the lines of a session."""

import json
import re
from datetime import datetime
from typing import Any

import msgspec

from retold.demo.story import (
    Ask,
    Compact,
    Form,
    Notice,
    Rewind,
    Save,
    Shell,
    StoryCall,
    StoryDiff,
    parse_change,
)
from retold.demo.timeline import Dice, Json, Moment, PlayedCall, StoryAnswer, final_report, format_time

CANCELLED = "[Operation Cancelled] Reason: User denied execution."
_HIT = re.compile(r"(?P<file>[^:]+):(?P<line>\d+): ?(?P<text>.*)")


class DemoCall(msgspec.Struct, frozen=True):
    """A call as Gemini CLI records it, without its id and its time."""

    name: str
    args: Json
    output: str
    display: Any
    description: str
    title: str
    is_markdown: bool = True


def tool_call(played: PlayedCall, call_id: str, root: str, form: Form, agent_id: str | None) -> Json:
    """Return the record of a call with its result."""
    demo = _describe(played, root, form)
    fate = played.call.fate
    status = {"done": "success", "stopped": "cancelled"}.get(fate, "error")
    if played.call.kind == "run" and fate == "failed":
        status = "success"  # a command that fails is no failure of the tool
    answer = {"output": demo.output}
    if status != "success":
        answer = {"error": CANCELLED if fate == "stopped" else played.call.body}
    response = {"functionResponse": {"id": call_id, "name": demo.name, "response": answer}}
    return {
        "id": call_id,
        "name": demo.name,
        "args": demo.args,
        "result": [response],
        "status": status,
        "timestamp": format_time(played.ended_at),
        **({"agentId": agent_id} if agent_id else {}),
        "resultDisplay": demo.display if status == "success" else answer["error"],
        "description": demo.description,
        "displayName": demo.title,
        "renderOutputAsMarkdown": demo.is_markdown,
    }


def _describe(played: PlayedCall, root: str, form: Form) -> DemoCall:
    call = played.call
    match call.kind:
        case "run":
            return _run(call, form)
        case "edit" | "write":
            return _change(call, root)
        case "read" | "list" | "grep" | "find":
            return _look(call, root)
        case "agent":
            return _agent(played)
        case "todo":
            return _todo(call)
        case "mcp":
            return _mcp(call, form)
        case _:
            return _web(call)


def _run(call: StoryCall, form: Form) -> DemoCall:
    group = 20_000 + len(call.what) * 37 % 9_000
    failed = "\nExit Code: 1" if call.fate == "failed" else ""
    output = f"Output: {call.body or '(empty)'}{failed}\nProcess Group PGID: {group}"
    if form == "lines":
        output = f"<untrusted_context>\n{output}\n</untrusted_context>"
    args = {"command": call.what, "description": f"Run {call.what.split()[0]}"}
    return DemoCall("run_shell_command", args, output, call.body, call.what, "Shell", is_markdown=False)


def _change(call: StoryCall, root: str) -> DemoCall:
    path, name = f"{root}/{call.what}", call.what.rpartition("/")[2]
    if call.kind == "write":
        old, new = "", f"{call.body}\n"
        args: Json = {"file_path": path, "content": new}
        output, short = f"Successfully created and wrote to new file: {path}.", f"Writing to {call.what}"
    else:
        change = parse_change(call.body)
        old, new = change.old, change.new
        args = {"file_path": path, "old_string": old, "new_string": new, "instruction": f"Change {name}"}
        output, short = f"Successfully modified file: {path} (1 replacements).", call.what
    display = {
        "fileDiff": StoryDiff(old, new).unified_diff(name),
        "fileName": name,
        "filePath": path,
        "originalContent": old,
        "newContent": new,
        "diffStat": _stat(old, new),
        "isNewFile": call.kind == "write",
        "isBuildFile": False,
    }
    tool, title = ("write_file", "WriteFile") if call.kind == "write" else ("replace", "Edit")
    return DemoCall(tool, args, f"{output} Here is the updated code:\n{new}", display, short, title)


def _stat(old: str, new: str) -> dict[str, int]:
    counts = {
        "added_lines": len(new.splitlines()),
        "removed_lines": len(old.splitlines()),
        "added_chars": len(new),
        "removed_chars": len(old),
    }
    return {f"model_{name}": count for name, count in counts.items()} | {f"user_{name}": 0 for name in counts}


def _look(call: StoryCall, root: str) -> DemoCall:
    found = call.body.splitlines()
    match call.kind:
        case "read":
            return DemoCall(
                "read_file", {"file_path": f"{root}/{call.what}"}, call.body, "", call.what, "ReadFile"
            )
        case "list":
            shown = {"summary": f"Found {len(found)} item(s).", "files": found}
            listing = f"Directory listing for {root}/{call.what}:\n{call.body}"
            args = {"dir_path": f"{root}/{call.what}"}
            return DemoCall("list_directory", args, listing, shown, call.what, "ReadFolder")
        case "find":
            listing = "\n".join(f"{root}/{name}" for name in found)
            output = (
                f'Found {len(found)} file(s) matching "{call.what}" within {root}, '
                f"sorted by modification time (newest first):\n{listing}"
            )
            shown_text = f"Found {len(found)} matching file(s)"
            return DemoCall("glob", {"pattern": call.what}, output, shown_text, f"'{call.what}'", "FindFiles")
        case _:
            return _grep(call, root)


def _grep(call: StoryCall, root: str) -> DemoCall:
    hits = [hit.groupdict() for row in call.body.splitlines() if (hit := _HIT.fullmatch(row))]
    matches = [
        {
            "filePath": hit["file"],
            "absolutePath": f"{root}/{hit['file']}",
            "lineNumber": int(hit["line"]),
            "line": hit["text"],
        }
        for hit in hits
    ]
    count = f"{len(hits)} match" + ("" if len(hits) == 1 else "es")
    listing = "\n".join(f"File: {hit['file']}\nL{hit['line']}: {hit['text']}\n---" for hit in hits)
    output = f'Found {count} for pattern "{call.what}" in the workspace directory:\n---\n{listing}'
    display = {"summary": f"Found {count}", "matches": matches}
    return DemoCall("grep_search", {"pattern": call.what}, output, display, f"'{call.what}'", "SearchText")


def _todo(call: StoryCall) -> DemoCall:
    todos = [{"description": text, "status": status} for text, status in call.todos()]
    rows = "\n".join(
        f"{place}. [{todo['status']}] {todo['description']}" for place, todo in enumerate(todos, start=1)
    )
    output = f"Successfully updated the todo list. The current list is now:\n{rows}"
    return DemoCall(
        "write_todos", {"todos": todos}, output, {"todos": todos}, f"Set {len(todos)} todo(s)", "WriteTodos"
    )


def _agent(played: PlayedCall) -> DemoCall:
    name, prompt = played.call.delegation()
    result = final_report(played)
    output = f"Subagent '{name}' finished.\nTermination Reason: GOAL\nResult:\n{result}"
    display = {
        "isSubagentProgress": True,
        "agentName": name,
        "recentActivity": [],
        "state": "completed",
        "result": result,
        "terminateReason": "GOAL",
    }
    args = {"agent_name": name, "prompt": prompt}
    return DemoCall("invoke_agent", args, output, display, f"Delegating to agent '{name}'", "Invoke Subagent")


def _mcp(call: StoryCall, form: Form) -> DemoCall:
    server, tool, args = call.on_server()
    output = f"<untrusted_context>\n{call.body}\n</untrusted_context>" if form == "lines" else call.body
    title = f"{tool} ({server} MCP Server)"
    return DemoCall(f"mcp_{server}_{tool}", args, output, call.body, json.dumps(args), title)


def _web(call: StoryCall) -> DemoCall:
    if call.kind == "fetch":
        args = {"prompt": f"Read {call.what} and tell what it says."}
        shown = "Content processed from prompt."
        return DemoCall(
            "web_fetch",
            args,
            call.body,
            shown,
            f'Processing URLs and instructions from prompt: "{args["prompt"]}"',
            "WebFetch",
        )
    output = f'Web search results for "{call.what}":\n\n{call.body}'
    shown = f'Search results for "{call.what}" returned.'
    return DemoCall(
        "google_web_search",
        {"query": call.what},
        output,
        shown,
        f'Searching the web for: "{call.what}"',
        "GoogleSearch",
    )


ENVIRONMENT_ID = "d04923d38bb0f6017037e74183378ef4"
ACCEPTED = "Got it. Thanks for the additional context!"


class Scene(msgspec.Struct, frozen=True):
    """The project, model, form and dice of the messages of one session."""

    root: str
    model: str
    form: Form
    dice: Dice

    def message(self, at: datetime, kind: str, content: object) -> Json:
        """Return a message with a new id."""
        return {"id": self.dice.uuid(), "timestamp": format_time(at), "type": kind, "content": content}

    def message_of(self, moment: Moment) -> Json:
        """Return the message of a prompt, a shell command or a notice."""
        match moment.event:
            case Ask(text):
                return self.message(moment.at, "user", [{"text": text}])
            case Shell(command, output):
                text = (
                    f"I ran the following shell command:\n```sh\n{command}\n```\n\n"
                    f"This produced the following result:\n```\n{output}\n```"
                )
                return self.message(moment.at, "user", [{"text": text}])
            case Notice(kind, text):
                return self.message(moment.at, kind, text)
        raise ValueError(moment.event)

    def answer(self, moment: Moment, answer: StoryAnswer, agent_ids: tuple[str, ...] = ()) -> Json:
        """Return the message of a response, with its calls."""
        at = moment.at if not answer.calls else answer.calls[0].at
        spent = answer.spent
        tokens = {
            "input": spent.input,
            "output": spent.output,
            "cached": spent.cached,
            "thoughts": spent.reasoning,
            "tool": 0,
            "total": spent.total,
        }
        thoughts = [
            {"subject": thought.subject, "description": thought.text, "timestamp": format_time(moment.at)}
            for thought in answer.thoughts
        ]
        message = self.message(at, "gemini", answer.text)
        return {
            **message,
            "thoughts": thoughts,
            "tokens": tokens,
            "model": self.model,
            **self._calls(answer, agent_ids),
        }

    def _calls(self, answer: StoryAnswer, agent_ids: tuple[str, ...]) -> Json:
        agents = iter(agent_ids)
        calls = []
        for place, played in enumerate(answer.calls):
            agent_id = next(agents, None) if played.inner else None
            call = tool_call(played, "", self.root, self.form, agent_id)
            calls.append(_with_id(call, self._call_id(call["name"], played.at, place)))
        return {"toolCalls": calls} if calls else {}

    def _call_id(self, name: str, at: datetime, place: int) -> str:
        milliseconds = int(at.timestamp() * 1000)
        if self.form == "hashed":
            return f"{name}-{milliseconds}-{self.dice.hex(13)}"
        known = f"{name}_{milliseconds}_{place}"
        return f"{name}__{known}" if self.form == "lines" else known

    def results(self, answer: Json, at: datetime) -> Json:
        """Return the message with the results of an answer's calls."""
        return self.message(at, "user", responses(answer))


def responses(answer: Json) -> list[Json]:
    """Return the results of all calls of an answer."""
    return [part for call in answer.get("toolCalls", ()) for part in call["result"]]


def _with_id(call: Json, call_id: str) -> Json:
    (part,) = call["result"]
    response = {"functionResponse": {**part["functionResponse"], "id": call_id}}
    return {**call, "id": call_id, "result": [response]}


def as_parts(message: Json) -> list[Json]:
    """Return the parts of a message as the model gets them."""
    content = message["content"]
    texts: list[Json] = content if isinstance(content, list) else [{"text": content}] if content else []
    thoughts = [
        {"text": f"**{thought['subject']}** {thought['description']}", "thought": True}
        for thought in message.get("thoughts", ())
    ]
    calls = [
        {"functionCall": {"id": call["id"], "name": call["name"], "args": call["args"]}}
        for call in message.get("toolCalls", ())
    ]
    return [*thoughts, *texts, *calls]


def environment(root: str, temporary: str, at: datetime) -> Json:
    """Return the message about the environment with which Gemini CLI begins a session."""
    text = (
        "<session_context>\nThis is the Gemini CLI. We are setting up the context for our chat.\n"
        f"Today's date is {at:%A, %B} {at.day}, {at.year} (formatted according to the user's locale).\n"
        f"My operating system is: linux\nThe project's temporary directory is: {temporary}\n"
        f"- **Workspace Directories:**\n  - {root}\n</session_context>"
    )
    return {"id": ENVIRONMENT_ID, "timestamp": format_time(at), "type": "user", "content": [{"text": text}]}


class Recorder(msgspec.Struct):
    """The lines so far, and the messages that would be sent to the model."""

    scene: Scene
    session_id: str
    temporary: str
    records: list[Json] = []
    active: list[Json] = []

    def begin(self, metadata: Json, at: datetime) -> None:
        """Add the first lines: the metadata and the environment."""
        self.records.append(metadata)
        self._replace([environment(self.scene.root, self.temporary, at)], at)

    def play(self, moment: Moment, agent_ids: tuple[str, ...] = ()) -> None:
        """Record a moment."""
        match moment.event:
            case Ask() | Shell() | Notice():
                self._put(self.scene.message_of(moment), moment.at)
            case StoryAnswer() as answer:
                self._answer(moment, answer, agent_ids)
            case Rewind():
                self._rewind()
            case Compact(summary):
                self._compact(summary, moment.at)
            case Save(tag):
                text = f"Conversation checkpoint saved with tag: {tag}."
                self._put(self.scene.message(moment.at, "info", text), moment.at)

    def resume(self, at: datetime) -> None:
        """Write the whole history again, as the model will get it."""
        history = [message for message in self.active if message["type"] in {"user", "gemini"}]
        if not any("<session_context>" in str(message["content"]) for message in history[:1]):
            history.insert(0, environment(self.scene.root, self.temporary, at))
        repeated: list[Json] = []
        for message in history:
            repeated.append(_resume_message(message))
            if message.get("toolCalls"):
                repeated.append(
                    {
                        "id": f"{message['id']}_response",
                        "timestamp": format_time(at),
                        "type": "user",
                        "content": responses(message),
                    }
                )
        self.records.append({"$set": {"sessionId": self.session_id}})
        self._replace(repeated, at)

    def _answer(self, moment: Moment, answer: StoryAnswer, agent_ids: tuple[str, ...]) -> None:
        whole = self.scene.answer(moment, answer, agent_ids)
        if not answer.calls:
            self._put(whole, moment.ended_at)
            return
        first = {key: value for key, value in whole.items() if key != "toolCalls"}
        self._put(first, answer.calls[0].at)
        self.records.append(whole)
        self.active[-1] = whole
        self._put(self.scene.results(whole, moment.ended_at), moment.ended_at)
        if any(call["status"] == "cancelled" for call in whole["toolCalls"]):
            self._put(self.scene.message(moment.ended_at, "info", "Request cancelled."), moment.ended_at)
            self._record_again(moment.ended_at)

    def _record_again(self, at: datetime) -> None:
        """Write the whole history under new ids, as the CLI does after a cancelled turn."""
        history = [message for message in self.active if message["type"] in {"user", "gemini"}]
        copies = [self.scene.message(at, message["type"], as_parts(message)) for message in history]
        first, second, *others = copies  # the environment and the first prompt become one message
        copies = [{**first, "content": [*first["content"], *second["content"]]}, *others]
        self.records.extend(copies)
        self._replace(copies, at)

    def _rewind(self) -> None:
        prompts = [place for place, message in enumerate(self.active) if _is_prompt(message)]
        self.records.append({"$rewindTo": self.active[prompts[-1]]["id"]})
        del self.active[prompts[-1] :]

    def _compact(self, summary: str, at: datetime) -> None:
        snapshot = (
            f"<state_snapshot>\n    <overall_goal>\n        {summary}\n    </overall_goal>\n</state_snapshot>"
        )
        history = [
            self.active[0],
            self.scene.message(at, "user", [{"text": snapshot}]),
            self.scene.message(at, "gemini", [{"text": ACCEPTED}]),
        ]
        self.records.append({"$set": {"sessionId": self.session_id}})
        self._replace(history, at)
        self._put(self.scene.message(at, "info", ""), at)

    def _put(self, message: Json, at: datetime) -> None:
        self.records.extend((message, {"$set": {"lastUpdated": format_time(at)}}))
        self.active.append(message)

    def _replace(self, messages: list[Json], at: datetime) -> None:
        self.records.append({"$set": {"messages": messages, "lastUpdated": format_time(at)}})
        self.active = list(messages)


def _is_prompt(message: Json) -> bool:
    return message["type"] == "user" and "text" in message["content"][0]


def _resume_message(message: Json) -> Json:
    """Return a message as a resume repeats it: in parts, and each call with the results of all calls."""
    if message["type"] == "user":
        return message
    calls = [{**call, "result": responses(message)} for call in message.get("toolCalls", ())]
    return {**message, "content": as_parts(message), **({"toolCalls": calls} if calls else {})}
