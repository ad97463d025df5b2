"""Assigns tokens to responses: the growth of a running total, or a record of a response. Folds turns, forks and compactions.

Evidence: `docs/formats/codex.md`, section 6.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from retold.agents.codex.discovery import time_of_id
from retold.agents.codex.prompt_text import content_texts
from retold.agents.codex.raw import Record, unknown_fields
from retold.agents.codex.state import Figures, State, TimelineCut, TokenMeter
from retold.model.session import Event, Message, Usage
from retold.reading.diagnostics import parse_time
from retold.reading.json_decode import text_or_none

_FIGURES = itemgetter(
    "input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens"
)
LastUsage = Callable[[], Figures | None]
"""Returns the tokens of the last response, recorded beside the total; seldom called."""
_NO_FIGURES: Figures = (0, 0, 0, 0, 0, 0)


def fold_count(state: State, total: Figures | None, last: LastUsage, at: datetime | None) -> None:
    """Fold a `token_count`: the total grew by the tokens of a response since the last one."""
    meter = state.meter
    if total is None:
        return
    taken = _growth(meter, total, last)
    meter.totals, meter.is_reset = total, False
    # The count repeats a response that has a record of its own.
    if meter.has_records or not (taken[0] or taken[3]):
        return
    if meter.open and meter.ahead is None:
        close_response(state, _usage(state, meter.response, taken))
        return
    event_answer = meter.event_answer
    assign_early_tokens(state, at)
    meter.ahead, meter.claimant, meter.event_answer = _usage(state, meter.response, taken), event_answer, None
    meter.ahead_place = state.place


def fold_usage_record(state: State, payload: Record, at: datetime | None) -> None:
    """Fold a `token_usage_record` (0.166): one response, by its id."""
    meter = state.meter
    spent = to_figures(payload.get("usage"))
    response = payload.get("response_id")
    meter.has_records = True
    name = response if type(response) is str else meter.response
    if spent is None or name in meter.closed:
        return
    meter.closed.add(name)
    assign_early_tokens(state, at)
    if not meter.open:
        _put_alone(state, _usage(state, name, spent), at, state.place)
    else:
        close_response(state, _usage(state, name, spent))


def close_response(state: State, usage: Usage) -> None:
    """Close the current response: the last of its messages gets the tokens."""
    meter = state.meter
    if usage.request != meter.response:
        for index in meter.open:
            _replace(state, index, response=usage.request)
    _replace(state, meter.open[-1], usage=usage)
    _begin_next(state)


def assign_early_tokens(state: State, at: datetime | None) -> None:
    """Give early tokens to the messages that followed; to a message of their own if there are none."""
    meter = state.meter
    if meter.ahead is None:
        return
    claimant = meter.claimant
    if claimant is not None and state.entries[claimant] is not None:
        _replace(state, claimant, usage=meter.ahead, response=meter.ahead.request)
        _begin_next(state, meter.open)
    elif meter.open:
        close_response(state, meter.ahead)
    else:
        _put_alone(state, meter.ahead, at, meter.ahead_place)


def _put_alone(state: State, usage: Usage, at: datetime | None, place: int) -> None:
    """Add a response without items, such as that of a compaction, at the place of its count."""
    index = state.put(
        Message(None, "assistant", at, "live", None, state.model, usage, (), response=usage.request)
    )
    state.places[index] = place
    _begin_next(state)


def _begin_next(state: State, begun: Sequence[int] = ()) -> None:
    """Begin the next response, of which some messages may be known already."""
    meter = state.meter
    meter.ahead, meter.event_answer, meter.claimant = None, None, None
    _turn_to_next(meter, list(begun))
    for index in begun:
        _replace(state, index, response=meter.response)


def abandon_response(state: State) -> None:
    """Abandon a response without a count: the next one answers something else."""
    if state.meter.open:
        _turn_to_next(state.meter, [])


def name_thread(meter: TokenMeter, thread: str | None) -> None:
    """Number responses by the thread's id in the file."""
    if meter.is_of_thread and thread is not None:
        meter.rollout, meter.response = thread, f"{thread}/{meter.count + 1}"


def _turn_to_next(meter: TokenMeter, begun: list[int]) -> None:
    meter.open = begun
    meter.count += 1
    meter.response = f"{meter.rollout}/{meter.count + 1}"


def _replace(state: State, index: int, **changes: Any) -> None:
    """Change a message, or a pending call."""
    pending = state.pending_calls.get(index)
    if pending is not None:
        state.pending_calls[index] = replace(pending, **changes)
        return
    entry = state.entries[index]
    if type(entry) is Message:
        state.entries[index] = replace(entry, **changes)


def _growth(meter: TokenMeter, total: Figures, last: LastUsage) -> Figures:
    """Return the tokens of a response: the growth of the total, unless it fell or is another thread's."""
    before = meter.totals
    if before is None:
        return (last() or total) if meter.starts_from_last else total
    if meter.is_reset and last() == total:
        return total
    grown = (
        total[0] - before[0], total[1] - before[1], total[2] - before[2],
        total[3] - before[3], total[4] - before[4], total[5] - before[5],
    )  # fmt: skip
    return grown if min(grown) >= 0 else last() or _NO_FIGURES


