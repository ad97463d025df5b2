"""Calls and what they gave back: brought together in whichever order the lines stand."""

from collections.abc import Sequence

import msgspec

from retold.agents.claude.calls import completed
from retold.agents.claude.outputs import Outputs
from retold.agents.claude.results import Result
from retold.agents.claude.state import State
from retold.model.session import Context, Message, Part, ToolCall

_FEW = 16


def called(state: State, call_id: str, place: int, outputs: Outputs) -> None:
    """Remember where a call stands; its result may have been met before."""
    if call_id in state.calls:
        if state.calls[call_id] == place:
            _carry_over(state, call_id, place)
        return  # a copy elsewhere: the first has the result
    state.calls[call_id] = place
    if call_id in state.early:
        where, result = state.early.pop(call_id)
        given(state, call_id, result, where, outputs, is_early=True)
        _told_by_call(state, where, call_id)


def _carry_over(state: State, call_id: str, place: int) -> None:
    """Let a line that was written again in other words have the result that the one before it had."""
    last = len(state.nodes) - 1
    before, now = state.nodes[last].entry, state.nodes[place].entry
    if type(before) is not Message or type(now) is not Message:
        return
    known = (before.parts[index] for index in _parts_of(state, last, before, call_id))
    old = next((part for part in known if type(part) is ToolCall), None)
    parts = list(now.parts)
    for index in _parts_of(state, place, now, call_id):
        part = parts[index]
        if old is not None and type(part) is ToolCall:
            parts[index] = msgspec.structs.replace(old, name=part.name, arguments=part.arguments)
    state.put(place, msgspec.structs.replace(now, parts=tuple(parts)))


def given(  # noqa: PLR0913 - one argument a thing that is known of a result
    state: State, call_id: str, result: Result, where: int, outputs: Outputs, *, is_early: bool = False
) -> None:
    """Put a result into its call; a call that has many keeps no more, and the message of the result has its text."""
    place = state.calls.get(call_id)
    message = state.nodes[where].entry
    has_room = state.has_room(call_id)
    if has_room:
        state.results[call_id] = (*state.results.get(call_id, ()), where)
    if place is None:
        state.early[call_id] = (where, result)
        return
    if not (has_room or is_early):
        _keep_text(state, where, call_id, result)
        return
    caller = state.nodes[place].entry
    if type(caller) is not Message:
        return
    session = state.nodes[where].session or state.session_id
    # What the API ran itself stands beside its call: when it was done, nobody wrote down.
    asked_at = None if where == place else caller.at
    parts = list(caller.parts)
    for index in _parts_of(state, place, caller, call_id):
        part = parts[index]
        if type(part) is ToolCall:
            parts[index] = completed(part, result, asked_at, message.at, session, outputs)
    state.put(place, msgspec.structs.replace(caller, parts=tuple(parts)))


def _parts_of(state: State, place: int, message: Message, call_id: str) -> Sequence[int]:
    """Return where the parts of a message stand that are a call, or its result.

    In a message with many parts they are looked up: each of its calls asks.
    """
    if len(message.parts) <= _FEW:
        return [index for index, part in enumerate(message.parts) if _call_of(part) == call_id]
    parts, known = message.parts, state.indexes.get(place, {}).get(call_id, ())
    if not known or known[-1] >= len(parts) or _call_of(parts[known[-1]]) != call_id:
        found: dict[str, list[int]] = {}
        for index, part in enumerate(message.parts):
            found.setdefault(_call_of(part) or "", []).append(index)
        state.indexes[place] = found
    return state.indexes[place].get(call_id, ())


def _call_of(part: Part) -> str | None:
    if type(part) is ToolCall:
        return part.id
    return part.call if type(part) is Context else None


def _keep_text(state: State, where: int, call_id: str, result: Result) -> None:
    """Put the text of a result into its message, unless it is there."""
    message = state.nodes[where].entry
    if type(message) is not Message:
        return
    parts = list(message.parts)
    for index in _parts_of(state, where, message, call_id):
        part = parts[index]
        if type(part) is Context and part.text is None:
            parts[index] = Context(part.kind, result.text, part.call, part.is_error, result.attachments)
            state.put(where, msgspec.structs.replace(message, parts=tuple(parts)))
            return


def _told_by_call(state: State, where: int, call_id: str) -> None:
    """Leave out of a message what its call holds from now on."""
    message = state.nodes[where].entry
    if type(message) is Message:
        parts = list(message.parts)
        for index in _parts_of(state, where, message, call_id):
            part = parts[index]
            if type(part) is Context:
                parts[index] = Context(part.kind, None, part.call, part.is_error)
        state.put(where, msgspec.structs.replace(message, parts=tuple(parts)))
