"""A session as the rows that are kept of it: a value that a worker makes and the one writer writes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from hashlib import blake2b
from operator import attrgetter
from typing import Any

import msgspec

from retold.archive.store import as_text
from retold.model.report import FIGURES
from retold.model.serialization import encoded, summary_json, time_text
from retold.model.session import Entry, Message, Session, ToolCall, is_spoken, touched
from retold.model.usage import MOST, Request, Totals, Usage, micros, stored_figure, totals

Row = tuple[object, ...]
TELLING = 16
"""Ids shorter than this are too common to tell that two entries are one."""
CHANGING = ("file_edit", "file_write")
_DIGITS = 8
_FIGURES = attrgetter(*FIGURES)


class SessionRows(msgspec.Struct):
    """What is kept of one session, but for the ids that only the archive knows."""

    name: int
    stamp: bytes
    cluster: str | None
    session: Session
    """Without its timeline."""
    summary: str
    sources: tuple[str, ...]
    """The paths of its files."""
    messages: list[Row]
    calls: list[Row]
    files: list[tuple[str, int]]
    """Those that calls were at work on, and how many calls were to change them."""
    requests: list[tuple[Any, ...]]
    has_copied_requests: bool
    is_spoken: bool
    """Whether it is a conversation, as its timeline says."""
    named_cluster: str | None = None
    """The cluster of files that bear the names which the agent gives to those of this conversation."""


def stable_uid(*words: str | None) -> int:
    """Return a number by which something is known that has a long name."""
    told = "\0".join(word or "" for word in words).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(told, digest_size=_DIGITS).digest(), "big", signed=True)


def rows_of(  # noqa: PLR0913 - all that is kept of a session
    session: Session,
    name: int,
    stamp: bytes,
    cluster: str | None,
    sources: Sequence[str],
    named_cluster: str | None = None,
) -> SessionRows:
    """Return the rows of a session in its full view."""
    bare = msgspec.structs.replace(session, timeline=())
    requests = list(held_requests(session))
    return SessionRows(
        name,
        stamp,
        cluster,
        bare,
        summary_json(bare).decode(),
        tuple(sources),
        [_message(seq, entry) for seq, entry in enumerate(session.timeline)],
        list(_calls(session)),
        sorted(_files(session).items()),
        [_request(seq, request) for seq, request in requests],
        any(request.copied for _, request in requests),
        is_spoken(session),
        named_cluster,
    )


def _message(seq: int, entry: Entry) -> Row:
    is_event = not isinstance(entry, Message)
    return (
        seq,
        _text(entry.id),
        stable_uid("entry", entry.id) if not is_event and len(entry.id or "") >= TELLING else None,
        entry.kind if not isinstance(entry, Message) else entry.role,
        is_event,
        isinstance(entry, Message) and entry.prompt is not None,
        micros(entry.at),
        entry.fate,
        None if not isinstance(entry, Message) else _text(entry.model),
        not entry.own,
    )


def _calls(session: Session) -> Iterator[Row]:
    for seq, place, call in calls_of(session):
        yield (
            seq, place, _text(call.name), call.canonical, _text(call.server), call.status, micros(call.at), call.took_ms,
        )  # fmt: skip


def _files(session: Session) -> Counter[str]:
    """Return the files that calls were at work on, and how many of these calls were to change them."""
    found: Counter[str] = Counter()
    for _, _, call in calls_of(session):
        changes = call.canonical in CHANGING
        found.update(dict.fromkeys(touched(call), changes))
    return found


def calls_of(session: Session) -> Iterator[tuple[int, int, ToolCall]]:
    """Yield every call with its place: of its message in the timeline, and among the message's parts."""
    for seq, entry in enumerate(session.timeline):
        if isinstance(entry, Message):
            for place, part in enumerate(entry.parts):
                if isinstance(part, ToolCall):
                    yield seq, place, part


def _request(seq: int, request: Request) -> tuple[Any, ...]:
    told = (seq, request.model, request.at, *request.figures, request.estimated)
    return (stable_uid("request", request.name), *told)


def requests_of(session: Session) -> Iterator[tuple[int, Request]]:
    """Yield each request of a session's own, with its place."""
    return requests_in(
        (seq, entry)
        for seq, entry in enumerate(session.timeline)
        if isinstance(entry, Message) and entry.usage is not None and entry.own
    )


def held_requests(session: Session) -> Iterator[tuple[int, Request]]:
    """Yield each request of a session with its place, and the copied ones that other sessions may hold by the same name."""
    return requests_in(_held(session))


def held_totals(session: Session) -> Totals:
    """Return the totals of a session with its copied requests, as they count while no session is known that made them."""
    held = [message for _, message in _held(session)]
    if all(message.own for message in held):
        return session.usage
    return totals([message.usage for message in held if message.usage is not None])


def _held(session: Session) -> Iterator[tuple[int, Message]]:
    """Yield the messages whose requests a session holds, each with its place."""
    for seq, entry in enumerate(session.timeline):
        if isinstance(entry, Message) and entry.usage is not None and _holds(session, entry, entry.usage):
            yield seq, entry


def _holds(session: Session, message: Message, usage: Usage) -> bool:
    """Tell whether a request is the session's own, or a copy that other sessions may hold by the same name.

    A guess, and a copied request that is named after this session, have no name that another session would know.
    """
    return message.own or not (usage.estimated or usage.request.startswith(f"{session.native_id}/"))


def requests_in(messages: Iterable[tuple[int, Message]]) -> Iterator[tuple[int, Request]]:
    """Yield each request of messages once, with its place: the last message of a request counts, own ones before copies."""
    found: dict[str, tuple[int, Message, Usage]] = {}
    for seq, entry in messages:
        if entry.usage is not None:
            known = found.get(entry.usage.request)
            if known is None or entry.own or not known[1].own:
                found[entry.usage.request] = (seq, entry, entry.usage)
    for name, (seq, message, usage) in found.items():
        given, cached, written, output, reasoning, tool, total, for_an_hour = [
            figure if figure is None or 0 <= figure <= MOST else stored_figure(figure)
            for figure in _FIGURES(usage)
        ]
        figures = (given, cached, written, output, reasoning, tool, total, for_an_hour)
        about = (_text(message.model), micros(message.at), figures, usage.estimated, not message.own)
        yield seq, Request(name, *about)


def _text(text: str | None) -> str | None:
    return None if text is None else as_text(text)


def usage_json(session: Session) -> str:
    """Return the sums of a session as its files tell them."""
    return encoded(msgspec.to_builtins(session.usage)).decode()


def with_cost(summary: str, cost: str | None) -> str:
    """Return the JSON form of a session with what it cost; between words of a transcript, quotes are escaped."""
    return summary if cost is None else summary.replace('"cost_usd":null', f'"cost_usd":"{cost}"', 1)


def time_or_none(at: datetime | None) -> str | None:
    """Return a time as text that sorts as times do."""
    return None if at is None else time_text(at)
