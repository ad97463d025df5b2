"""What a conversation came to, in a few lines: what was asked first and last, which files were changed, how it ended."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from retold.archive.queries.listing import answer_places
from retold.archive.store import Store
from retold.export.quoting import Quoting
from retold.export.transcript import plural
from retold.model.session import Entry, Message, Text
from retold.reports.dashboards import names_changed
from retold.search.pages import SessionSummary

LINE = 200
"""Characters of a prompt."""
_ENDING, _LINES = 400, 4
"""Characters and lines of the last answer."""
_FILES = 8
_LOOKED_AT = 20
"""Messages of the agent that are looked at for words of it: the last ones may have called tools and said nothing."""


def worked(record: Store, card: SessionSummary, quoting: Quoting) -> Iterator[str]:
    """Yield the lines."""
    yield _counts(card)
    first, last = map(one_line, quoting.prompts())
    if first:
        yield f"asked: {first}"
    if last and card.prompts > 1:
        yield f"asked last: {last}"
    if files := names_changed(record, card.key):
        left = len(files) - _FILES
        yield quoting.text(f"changed: {', '.join(files[:_FILES])}{f' and {left} more' if left > 0 else ''}")
    if ending := _ending(record, card, quoting):
        yield f"ended: {ending}"


def _counts(card: SessionSummary) -> str:
    told = [plural(card.prompts, "prompt"), card.status]
    if card.tool_errors:
        told.append(f"{plural(card.tool_errors, 'tool call')} failed")
    if card.subagents:
        told.append(plural(card.subagents, "subagent"))
    return " · ".join((card.agent, *told))


def _ending(record: Store, card: SessionSummary, quoting: Quoting) -> str | None:
    """Return how the last answer begins."""
    for seq in islice(answer_places(record, card.session), _LOOKED_AT):
        for _, entry in quoting.entries(seq, seq + 1):
            if words := _words(entry):
                return words
    return None


def _words(entry: Entry) -> str:
    parts = entry.parts if isinstance(entry, Message) else ()
    said = "\n".join(part.text for part in parts if isinstance(part, Text))[: 4 * _ENDING]
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return cut_text(" / ".join(lines[:_LINES]), _ENDING)


def one_line(text: str | None) -> str:
    """Return a prompt on one line."""
    return cut_text(" ".join((text or "")[: 4 * LINE].split()), LINE)


def cut_text(text: str, length: int) -> str:
    """Return a text that is no longer than it may be."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
