"""The JSON form: what programs outside get, one object per line."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from retold.model.depth import room_for_depth
from retold.model.problem import Problem
from retold.model.session import Session
from retold.model.steps import AnyStep

_TIMES = (datetime,)


def session_pieces(session: Session) -> Iterator[bytes]:
    """Yield a session with its timeline, on one line, piece by piece: a session may be larger than what should be in memory twice."""
    yield summary_json(session)[:-1] + b',"timeline":['
    for place, entry in enumerate(session.timeline):
        yield (b"," if place else b"") + encoded(as_builtins(entry))
    yield b"]}"


def summary_json(session: Session) -> bytes:
    """Return a session without its timeline, on one line."""
    tree = as_builtins(msgspec.structs.replace(session, timeline=()))
    del tree["timeline"]
    return encoded(tree)


def step_json(step: AnyStep) -> bytes:
    """Return an event, on one line."""
    return encoded(as_builtins(step))


def problem_json(problem: Problem) -> bytes:
    """Return a problem, on one line."""
    return msgspec.json.encode(problem)


def decode_session(data: bytes) -> Session:
    """Return the session that `session_pieces` wrote."""
    return msgspec.json.decode(data, type=Session)


def decode_summary(text: str) -> Session:
    """Return the session that `summary_json` wrote, without what was said in it."""
    return msgspec.json.decode(text[:-1] + ',"timeline":[]}', type=Session)


def as_builtins(value: Any) -> dict[str, Any]:
    """Return a model value as dicts and lists, its times as text."""
    with room_for_depth():
        tree: dict[str, Any] = msgspec.to_builtins(value, builtin_types=_TIMES)
    for holder in (tree, *tree.get("timeline", ())):
        _tell_times(holder)
        for part in holder.get("parts", ()):
            _tell_times(part)
    return tree


def time_text(at: datetime) -> str:
    """Return a time as ISO 8601 in UTC, always to the millisecond: so that texts sort as times do."""
    spec = "microseconds" if at.microsecond % 1000 else "milliseconds"
    return at.astimezone(UTC).isoformat(timespec=spec).removesuffix("+00:00") + "Z"


def encoded(tree: Any) -> bytes:
    """Return JSON without line breaks; integers of any size stay exact."""
    with room_for_depth():
        try:
            return msgspec.json.encode(tree)
        except OverflowError:  # msgspec stops at 64 bits
            return json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode()


def _tell_times(holder: dict[str, Any]) -> None:
    for key in ("at", "started_at", "ended_at", "last_at"):
        at = holder.get(key)
        if type(at) is datetime:
            holder[key] = time_text(at)
