"""Responses whose tokens the CLI lost, in a session that has those of others.

Up to 0.31 a response of nothing but calls is recorded as more calls of the message before it, and its tokens wait for a
message that takes them; those of the next response then take their place. So a message with calls that were asked for
when others of it were done stands for several responses, and has the tokens of one (run: 0.20.2). A subagent's responses
up to 0.36 leave no trace at all, nor do those of nothing but calls up to 0.8: there may have been more.
"""

from collections.abc import Sequence
from itertools import zip_longest

from retold.model.session import Entry, Message, ToolCall
from retold.reading.diagnostics import milliseconds


def responses(timeline: Sequence[Entry]) -> tuple[int, int]:
    """Return how many responses of the model are recorded, and how many of them without their tokens.

    None are without where no tokens are recorded at all.
    """
    known: dict[str, tuple[int, bool]] = {}
    for entry, following in zip_longest(timeline, timeline[1:]):
        if type(entry) is Message and entry.model is not None and entry.id is not None:
            is_counted = entry.usage is not None and not entry.usage.estimated
            if is_counted or _is_complete(entry, following):
                before, was_counted = known.get(entry.id, (0, False))
                known[entry.id] = max(before, _held(entry)), was_counted or is_counted
    counted = sum(is_counted for _, is_counted in known.values())
    everything = sum(held for held, _ in known.values())
    return everything, everything - counted if counted else 0


def _is_complete(answer: Message, following: Entry | None) -> bool:
    """Tell whether an answer came to its end: one that was cancelled or failed has a notice behind it, if anything."""
    return bool(answer.parts) and type(following) is Message


def _held(answer: Message) -> int:
    """Return how many responses a message stands for: the calls of another were asked for when those before were done."""
    held, done_at = 1, None
    for call in answer.parts:
        if type(call) is ToolCall and call.at is not None and call.took_ms is not None:
            if done_at is not None and milliseconds(call.at - done_at) > call.took_ms:
                held += 1
            done_at = call.at if done_at is None else max(done_at, call.at)
    return held
