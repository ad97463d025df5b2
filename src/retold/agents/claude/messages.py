"""Normalises blocks of messages, and lines of the user with their prompts and results.

A person's words also occur in refusals of a call and in answers to the model's questions.
Evidence: `docs/formats/claude.md`, section 6.
"""

from collections import Counter
from typing import Any

import msgspec

from retold.agents.claude.prompt_text import (
    CONTINUATION_OPENING,
    SplitPrompt,
    context_kind,
    is_human,
    is_interruption,
    rejection_words,
    split_prompt,
)
from retold.agents.claude.raw import (
    Block,
    ImageBlock,
    Record,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserLine,
)
from retold.agents.claude.state import State
from retold.agents.claude.tool_calls import make_tool_call
from retold.agents.claude.tool_results import Result, answers, make_attachment, normalise_result
from retold.model.session import Context, ContextKind, Event, EventKind, Opaque, Part, Text, Thinking
from retold.reading.diagnostics import ReaderNotes


def normalise_answer_block(block: Block | Any, notes: ReaderNotes) -> Part:
    """Return the part of a block of the model."""
    if type(block) is ToolUseBlock:
        return make_tool_call(block)
    if type(block) is TextBlock:
        return Text(block.text)
    if type(block) is ThinkingBlock:
        return Thinking(None, block.thinking, None, block.signature)
    return normalise_other_block(block, notes)


def normalise_other_block(block: Block | Any, notes: ReaderNotes) -> Part:
    """Return the part of a block that is no text."""
    match block:
        case ImageBlock(source):
            return make_attachment(source)
        case {"type": "document", "source": dict(source)}:
            return make_attachment(source)
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
            return make_tool_call(ToolUseBlock(name, tool, given))
        case ToolUseBlock():
            return make_tool_call(block)
        case {"type": str(kind), "tool_use_id": str(name)} if kind.endswith("_tool_result"):
            return Context("tool_result", None, name)
        case _:
            notes.add_opaque("unknown-part", _block_type(block))
            return Opaque(_as_recorded(block))


def _block_type(block: Any) -> str:
    kind = block.get("type") if type(block) is dict else type(block).__name__
    return f"a block of type {kind}"


def _as_recorded(block: Any) -> Any:
    """Return a block at an unexpected place as it is in the file."""
    return {"type": "thinking", "thinking": block.thinking} if isinstance(block, ThinkingBlock) else block


def normalise_user_blocks(content: str | list[Any], notes: ReaderNotes) -> SplitPrompt:
    """Return the person's words in the blocks of a line, and all parts; results are left to their calls."""
    if type(content) is str:
        return split_prompt(content)
    words: list[str] = []
    parts: list[Part] = []
    for block in content:
        match block:
            case TextBlock(text) | {"type": "text", "text": str(text)} | str(text):
                spoken, found = split_prompt(text)
                parts += found
                words += [spoken] if spoken is not None else []
            case ToolResultBlock():
                continue
            case _:
                parts.append(normalise_other_block(block, notes))
    return "\n".join(words) if words else None, parts


def context_parts(content: str | list[Any], kind: ContextKind | None, notes: ReaderNotes) -> list[Part]:
    """Return the parts of a text that the agent wrote in a person's place."""
    parts: list[Part] = []
    for block in [content] if type(content) is str else content:
        match block:
            case TextBlock(text) | {"type": "text", "text": str(text)} | str(text):
                parts.append(Context(kind or context_kind(text), text))
            case ToolResultBlock():
                continue
            case _:
                parts.append(normalise_other_block(block, notes))
    return parts


class LineContent(msgspec.Struct, frozen=True):
    """The contents of a line: a message in parts, or an event with its text."""

    prompt: str | None = None
    parts: tuple[Part, ...] = ()
    results: tuple[tuple[str, Result], ...] = ()
    event: EventKind | None = None
    text: str = ""


def normalise_user_line(line: UserLine, extra: Record, state: State, notes: ReaderNotes) -> LineContent:
    """Return the contents of a user's line."""
    content = line.message.content
    if type(content) is list:
        blocks = [block for block in content if type(block) is ToolResultBlock]
        if len(blocks) == len(content) == 1:
            return _single_result(blocks[0], line.tool_use_result, state)
        if blocks:
            return _several_results(line, blocks, state, notes)
    text = _only_text(content)
    if is_interruption(text):
        return LineContent(event="info", text=text)
    if extra.get("isCompactSummary") is True or text.startswith(CONTINUATION_OPENING):
        return _compaction_summary(line, text, state, notes)
    if line.is_sidechain or state.agent_id is not None:
        return LineContent(None, tuple(context_parts(content, "task", notes)))
    if line.is_meta or line.tool_use_result is not None or not is_human(extra):
        return LineContent(None, tuple(context_parts(content, _context_kind(extra), notes)))
    prompt, parts = normalise_user_blocks(content, notes)
    return LineContent(prompt, tuple(parts))


def _only_text(content: str | list[Any]) -> str:
    if type(content) is str:
        return content
    return content[0].text if len(content) == 1 and type(content[0]) is TextBlock else ""


def _context_kind(extra: Record) -> ContextKind | None:
    """Return the kind of the agent's text by the other fields of its line."""
    if "sourceToolUseID" in extra:
        return "skill"
    return "notification" if "origin" in extra else None


def _compaction_summary(line: UserLine, text: str, state: State, notes: ReaderNotes) -> LineContent:
    """Return the summary after a compaction; it is the only mark of one in builds that write no boundary before it."""
    place = state.places.get(line.parent_uuid or "")
    boundary = None if place is None else state.nodes[place].entry
    is_marked = isinstance(boundary, Event) and boundary.kind == "compaction"
    if is_marked or not text:
        return LineContent(None, tuple(context_parts(line.message.content, "snapshot", notes)))
    return LineContent(event="compaction", text=text)


def _single_result(block: ToolResultBlock, twin: Any, state: State) -> LineContent:
    name, result = block.tool_use_id, normalise_result(block.content, block.is_error, twin)
    words = rejection_words(result.text) if result.text is not None else None
    if type(twin) is dict and "answers" in twin:
        words = "\n".join(filter(None, (words, answers(twin)))) or None
    return LineContent(words, (_result_part(name, result, state),), ((name, result),))


def _result_part(name: str, result: Result, state: State, before: int = 0) -> Part:
    """Return the part at the place of a result: its text, unless the call has it."""
    if name in state.calls and state.has_room(name, before):
        return Context("tool_result", None, name, result.is_error)
    return Context("tool_result", result.text, name, result.is_error, result.attachments)


def _several_results(
    line: UserLine, blocks: list[ToolResultBlock], state: State, notes: ReaderNotes
) -> LineContent:
    """Return the results on a line; its one twin belongs to its one result."""
    twin = line.tool_use_result if len(blocks) == 1 else None
    results = tuple(
        [(block.tool_use_id, normalise_result(block.content, block.is_error, twin)) for block in blocks]
    )
    counts = Counter[str]()
    parts: list[Part] = []
    for name, found in results:
        parts.append(_result_part(name, found, state, counts[name]))
        counts[name] += 1
    words = [rejection_words(found.text or "") for _, found in results]
    words.append(answers(twin))
    if len(line.message.content) > len(blocks):
        typed, beside = normalise_user_blocks(line.message.content, notes)
        parts, words = [*parts, *beside], [*words, typed]
    return LineContent("\n".join(filter(None, words)) or None, tuple(parts), results)
