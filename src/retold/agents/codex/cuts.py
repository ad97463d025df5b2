"""Where a history was summed up, or turned back.

Evidence: `docs/formats/codex.md`, section 9.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from retold.agents.codex.raw import Record, rest, text_or_none
from retold.agents.codex.state import Cut, State
from retold.agents.codex.tokens import settle
from retold.agents.codex.words import texts
from retold.model.session import Event

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
