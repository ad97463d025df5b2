"""Where turns begin, and from which one on a thread that began as a copy is its own.

Evidence: `docs/formats/codex.md`, section 9.
"""

from datetime import datetime, timedelta
from typing import Any

from retold.agents.codex.places import id_time
from retold.agents.codex.raw import Record
from retold.agents.codex.state import State
from retold.agents.codex.tokens import break_off, settle
from retold.model.session import Message
from retold.reading.diagnostics import parse_time

_CLOCKS = timedelta(seconds=1)
"""How far a turn's id may lie before the time that a thread gives for itself."""


def begin_turn(state: State, index: int) -> None:
    """Take down that somebody, or an agent, asked for something."""
    state.turns.append(index)
    state.thoughts.clear()
    break_off(state)


def meet_turn(state: State, turn_id: Any) -> None:
    """Look at a turn's id: the first that was made after the thread is the first of its own."""
    made_at = id_time(turn_id)
    if made_at is None:
        return
    state.has_turn_ids = True
    if state.is_copying:
        begun_at = _beginning(state.meta)
        if begun_at is None or made_at >= begun_at:
            state.is_copying = False
            settle(state, state.last_at)  # copied counts and items end with the copied lines
            break_off(state)
            state.own_from = _start_of_turn(state)


def _beginning(meta: Record) -> datetime | None:
    """Return when a thread was made: to the millisecond where its id tells, else with some room for clocks."""
    made_at = id_time(meta.get("id"))
    if made_at is not None:
        return made_at
    started_at = thread_start(meta)
    return None if started_at is None else started_at - _CLOCKS


def thread_start(meta: Record) -> datetime | None:
    """Return when a thread began, as it says itself: a fork's own time, not its parent's."""
    return parse_time(meta.get("timestamp"))[0]


def _start_of_turn(state: State) -> int:
    """Return the place of the words that began the turn, where they stand before its id."""
    start = state.turns[-1] if state.turns else len(state.entries)
    since = state.entries[start:]
    is_unanswered = all(type(entry) is not Message or entry.role != "assistant" for entry in since)
    return state.places[start] if since and is_unanswered and None not in since else state.place
