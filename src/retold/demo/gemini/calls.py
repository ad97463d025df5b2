"""Tool calls in Gemini CLI's words: name, arguments, what the model got back, and what the screen showed."""

import json
import re
from typing import Any

import msgspec

from retold.demo.acts import Acted, report
from retold.demo.diff import StoryDiff, parse_change
from retold.demo.story import Form, StoryCall
from retold.demo.wording import Json, stamp

CANCELLED = "[Operation Cancelled] Reason: User denied execution."
_HIT = re.compile(r"(?P<file>[^:]+):(?P<line>\d+): ?(?P<text>.*)")


class Told(msgspec.Struct, frozen=True):
    """A call in Gemini CLI's words, but for its id and its time."""

    name: str
    args: Json
    output: str
    display: Any
    description: str
    title: str
    is_markdown: bool = True


def tool_call(acted: Acted, call_id: str, root: str, form: Form, agent_id: str | None) -> Json:
    """Return a call as it is recorded, with its result."""
    told = _told(acted, root, form)
    fate = acted.call.fate
    status = {"done": "success", "stopped": "cancelled"}.get(fate, "error")
    if acted.call.kind == "run" and fate == "failed":
        status = "success"  # that the command failed is no failure of the tool
    answer = {"output": told.output}
    if status != "success":
        answer = {"error": CANCELLED if fate == "stopped" else acted.call.body}
    response = {"functionResponse": {"id": call_id, "name": told.name, "response": answer}}
    return {
        "id": call_id,
        "name": told.name,
        "args": told.args,
        "result": [response],
        "status": status,
        "timestamp": stamp(acted.ended_at),
        **({"agentId": agent_id} if agent_id else {}),
        "resultDisplay": told.display if status == "success" else answer["error"],
        "description": told.description,
        "displayName": told.title,
        "renderOutputAsMarkdown": told.is_markdown,
    }


def _told(acted: Acted, root: str, form: Form) -> Told:
    call = acted.call
    match call.kind:
        case "run":
            return _run(call, form)
        case "edit" | "write":
            return _change(call, root)
        case "read" | "list" | "grep" | "find":
            return _look(call, root)
        case "agent":
            return _agent(acted)
        case "todo":
            return _todo(call)
        case "mcp":
            return _mcp(call, form)
        case _:
            return _web(call)


def _run(call: StoryCall, form: Form) -> Told:
    group = 20_000 + len(call.what) * 37 % 9_000
    failed = "\nExit Code: 1" if call.fate == "failed" else ""
    output = f"Output: {call.body or '(empty)'}{failed}\nProcess Group PGID: {group}"
    if form == "lines":
        output = f"<untrusted_context>\n{output}\n</untrusted_context>"
    args = {"command": call.what, "description": f"Run {call.what.split()[0]}"}
    return Told("run_shell_command", args, output, call.body, call.what, "Shell", is_markdown=False)


def _change(call: StoryCall, root: str) -> Told:
    path, name = f"{root}/{call.what}", call.what.rpartition("/")[2]
    if call.kind == "write":
        old, new = "", f"{call.body}\n"
        args: Json = {"file_path": path, "content": new}
        said, short = f"Successfully created and wrote to new file: {path}.", f"Writing to {call.what}"
    else:
        change = parse_change(call.body)
        old, new = change.old, change.new
        args = {"file_path": path, "old_string": old, "new_string": new, "instruction": f"Change {name}"}
        said, short = f"Successfully modified file: {path} (1 replacements).", call.what
    display = {
        "fileDiff": StoryDiff(old, new).unified(name),
        "fileName": name,
        "filePath": path,
        "originalContent": old,
        "newContent": new,
        "diffStat": _stat(old, new),
        "isNewFile": call.kind == "write",
        "isBuildFile": False,
    }
    tool, title = ("write_file", "WriteFile") if call.kind == "write" else ("replace", "Edit")
    return Told(tool, args, f"{said} Here is the updated code:\n{new}", display, short, title)


def _stat(old: str, new: str) -> dict[str, int]:
    counts = {
        "added_lines": len(new.splitlines()),
        "removed_lines": len(old.splitlines()),
        "added_chars": len(new),
        "removed_chars": len(old),
    }
    return {f"model_{name}": count for name, count in counts.items()} | {f"user_{name}": 0 for name in counts}


def _look(call: StoryCall, root: str) -> Told:
    found = call.body.splitlines()
    match call.kind:
        case "read":
            return Told(
                "read_file", {"file_path": f"{root}/{call.what}"}, call.body, "", call.what, "ReadFile"
            )
        case "list":
            shown = {"summary": f"Found {len(found)} item(s).", "files": found}
            listing = f"Directory listing for {root}/{call.what}:\n{call.body}"
            args = {"dir_path": f"{root}/{call.what}"}
            return Told("list_directory", args, listing, shown, call.what, "ReadFolder")
        case "find":
            listing = "\n".join(f"{root}/{name}" for name in found)
            output = (
                f'Found {len(found)} file(s) matching "{call.what}" within {root}, '
                f"sorted by modification time (newest first):\n{listing}"
            )
            shown_text = f"Found {len(found)} matching file(s)"
            return Told("glob", {"pattern": call.what}, output, shown_text, f"'{call.what}'", "FindFiles")
        case _:
            return _grep(call, root)


def _grep(call: StoryCall, root: str) -> Told:
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
    told = "\n".join(f"File: {hit['file']}\nL{hit['line']}: {hit['text']}\n---" for hit in hits)
    output = f'Found {count} for pattern "{call.what}" in the workspace directory:\n---\n{told}'
    display = {"summary": f"Found {count}", "matches": matches}
    return Told("grep_search", {"pattern": call.what}, output, display, f"'{call.what}'", "SearchText")


def _todo(call: StoryCall) -> Told:
    todos = [{"description": text, "status": status} for text, status in call.todos()]
    rows = "\n".join(
        f"{place}. [{todo['status']}] {todo['description']}" for place, todo in enumerate(todos, start=1)
    )
    said = f"Successfully updated the todo list. The current list is now:\n{rows}"
    return Told(
        "write_todos", {"todos": todos}, said, {"todos": todos}, f"Set {len(todos)} todo(s)", "WriteTodos"
    )


def _agent(acted: Acted) -> Told:
    name, prompt = acted.call.delegated()
    result = report(acted)
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
    return Told("invoke_agent", args, output, display, f"Delegating to agent '{name}'", "Invoke Subagent")


def _mcp(call: StoryCall, form: Form) -> Told:
    server, tool, args = call.on_server()
    output = f"<untrusted_context>\n{call.body}\n</untrusted_context>" if form == "lines" else call.body
    title = f"{tool} ({server} MCP Server)"
    return Told(f"mcp_{server}_{tool}", args, output, call.body, json.dumps(args), title)


def _web(call: StoryCall) -> Told:
    if call.kind == "fetch":
        args = {"prompt": f"Read {call.what} and tell what it says."}
        shown = "Content processed from prompt."
        return Told(
            "web_fetch",
            args,
            call.body,
            shown,
            f'Processing URLs and instructions from prompt: "{args["prompt"]}"',
            "WebFetch",
        )
    output = f'Web search results for "{call.what}":\n\n{call.body}'
    shown = f'Search results for "{call.what}" returned.'
    return Told(
        "google_web_search",
        {"query": call.what},
        output,
        shown,
        f'Searching the web for: "{call.what}"',
        "GoogleSearch",
    )
