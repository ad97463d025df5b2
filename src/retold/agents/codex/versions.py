"""Copies of one file that do not agree: what only a shorter one says is told as well, once something else took its place."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from retold.agents.codex.state import State
from retold.model.session import Entry, Message, Part, ToolCall


def superseded(entries: Sequence[Entry | None], copies: Iterable[State]) -> Iterator[Entry]:
    """Yield the entries of copies that say something which is not among the others."""
    told = [entry for entry in entries if entry is not None]
    known = {word for entry in told for word in _words(entry)}
    requests = {entry.usage.request for entry in told if isinstance(entry, Message) and entry.usage}
    for copy in copies:
        for entry in copy.entries:
            words = set(_words(entry)) if entry is not None else set()
            if entry is not None and not words <= known:
                known |= words
                yield _without_usage(msgspec.structs.replace(entry, fate="superseded"), requests)


def _without_usage(entry: Entry, requests: set[str]) -> Entry:
    """Return an entry without the figures of a request that is counted: such requests are known by their number only."""
    if not isinstance(entry, Message) or entry.usage is None or entry.usage.request not in requests:
        return entry
    return msgspec.structs.replace(entry, usage=None)


def _words(entry: Entry) -> Iterator[str]:
    if not isinstance(entry, Message):
        if entry.text:
            yield entry.text
        return
    for part in entry.parts:
        yield from _part_words(part)


def _part_words(part: Part) -> Iterator[str]:
    if isinstance(part, ToolCall):
        yield f"{part.name} {part.arguments}"
        yield from (text for text in (part.result, part.error) if text)
    else:
        yield getattr(part, "text", None) or repr(part)
