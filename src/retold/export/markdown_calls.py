"""Tool calls in a Markdown page: a line with the argument that tells most, the rest folded."""

from typing import Any

import msgspec

from retold.export.block import Json, MarkdownBlock
from retold.export.inline import as_code, as_html
from retold.export.telling import ExportOptions
from retold.export.transcript import MARKS, key_argument_of, one_line
from retold.model.serialization import encoded
from retold.model.session import DiffDisplay, ToolCall


def put_call(block: MarkdownBlock, call: ToolCall, choice: ExportOptions) -> None:
    """Add a call, as much of it as was asked for."""
    about = _about_call(call)
    if choice.tools == "names":
        error = f": {as_code(one_line(call.error))}" if call.error else ""
        block.put(f"- {_mark(call)} {as_code(_line(call))}{_outcome(call)}{error}")
    else:
        key = one_line(key_argument_of(call.arguments))
        told = f" <code>{as_html(key)}</code>" if key else ""
        block.put(
            f"<details>\n<summary>{_mark(call)} <b>{as_html(call.name)}</b>{told}{_outcome(call)}</summary>"
        )
        about |= _arguments(block, call) | _results(block, call)
        block.put("</details>")
    block.parts.append({"call": about})


def _about_call(call: ToolCall) -> Json:
    told = {
        "id": call.id,
        "name": call.name,
        "canonical": call.canonical,
        "status": call.status,
        "native_status": call.native_status,
        "at": call.at and call.at.isoformat(),
        "child": call.child,
        "exit_code": call.exit_code,
        "server": call.server,
        "server_tool": call.server_tool,
    }
    return {name: value for name, value in told.items() if value is not None}


def _mark(call: ToolCall) -> str:
    return MARKS.get(call.status, "?")


def _line(call: ToolCall) -> str:
    return f"{call.name} {one_line(key_argument_of(call.arguments))}".rstrip()


def _outcome(call: ToolCall) -> str:
    """Return what went wrong, in a word: no meaning hangs on a mark alone."""
    bad = "" if call.status in ("success", "unknown") else f" · {call.status}"
    return bad + (f" · exit code {call.exit_code}" if call.exit_code else "")


def _arguments(block: MarkdownBlock, call: ToolCall) -> Json:
    """Add the arguments as JSON, but texts of several lines as they are."""
    long = {
        name: value
        for name, value in call.arguments.items()
        if isinstance(value, str) and "\n" in value.rstrip("\n")
    }
    short = {name: value for name, value in call.arguments.items() if name not in long}
    places: Json = {}
    if isinstance(call.display, DiffDisplay) and call.display.diff:
        places["diff"] = block.code(call.display.diff, "diff")
    if short:
        places["arguments"] = block.code(indented(short), "json")
    for name, text in long.items():
        block.put(f"{as_code(name)}:")
        places.setdefault("texts", {})[name] = block.code(text)
    return places


def _results(block: MarkdownBlock, call: ToolCall) -> Json:
    places: Json = {}
    if call.error is not None:
        block.put("**Error:**")
        places["error"] = block.code(call.error)
    if call.result is not None:
        block.put("**Result:**")
        places["result"] = block.code(call.result)
    if call.full_result is not None:
        block.put("**The whole output, of which the agent had only an extract:**")
        places["full_result"] = block.code(call.full_result)
    return places


def indented(value: Any) -> str:
    """Return a value as JSON to read, and in the order in which it was recorded."""
    compact = encoded(value)
    try:
        return msgspec.json.format(compact, indent=2).decode()
    except (msgspec.DecodeError, RecursionError):  # too deep for it
        return compact.decode()
