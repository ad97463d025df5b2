"""Tool calls in Codex's words: the item that asks, the event that tells its end, and the item with the output."""

import json
from collections.abc import Iterator

import msgspec

from retold.demo.acts import Acted, report
from retold.demo.dice import Dice
from retold.demo.diff import parse_change
from retold.demo.story import StoryCall
from retold.demo.wording import Json

AGENTS = "multi_agent_v1"


class Told(msgspec.Struct, frozen=True):
    """A call in Codex's words; a search that ran at the API has no output of its own."""

    asked: Json
    ended: Json | None = None
    answered: Json | None = None


def told_calls(acted: Acted, root: str, thread_id: str, dice: Dice) -> Iterator[Told]:
    """Yield the call; a subagent is started, and then waited for."""
    call, call_id = acted.call, f"call_{dice.name(24)}"
    match call.kind:
        case "edit" | "write":
            yield _patched(call, call_id, root)
        case "web" | "fetch":
            yield _searched(call, f"ws_{dice.hex(40)}")
        case "mcp":
            yield _served(call, call_id)
        case "agent":
            yield from _delegated(acted, thread_id, (call_id, f"call_{dice.name(24)}"))
        case "todo":
            plan = [{"step": text, "status": status} for text, status in call.todos()]
            yield _function("update_plan", {"plan": plan}, call_id, "Plan updated")
        case _:
            yield _executed(call, call_id, root, dice)


def _function(name: str, args: Json, call_id: str, output: str, namespace: str | None = None) -> Told:
    place = {"namespace": namespace} if namespace else {}
    asked = {"type": "function_call", "id": f"fc_{call_id[5:]}", "name": name, **place}
    return Told(
        {**asked, "arguments": json.dumps(args, ensure_ascii=False), "call_id": call_id},
        None,
        {"type": "function_call_output", "id": f"fco_{call_id[5:]}", "call_id": call_id, "output": output},
    )


def _executed(call: StoryCall, call_id: str, root: str, dice: Dice) -> Told:
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
    told = f"Chunk ID: {dice.hex(6)}\nWall time: {seconds} seconds\nProcess exited with code {code}\n"
    counted = f"Original token count: {len(call.body) // 4 + 1}\nOutput:\n{call.body}\n"
    return _function("exec_command", args, call_id, told + counted)


def _patched(call: StoryCall, call_id: str, root: str) -> Told:
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
    told = f"Success. Updated the following files:\n{letter} {call.what}\n"
    asked = {
        "type": "custom_tool_call",
        "id": f"ctc_{call_id[5:]}",
        "call_id": call_id,
        "name": "apply_patch",
    }
    ended = {"type": "patch_apply_end", "call_id": call_id, "stdout": told, "stderr": "", "success": True}
    output = f"Exit code: 0\nWall time: 0 seconds\nOutput:\n{told}"
    return Told(
        {**asked, "input": patch},
        {**ended, "changes": {path: change}, "status": "completed"},
        {
            "type": "custom_tool_call_output",
            "id": f"ctco_{call_id[5:]}",
            "call_id": call_id,
            "output": output,
        },
    )


def _searched(call: StoryCall, call_id: str) -> Told:
    action: Json = {"type": "search", "query": call.what, "queries": [call.what]}
    if call.kind == "fetch":
        action = {"type": "open_page", "url": call.what}
    asked = {"type": "web_search_call", "id": call_id, "status": "completed", "action": action}
    return Told(asked, {"type": "web_search_end", "call_id": call_id, "query": call.what, "action": action})


def _served(call: StoryCall, call_id: str) -> Told:
    server, tool, args = call.on_server()
    told = _function(tool, args, call_id, call.body, f"mcp__{server}")
    result: Json = {"Ok": {"content": [{"type": "text", "text": call.body}], "isError": False}}
    if call.fate == "failed":
        result = {"Err": call.body}
    ended = {"type": "mcp_tool_call_end", "call_id": call_id, "duration": {"secs": 0, "nanos": 41_000_000}}
    invocation = {"server": server, "tool": tool, "arguments": args}
    return msgspec.structs.replace(told, ended={**ended, "invocation": invocation, "result": result})


def _delegated(acted: Acted, thread_id: str, call_ids: tuple[str, str]) -> Iterator[Told]:
    nickname, prompt = acted.call.delegated()
    started = json.dumps({"agent_id": thread_id, "nickname": nickname})
    yield _function("spawn_agent", {"message": prompt}, call_ids[0], started, AGENTS)
    status = {"status": {thread_id: {"completed": report(acted)}}, "timed_out": False}
    ended = json.dumps(status, ensure_ascii=False)
    yield _function("wait_agent", {"targets": [thread_id]}, call_ids[1], ended, AGENTS)
