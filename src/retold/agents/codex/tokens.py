"""Which tokens a response took: the growth of a running total, or what a record says of it.

Evidence: `docs/formats/codex.md`, section 6.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

import msgspec

from retold.agents.codex.discovery import id_time
from retold.agents.codex.prompt_text import texts
from retold.agents.codex.raw import Record, rest, text_or_none
from retold.agents.codex.state import Cut, Figures, Meter, State
from retold.model.session import Event, Message
from retold.model.usage import Usage
from retold.reading.diagnostics import parse_time

_FIGURES = itemgetter(
    "input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens"
)
Last = Callable[[], Figures | None]
"""What the last response alone took, as told beside the total: seldom asked for."""
_NONE: Figures = (0, 0, 0, 0, 0, 0)


def count(state: State, total: Figures | None, last: Last, at: datetime | None) -> None:
    """Take a `token_count` down: a response, if the total grew since the last one."""
    meter = state.meter
    if total is None:
        return
    taken = _taken(meter, total, last)
    meter.totals, meter.is_unset = total, False
    # Where a response has a record of its own, the count repeats it.
    if meter.has_records or not (taken[0] or taken[3]):
        return
    if meter.open and meter.ahead is None:
        close(state, _usage(state, meter.response, taken))
        return
    told = meter.told
    settle(state, at)
    meter.ahead, meter.claimant, meter.told = _usage(state, meter.response, taken), told, None
    meter.ahead_place = state.place


def record(state: State, payload: Record, at: datetime | None) -> None:
    """Take a `token_usage_record` down (0.166): one response, by its id."""
    meter = state.meter
    spent = figures(payload.get("usage"))
    response = payload.get("response_id")
    meter.has_records = True
    name = response if type(response) is str else meter.response
    if spent is None or name in meter.closed:
        return
    meter.closed.add(name)
    settle(state, at)
    if not meter.open:
        _put_alone(state, _usage(state, name, spent), at, state.place)
    else:
        close(state, _usage(state, name, spent))


def close(state: State, usage: Usage) -> None:
    """End the response that is being recorded: its tokens stand on the last of its messages."""
    meter = state.meter
    if usage.request != meter.response:
        for index in meter.open:
            _replace(state, index, response=usage.request)
    _replace(state, meter.open[-1], usage=usage)
    _begin_next(state)


def settle(state: State, at: datetime | None) -> None:
    """Give tokens that came ahead to what followed; to a message of their own, if nothing did."""
    meter = state.meter
    if meter.ahead is None:
        return
    claimant = meter.claimant
    if claimant is not None and state.entries[claimant] is not None:
        _replace(state, claimant, usage=meter.ahead, response=meter.ahead.request)
        _begin_next(state, meter.open)
    elif meter.open:
        close(state, meter.ahead)
    else:
        _put_alone(state, meter.ahead, at, meter.ahead_place)


def _put_alone(state: State, usage: Usage, at: datetime | None, place: int) -> None:
    """Add a response without items, as that of a compaction, at the place of its count."""
    index = state.put(
        Message(None, "assistant", at, "live", None, state.model, usage, (), response=usage.request)
    )
    state.places[index] = place
    _begin_next(state)


def _begin_next(state: State, begun: Sequence[int] = ()) -> None:
    """Turn to the next response, of which some messages may be known already."""
    meter = state.meter
    meter.ahead, meter.told, meter.claimant = None, None, None
    _turn_to_next(meter, list(begun))
    for index in begun:
        _replace(state, index, response=meter.response)


def break_off(state: State) -> None:
    """Leave a response behind that nobody counted: the next one answers something else."""
    if state.meter.open:
        _turn_to_next(state.meter, [])


def name_thread(meter: Meter, thread: str | None) -> None:
    """Number responses by the id of the thread, as its file tells it."""
    if meter.is_of_thread and thread is not None:
        meter.rollout, meter.response = thread, f"{thread}/{meter.count + 1}"


def _turn_to_next(meter: Meter, begun: list[int]) -> None:
    meter.open = begun
    meter.count += 1
    meter.response = f"{meter.rollout}/{meter.count + 1}"


def _replace(state: State, index: int, **changes: Any) -> None:
    """Change a message, or what is known of one that waits for a result."""
    asked = state.waiting.get(index)
    if asked is not None:
        state.waiting[index] = msgspec.structs.replace(asked, **changes)
        return
    entry = state.entries[index]
    if type(entry) is Message:
        state.entries[index] = msgspec.structs.replace(entry, **changes)


def _taken(meter: Meter, total: Figures, last: Last) -> Figures:
    """Return what a response took: the growth of the total, unless that fell or is another thread's."""
    before = meter.totals
    if before is None:
        return (last() or total) if meter.starts_from_last else total
    if meter.is_unset and last() == total:
        return total
    grown = (
        total[0] - before[0], total[1] - before[1], total[2] - before[2],
        total[3] - before[3], total[4] - before[4], total[5] - before[5],
    )  # fmt: skip
    return grown if min(grown) >= 0 else last() or _NONE


def figures(usage: Any) -> Figures | None:
    """Return a usage as Codex counts; None, if this is none."""
    try:
        given, cached, output, reasoning, total = _FIGURES(usage)
        written = usage.get("cache_write_input_tokens", 0)
    except (KeyError, TypeError, IndexError, AttributeError):
        return _mended(usage)
    if type(given) is type(cached) is type(written) is type(output) is type(reasoning) is type(total) is int:
        return given, cached, written, output, reasoning, total
    return _mended(usage)


def _mended(usage: Any) -> Figures | None:
    """Return the figures of a usage that lacks some, or holds what is no number."""
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


_COMPACTED = frozenset(("message", "replacement_history"))


def compact(state: State, payload: Record, at: datetime | None) -> None:
    """Take a compaction down: the model goes on with what replaces the history."""
    settle(state, at)
    message = payload.get("message")
    text = message if type(message) is str else ""
    extra = rest(payload, _COMPACTED) or {}
    news = list(_news(state, payload.get("replacement_history"), text))
    if news:
        extra["replacement_history"] = news
    index = state.put(Event(None, "compaction", at, "live", text, extra=extra or None))
    state.cuts.append(Cut(index, 0, "compacted"))
    state.latest["compacted"] = payload


def _news(state: State, history: Any, message: str) -> Iterator[Any]:
    """Yield what of a replacement is nowhere else in the file: it repeats most of what was said."""
    if type(history) is not list:
        return
    said = state.all_texts()
    for item in history:
        if (
            type(item) is not dict
            or item.get("type") != "message"
            or not all([text == message or text in said for text in texts(item.get("content"))])
        ):
            yield item


def mention_compaction(state: State, payload: Record, at: datetime | None) -> None:
    """Fold the event away that says the same as the record of a compaction; alone it is all there is."""
    if state.latest.pop("compacted", None) is None:
        state.put(Event(text_or_none(payload.get("id")), "compaction", at, "live", "", extra=payload))


def roll_back(state: State, payload: Record, at: datetime | None) -> None:
    """Take down that the last turns were taken back."""
    number = payload.get("num_turns")
    index = state.put(Event(None, "info", at, "live", "", extra=payload))
    if type(number) is int and number > 0 and state.turns:
        start = state.turns[-number] if number <= len(state.turns) else state.turns[0]
        state.cuts.append(Cut(index, start, "rewound"))
        del state.turns[-number:]
