"""Blocks of content to parts of a message."""

from typing import Any

from retold.agents.claude.calls import tool_call
from retold.agents.claude.raw import (
    Block,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from retold.agents.claude.results import attachment
from retold.agents.claude.words import Said, machine_kind, said
from retold.model.session import Context, ContextKind, Opaque, Part, Text, Thinking
from retold.reading.diagnostics import ReaderNotes


def answer_part(block: Block | Any, notes: ReaderNotes) -> Part:
    """Return what a block of the model's says."""
    if type(block) is ToolUseBlock:
        return tool_call(block)
    if type(block) is TextBlock:
        return Text(block.text)
    if type(block) is ThinkingBlock:
        return Thinking(None, block.thinking, None, block.signature)
    return other_part(block, notes)


def other_part(block: Block | Any, notes: ReaderNotes) -> Part:
    """Return what stands for something else than words."""
    match block:
        case ImageBlock(source):
            return attachment(source)
        case {"type": "document", "source": dict(source)}:
            return attachment(source)
        case {"type": "redacted_thinking", "data": str(data)}:
            return Thinking(None, "", None, data)
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {
            "type": "server_tool_use" | "mcp_tool_use",
            "id": str(name),
            "name": str(tool),
            "input": dict(given),
        }:
            return tool_call(ToolUseBlock(name, tool, given))
        case ToolUseBlock():
            return tool_call(block)
        case {"type": str(kind), "tool_use_id": str(name)} if kind.endswith("_tool_result"):
            return Context("tool_result", None, name)
        case _:
            notes.kept("unknown-part", _kind_of(block))
            return Opaque(_plain(block))


def _kind_of(block: Any) -> str:
    kind = block.get("type") if type(block) is dict else type(block).__name__
    return f"a block of type {kind}"


def _plain(block: Any) -> Any:
    """Return a block where nobody expects it as it stood in the file."""
    return {"type": "thinking", "thinking": block.thinking} if isinstance(block, ThinkingBlock) else block


def said_parts(content: str | list[Any], notes: ReaderNotes) -> Said:
    """Return a person's words among the blocks of a line, and all there is; results are told by their calls."""
    if type(content) is str:
        return said(content)
    words: list[str] = []
    parts: list[Part] = []
    for block in content:
        match block:
            case TextBlock(text) | {"type": "text", "text": str(text)} | str(text):
                spoken, found = said(text)
                parts += found
                words += [spoken] if spoken is not None else []
            case ToolResultBlock():
                continue
            case _:
                parts.append(other_part(block, notes))
    return "\n".join(words) if words else None, parts


def machine_parts(content: str | list[Any], kind: ContextKind | None, notes: ReaderNotes) -> list[Part]:
    """Return what the agent wrote in a person's place."""
    parts: list[Part] = []
    for block in [content] if type(content) is str else content:
        match block:
            case TextBlock(text) | {"type": "text", "text": str(text)} | str(text):
                parts.append(Context(kind or machine_kind(text), text))
            case ToolResultBlock():
                continue
            case _:
                parts.append(other_part(block, notes))
    return parts
