"""A session as Markdown: made to be read and pasted, and to be read back by `retold read`."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

import msgspec

from retold.export.block import Json, MarkdownBlock
from retold.export.inline import as_html, as_words
from retold.export.markdown_facts import facts
from retold.export.markdown_parts import put_entry
from retold.export.telling import ExportOptions, ExportSession
from retold.export.zone import minute
from retold.model.serialization import as_builtins
from retold.model.session import Entry, Event, Message, Session, Text, ToolCall
from retold.reading.markdown_codec import PAGE, mark

_LEFT_OUT = ("first_prompt", "last_prompt", "timeline", "sources", "coverage", "problems", "extra")
"""What the mark of a session leaves to the page, or what that does not tell: the files, and what else the agent wrote."""


class PagePlace(NamedTuple):
    """Where in the page something is told: below how many sessions, and whether it was taken back."""

    depth: int = 0
    is_rewound: bool = False

    def heading(self, text: str) -> str:
        """Return a heading that fits; in the details of another session a bold line."""
        return f"**{text}**" if self.depth else f"{'###' if self.is_rewound else '##'} {text}"


def pieces(tellings: Iterable[ExportSession], choice: ExportOptions) -> Iterator[bytes]:
    """Yield a page for each session, its subagents inside it."""
    for telling in tellings:
        yield from (text.encode(errors="replace") for text in _session(telling, choice, PagePlace()))


def _session(telling: ExportSession, choice: ExportOptions, place: PagePlace) -> Iterator[str]:
    session = telling.session
    yield mark({"retold": PAGE, "session": _summary(session)}) + "\n\n"
    if not place.depth:
        yield facts(session, choice)
    for is_rewound, entries in groupby(session.timeline, lambda entry: entry.fate == "rewound"):
        told = _entries(entries, telling, choice, PagePlace(place.depth, is_rewound))
        yield from _folded_back(told, place) if is_rewound else told
    yield mark({"end": session.key}) + "\n"


def _summary(session: Session) -> Json:
    tree = as_builtins(msgspec.structs.replace(session, timeline=(), sources=(), problems=(), extra={}))
    return {name: value for name, value in tree.items() if name not in _LEFT_OUT}


def _folded_back(told: Iterator[str], place: PagePlace) -> Iterator[str]:
    """Yield what was taken back behind a heading, if there is any of it to tell."""
    first = next(told, None)
    if first is not None:
        yield f"{place.heading('Rewound')}\n\n<details>\n<summary>said, and then taken back</summary>\n\n{first}"
        yield from told
        yield "</details>\n\n"


def _entries(
    entries: Iterable[Entry], telling: ExportSession, choice: ExportOptions, place: PagePlace
) -> Iterator[str]:
    speaker = None
    for entry in entries:
        block = MarkdownBlock()
        name = _speaker(entry, telling.session.agent)
        if name is not None and name != speaker:
            at = f" · {minute(entry.at)}" if entry.at else ""
            block.put(place.heading(f"{name}{at}"))
        before = len(block.pieces)
        put_entry(block, entry, choice)
        if len(block.pieces) == before:
            continue
        speaker = name or speaker
        yield block.page(_about(entry))
        if isinstance(entry, Message) and choice.tools != "none":
            yield from _subagents(entry, telling, choice, place)


def _speaker(entry: Entry, agent: str) -> str | None:
    """Return who speaks, and what became of it; nobody says an event."""
    if isinstance(entry, Event):
        return None
    is_copied = not entry.own and any(isinstance(part, Text) for part in entry.parts)
    user = "You" if entry.prompt is not None or is_copied else "Context"
    names = {"user": user, "assistant": as_words(entry.model or agent), "system": "System"}
    became = [
        word for word, is_so in ((entry.fate, entry.fate != "live"), ("copied", not entry.own)) if is_so
    ]
    return names[entry.role] + (f" ({', '.join(became)})" if became else "")


def _about(entry: Entry) -> Json:
    told: Json = {"id": entry.id, "at": entry.at and entry.at.isoformat()}
    if isinstance(entry, Event):
        told = {"event": entry.kind, **told}
    else:
        told = {"role": entry.role, **told, "model": entry.model, "response": entry.response}
    told |= {"fate": None if entry.fate == "live" else entry.fate, "own": None if entry.own else False}
    return {name: value for name, value in told.items() if value is not None}


def _subagents(
    message: Message, telling: ExportSession, choice: ExportOptions, place: PagePlace
) -> Iterator[str]:
    """Yield the conversations that the calls of a message started."""
    for part in message.parts:
        child = telling.subagents.get(part.child) if isinstance(part, ToolCall) and part.child else None
        if child is not None:
            title = as_html(child.session.title or child.session.key)
            yield f"<details>\n<summary>Subagent: <b>{title}</b></summary>\n\n"
            yield from _session(child, choice, PagePlace(place.depth + 1))
            yield "\n</details>\n\n"
