"""A line in the human's place: whose words it holds, and which results.

Human words also hide in refusals of a call and in answers to the model's questions.
Evidence: `docs/formats/claude.md`, section 6.
"""

from collections import Counter
from typing import Any

import msgspec

from retold.agents.claude.prompt_text import (
    CONTINUED,
    Said,
    is_human,
    is_interruption,
    machine_kind,
    rejection_words,
    said,
)
from retold.agents.claude.raw import (
    Block,
    ImageBlock,
    Record,
    SaidLine,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from retold.agents.claude.state import State
from retold.agents.claude.tool_calls import tool_call
from retold.agents.claude.tool_results import Result, answers, attachment, result
from retold.model.session import Context, ContextKind, Event, EventKind, Opaque, Part, Text, Thinking
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


class Spoken(msgspec.Struct, frozen=True):
    """What a line holds: a message in parts, or an event with its text."""

    prompt: str | None = None
    parts: tuple[Part, ...] = ()
    results: tuple[tuple[str, Result], ...] = ()
    event: EventKind | None = None
    text: str = ""


def spoken(line: SaidLine, extra: Record, state: State, notes: ReaderNotes) -> Spoken:
    """Return what a line in the human's place holds."""
    content = line.message.content
    if type(content) is list:
        blocks = [block for block in content if type(block) is ToolResultBlock]
        if len(blocks) == len(content) == 1:
            return _result(blocks[0], line.tool_use_result, state)
        if blocks:
            return _results(line, blocks, state, notes)
    text = _only_text(content)
    if is_interruption(text):
        return Spoken(event="info", text=text)
    if extra.get("isCompactSummary") is True or text.startswith(CONTINUED):
        return _summary(line, text, state, notes)
    if line.is_sidechain or state.agent_id is not None:
        return Spoken(None, tuple(machine_parts(content, "task", notes)))
    if line.is_meta or line.tool_use_result is not None or not is_human(extra):
        return Spoken(None, tuple(machine_parts(content, _machine_kind(extra), notes)))
    prompt, parts = said_parts(content, notes)
    return Spoken(prompt, tuple(parts))


def _only_text(content: str | list[Any]) -> str:
    """Return the text of a line that is nothing but one."""
    if type(content) is str:
        return content
    return content[0].text if len(content) == 1 and type(content[0]) is TextBlock else ""


def _machine_kind(extra: Record) -> ContextKind | None:
    """Return what a machine's text is, where its words do not tell."""
    if "sourceToolUseID" in extra:
        return "skill"
    return "notification" if "origin" in extra else None


def _summary(line: SaidLine, text: str, state: State, notes: ReaderNotes) -> Spoken:
    """Return what a compaction left; builds that write no boundary before it have no other mark of one."""
    place = state.places.get(line.parent_uuid or "")
    boundary = None if place is None else state.nodes[place].entry
    is_marked = isinstance(boundary, Event) and boundary.kind == "compaction"
    if is_marked or not text:
        return Spoken(None, tuple(machine_parts(line.message.content, "snapshot", notes)))
    return Spoken(event="compaction", text=text)


def _result(block: ToolResultBlock, twin: Any, state: State) -> Spoken:
    """Return the one result on a line, as nearly all have them."""
    name, found = block.tool_use_id, result(block.content, block.is_error, twin)
    words = rejection_words(found.text) if found.text is not None else None
    if type(twin) is dict and "answers" in twin:
        words = "\n".join(filter(None, (words, answers(twin)))) or None
    return Spoken(words, (_part(name, found, state),), ((name, found),))


def _part(name: str, found: Result, state: State, before: int = 0) -> Part:
    """Return what stands for a result: its text, unless the call has it."""
    if name in state.calls and state.has_room(name, before):
        return Context("tool_result", None, name, found.is_error)
    return Context("tool_result", found.text, name, found.is_error, found.attachments)


def _results(line: SaidLine, blocks: list[ToolResultBlock], state: State, notes: ReaderNotes) -> Spoken:
    """Return the results on a line; its one twin belongs to its one result."""
    twin = line.tool_use_result if len(blocks) == 1 else None
    results = tuple([(block.tool_use_id, result(block.content, block.is_error, twin)) for block in blocks])
    met = Counter[str]()
    parts: list[Part] = []
    for name, found in results:
        parts.append(_part(name, found, state, met[name]))
        met[name] += 1
    words = [rejection_words(found.text or "") for _, found in results]
    words.append(answers(twin))
    if len(line.message.content) > len(blocks):
        typed, beside = said_parts(line.message.content, notes)
        parts, words = [*parts, *beside], [*words, typed]
    return Spoken("\n".join(filter(None, words)) or None, tuple(parts), results)
