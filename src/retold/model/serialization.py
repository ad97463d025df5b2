"""The JSON form: what programs outside get, one object per line."""

import json
import sys
from _thread import allocate_lock
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Generic, TypeVar

import msgspec

from retold.model.events import AnyStep
from retold.model.problem import Problem
from retold.model.session import VERSION, Entry, Session

FRAMES = 20_000
"""Several frames for every level that a decoder accepts; in this Python, frames of Python take no C stack."""


class _Room:
    """The recursion limit, raised while anybody needs it: it is one for all threads."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._guests = self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._guests:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._before, FRAMES))
            self._guests += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._guests -= 1
            if not self._guests:
                sys.setrecursionlimit(self._before)


_ROOM = _Room()


def room_for_depth() -> _Room:
    """Raise the recursion limit for a while. Decoding stays outside, so that its own limit bounds every value."""
    return _ROOM


def shown_value(value: object, most: int = 60) -> str:
    """Return how a value begins, for a message; it may be nested as deep as can be decoded."""
    return whole_value(value)[:most]


def whole_value(value: object) -> str:
    """Return what `repr` returns of a value, which may be nested as deep as can be decoded."""
    with _ROOM:
        return repr(value)


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


def schemas() -> dict[str, dict[str, Any]]:
    """Return each schema by the name of what it describes."""
    kinds: dict[str, Any] = {"session": Session, "event": AnyStep, "problem": Problem}
    made = {name: _schema(name, kind) for name, kind in kinds.items()}
    return {**made, "summary": _summary(made["session"])}


def _summary(session: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of what `list` tells: a session without its timeline."""
    definition = session["$defs"]["Session"]
    fields = {name: field for name, field in definition["properties"].items() if name != "timeline"}
    required = [name for name in definition["required"] if name != "timeline"]
    shorter = {**definition, "properties": fields, "required": required}
    return {**session, "$id": f"retold/{VERSION}/summary", "$defs": {**session["$defs"], "Session": shorter}}


def _schema(name: str, kind: Any) -> dict[str, Any]:
    schema = msgspec.json.schema(kind)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"retold/{VERSION}/{name}",
        **schema,
    }


T = TypeVar("T")
_BUNDLES = msgspec.msgpack.Decoder(list[bytes])


class Unreadable(Exception):  # noqa: N818 - it says what happened
    """These bytes are not what was packed."""


class Packing(Generic[T]):
    """Packs values of one kind."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._decoder: msgspec.msgpack.Decoder[T] = msgspec.msgpack.Decoder(kind)

    def packed(self, value: T) -> bytes:
        """Return a value as bytes; none for one that is too deep: whoever finds nothing has to read it anew."""
        with room_for_depth():
            try:
                return msgspec.msgpack.encode(value)
            except (UnicodeEncodeError, OverflowError):  # half a character, or more than 64 bits
                return _slowly_packed(value)
            except RecursionError:
                return b""

    def unpacked(self, data: bytes) -> T:
        """Return the value; raises Unreadable."""
        try:
            if data[:1] == b"{":
                found: T = msgspec.convert(json.loads(data), self._kind)
                return found
            return self._decoder.decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise Unreadable(str(error)) from error


def _slowly_packed(value: object) -> bytes:
    try:
        return json.dumps(msgspec.to_builtins(value)).encode()
    except RecursionError:
        return b""


def bundled(packed: Iterable[bytes]) -> bytes:
    """Return several packed values as one."""
    return msgspec.msgpack.encode(list(packed))


def unbundled(data: bytes) -> list[bytes]:
    """Return the packed values of a bundle; raises Unreadable."""
    try:
        return _BUNDLES.decode(data)
    except msgspec.MsgspecError as error:
        raise Unreadable(str(error)) from error


ENTRIES: Packing[Entry] = Packing(Entry)