def to_figures(usage: Any) -> Figures | None:
    """Return a usage as figures; None for another value."""
    try:
        given, cached, output, reasoning, total = _FIGURES(usage)
        written = usage.get("cache_write_input_tokens", 0)
    except (KeyError, TypeError, IndexError, AttributeError):
        return _incomplete_figures(usage)
    if type(given) is type(cached) is type(written) is type(output) is type(reasoning) is type(total) is int:
        return given, cached, written, output, reasoning, total
    return _incomplete_figures(usage)


def _incomplete_figures(usage: Any) -> Figures | None:
    """Return the figures of a usage with missing or invalid numbers."""
    if type(usage) is not dict:
        return None
    names = (
        "input_tokens",
        "cached_input_tokens",
        "cache_write_input_tokens",
        "output_tokens",
        "reasoning_output_tokens",
    )
    given, cached, written, output, reasoning = (_number(usage.get(name)) for name in names)
    return given, cached, written, output, reasoning, _number(usage.get("total_tokens")) or given + output


def _number(value: Any) -> int:
    return value if type(value) is int else 0


def _usage(state: State, request: str, spent: Figures) -> Usage:
    given, cached, written, output, reasoning, total = spent
    if total != given + output:
        state.notes.add("token-total-mismatch", f"{total} recorded, {given + output} counted")
    return Usage(request, given, cached, written, max(output - reasoning, 0), reasoning, 0, total)


_CLOCKS = timedelta(seconds=1)
"""How far a turn's id may precede the recorded time of its thread."""


def begin_turn(state: State, index: int) -> None:
    """Begin the turn of a person's or an agent's request."""
    state.turns.append(index)
    state.thoughts.clear()
    abandon_response(state)


def note_turn_id(state: State, turn_id: Any) -> None:
    """Note a turn's id: the first id made after the thread is that of its first own turn."""
    made_at = time_of_id(turn_id)
    if made_at is None:
        return
    state.has_turn_ids = True
    if state.is_copying:
        begun_at = _thread_time(state.meta)
        if begun_at is None or made_at >= begun_at:
            state.is_copying = False
            assign_early_tokens(state, state.last_at)  # copied counts and items end with the copied lines
            abandon_response(state)
            state.own_start = _start_of_turn(state)


def _thread_time(meta: Record) -> datetime | None:
    """Return when a thread was made: the time in its id, else its recorded time with a tolerance for clocks."""
    made_at = time_of_id(meta.get("id"))
    if made_at is not None:
        return made_at
    started_at = thread_start(meta)
    return None if started_at is None else started_at - _CLOCKS


def thread_start(meta: Record) -> datetime | None:
    """Return the recorded start of a thread: a fork's own time, not its parent's."""
    return parse_time(meta.get("timestamp"))[0]


def _start_of_turn(state: State) -> int:
    """Return the place of the words that began the turn, if they stand before its id."""
    start = state.turns[-1] if state.turns else len(state.entries)
    since = state.entries[start:]
    is_unanswered = all(type(entry) is not Message or entry.role != "assistant" for entry in since)
    return state.places[start] if since and is_unanswered and None not in since else state.place


_COMPACTION_KEYS = frozenset(("message", "replacement_history"))


def fold_compaction(state: State, payload: Record, at: datetime | None) -> None:
    """Fold a compaction, after which the model goes on with a replacement of the history."""
    assign_early_tokens(state, at)
    message = payload.get("message")
    text = message if type(message) is str else ""
    extra = unknown_fields(payload, _COMPACTION_KEYS) or {}
    news = list(_new_items(state, payload.get("replacement_history"), text))
    if news:
        extra["replacement_history"] = news
    index = state.put(Event(None, "compaction", at, "live", text, extra=extra or None))
    state.cuts.append(TimelineCut(index, 0, "compacted"))
    state.latest["compacted"] = payload


def _new_items(state: State, history: Any, message: str) -> Iterator[Any]:
    """Yield the items of a replacement that are nowhere else in the file: most repeat what was said."""
    if type(history) is not list:
        return
    said = state.all_texts()
    for item in history:
        if (
            type(item) is not dict
            or item.get("type") != "message"
            or not all([text == message or text in said for text in content_texts(item.get("content"))])
        ):
            yield item


def fold_compaction_event(state: State, payload: Record, at: datetime | None) -> None:
    """Drop an event that repeats the record of a compaction; without a record, keep it."""
    if state.latest.pop("compacted", None) is None:
        state.put(Event(text_or_none(payload.get("id")), "compaction", at, "live", "", extra=payload))


def fold_rollback(state: State, payload: Record, at: datetime | None) -> None:
    """Fold the removal of the last turns."""
    number = payload.get("num_turns")
    index = state.put(Event(None, "info", at, "live", "", extra=payload))
    if type(number) is int and number > 0 and state.turns:
        start = state.turns[-number] if number <= len(state.turns) else state.turns[0]
        state.cuts.append(TimelineCut(index, start, "rewound"))
        del state.turns[-number:]
