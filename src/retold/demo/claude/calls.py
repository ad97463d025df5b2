"""Tool calls in Claude Code's words: name, input, what the model got back, and `toolUseResult`."""

from collections.abc import Iterator
from typing import Any

import msgspec

from retold.demo.acts import Acted, report
from retold.demo.diff import parse_change
from retold.demo.story import StoryCall
from retold.demo.wording import Json

REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, "
    "the new_string was NOT written to the file). "
)


class Told(msgspec.Struct, frozen=True):
    """A call in Claude Code's words, but for its id."""

    name: str
    input: Json
    content: Any
    shown: Any
    is_error: bool | None = None


def told_calls(acted: Acted, root: str, agent_id: str) -> Iterator[Told]:
    """Yield the call; things to do are a call each."""
    call = acted.call
    if call.kind == "todo":
        yield from _tasks(call)
        return
    told = _agent(acted, agent_id) if call.kind == "agent" else _plain(call, root)
    if call.fate == "stopped":
        said = f"{REFUSED}To tell you how to proceed, the user said:\n{call.body}"
        told = msgspec.structs.replace(told, content=said, shown=f"Error: {REFUSED}", is_error=True)
    elif call.fate == "failed" and call.kind != "run":
        words = f"<tool_use_error>{call.body}</tool_use_error>"
        told = msgspec.structs.replace(told, content=words, shown=f"Error: {call.body}", is_error=True)
    yield told


def _plain(call: StoryCall, root: str) -> Told:
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
            return Told(f"mcp__{server}__{tool}", args, content, content)
        case _:
            return _web(call)


def _run(call: StoryCall) -> Told:
    command = f"ls {call.what}" if call.kind == "list" else call.what
    args = {"command": command, "description": f"Run {command.split()[0]}"}
    if call.fate == "failed":
        words = f"Exit code 1\n{call.body}"
        return Told("Bash", args, words, f"Error: {words}", is_error=True)
    shown = {
        "stdout": call.body,
        "stderr": "",
        "interrupted": False,
        "isImage": False,
        "noOutputExpected": False,
    }
    return Told("Bash", args, call.body, shown, is_error=False)


def _change(call: StoryCall, path: str) -> Told:
    if call.kind == "write":
        args: Json = {"file_path": path, "content": f"{call.body}\n"}
        shown: Json = {"type": "create", "filePath": path, "content": args["content"], "structuredPatch": []}
        return Told("Write", args, f"File created successfully at: {path}", {**shown, "originalFile": None})
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
    return Told("Edit", args, f"The file {path} has been updated successfully.", shown)


def _look(call: StoryCall, root: str) -> Told:
    rows = call.body.splitlines()
    match call.kind:
        case "read":
            path = f"{root}/{call.what}"
            numbered = "\n".join(f"{number:6}\u2192{row}" for number, row in enumerate(rows, start=1))
            counts = {"numLines": len(rows), "startLine": 1, "totalLines": len(rows)}
            file = {"filePath": path, "content": call.body, **counts}
            return Told("Read", {"file_path": path}, numbered, {"type": "text", "file": file})
        case "find":
            names = [f"{root}/{row}" for row in rows]
            shown: Json = {"filenames": names, "durationMs": 31, "numFiles": len(names), "truncated": False}
            return Told("Glob", {"pattern": call.what}, "\n".join(names), shown)
        case _:
            args = {"pattern": call.what, "output_mode": "content", "-n": True}
            shown = {
                "mode": "content",
                "numFiles": 0,
                "filenames": [],
                "content": call.body,
                "numLines": len(rows),
            }
            return Told("Grep", args, call.body, shown)


def _web(call: StoryCall) -> Told:
    if call.kind == "fetch":
        args = {"url": call.what, "prompt": "What does this page say about the question?"}
        size = len(call.body.encode())
        counts = {"bytes": size * 40, "code": 200, "codeText": "OK", "durationMs": 2140}
        return Told("WebFetch", args, call.body, {**counts, "result": call.body, "url": call.what})
    content = f'Web search results for query: "{call.what}"\n\n{call.body}'
    shown = {"query": call.what, "results": [call.body], "durationSeconds": 3.2}
    return Told("WebSearch", {"query": call.what}, content, shown)


def _tasks(call: StoryCall) -> Iterator[Told]:
    for number, (text, _) in enumerate(call.todos(), start=1):
        args = {"subject": text, "description": text, "activeForm": text}
        shown = {"task": {"id": str(number), "subject": text}}
        yield Told("TaskCreate", args, f"Task #{number} created successfully: {text}", shown)


def _agent(acted: Acted, agent_id: str) -> Told:
    name, prompt = acted.call.delegated()
    said = {"type": "text", "text": report(acted)}
    hint = {
        "type": "text",
        "text": f"agentId: {agent_id} (use SendMessage with to: '{agent_id}' to continue this agent)",
    }
    shown = {
        "status": "completed",
        "prompt": prompt,
        "agentId": agent_id,
        "agentType": name,
        "content": [said],
        "totalDurationMs": int((acted.ended_at - acted.at).total_seconds() * 1000),
        "totalToolUseCount": len([moment for moment in acted.inner if getattr(moment.event, "calls", ())]),
    }
    short = " ".join(prompt.split()[:5])
    return Told("Agent", {"description": short, "prompt": prompt, "subagent_type": name}, [said, hint], shown)
