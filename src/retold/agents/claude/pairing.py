"""Calls and what they gave back: brought together in whichever order the lines stand."""

import msgspec

from retold.agents.claude.calls import completed
from retold.agents.claude.outputs import Outputs
from retold.agents.claude.results import Result
from retold.agents.claude.state import State
from retold.model.entries import Message
from retold.model.parts import Context, Part, ToolCall


def called(state: State, call_id: str, place: int, outputs: Outputs) -> None:
    """Remember where a call stands; its result may have been met before."""
    if call_id in state.calls:
        if state.calls[call_id] == place:
            _carry_over(state, call_id, place)
        return  # a copy elsewhere: the first has the result
    state.calls[call_id] = place
    if call_id in state.early:
        where, result = state.early.pop(call_id)
        given(state, call_id, result, where, outputs)
        _told_by_call(state, where, call_id)


def _carry_over(state: State, call_id: str, place: int) -> None:
    """Let a line that was written again in other words have the result that the one before it had."""
    before, now = state.nodes[-1].entry, state.nodes[place].entry
    if type(before) is Message and type(now) is Message:
        old = next((part for part in before.parts if type(part) is ToolCall and part.id == call_id), None)
        parts = tuple(
            [
                msgspec.structs.replace(old, name=part.name, arguments=part.arguments)
                if old is not None and type(part) is ToolCall and part.id == call_id
                else part
                for part in now.parts
            ]
        )
        state.put(place, msgspec.structs.replace(now, parts=parts))


def given(state: State, call_id: str, result: Result, where: int, outputs: Outputs) -> None:
    """Put a result into its call."""
    place = state.calls.get(call_id)
    message = state.nodes[where].entry
    state.results[call_id] = (*state.results.get(call_id, ()), where)
    if place is None:
        state.early[call_id] = (where, result)
        return
    caller = state.nodes[place].entry
    if type(caller) is not Message:
        return
    session = state.nodes[where].session or state.session_id
    # What the API ran itself stands beside its call: when it was done, nobody wrote down.
    asked_at = None if where == place else caller.at
    parts = tuple(
        [
            completed(part, result, asked_at, message.at, session, outputs)
            if type(part) is ToolCall and part.id == call_id
            else part
            for part in caller.parts
        ]
    )
    state.put(place, msgspec.structs.replace(caller, parts=parts))


def _told_by_call(state: State, where: int, call_id: str) -> None:
    """Leave out of a message what its call holds from now on."""
    message = state.nodes[where].entry
    if type(message) is Message:
        parts = tuple([_without_text(part, call_id) for part in message.parts])
        state.put(where, msgspec.structs.replace(message, parts=parts))


def _without_text(part: Part, call_id: str) -> Part:
    if isinstance(part, Context) and part.call == call_id:
        return Context(part.kind, None, part.call, part.is_error)
    return part
