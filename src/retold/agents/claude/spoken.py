"""A line in the human's place: whose words it holds, and which results.

Human words also hide in refusals of a call and in answers to the model's questions.
Evidence: `docs/formats/claude.md`, section 6.
"""

from collections import Counter
from typing import Any

import msgspec

from retold.agents.claude.displays import answers
from retold.agents.claude.parts import machine_parts, said_parts
from retold.agents.claude.raw import Record, SaidLine, TextBlock, ToolResultBlock
from retold.agents.claude.results import Result, result
from retold.agents.claude.state import State
from retold.agents.claude.words import CONTINUED, is_human, is_interruption, rejection_words
from retold.model.session import Context, ContextKind, Event, EventKind, Part
from retold.reading.diagnostics import ReaderNotes


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
