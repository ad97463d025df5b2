"""The JSON form of the model for programs, one object per line, and a compact form for the archive."""

import json
import sys
from _thread import allocate_lock
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from retold.model.problem import Problem
from retold.model.session import VERSION, Entry, Session

if TYPE_CHECKING:
    from retold.model.events import AnyStep

FRAMES = 20_000
"""Several frames for every level that a decoder accepts; in this Python, frames of Python take no C stack."""


class _RecursionRoom:
    """The recursion limit, raised while it is needed; all threads share it."""

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


_ROOM = _RecursionRoom()


def allow_deep_values() -> _RecursionRoom:
    """Return a context with a high recursion limit. Decoding stays outside of it, so that the usual limit bounds every value."""
    return _ROOM


def short_repr(value: object, most: int = 60) -> str:
    """Return the start of a value's `repr`, for a message; the value may be nested as deep as can be decoded."""
    return deep_repr(value)[:most]


def deep_repr(value: object) -> str:
    """Return the `repr` of a value that may be nested as deep as can be decoded."""
    with _ROOM:
        return repr(value)


_TIMES = (datetime,)


def encode_session(session: Session) -> Iterator[bytes]:
    """Yield a session with its timeline on one line, in pieces: a large session should not be in memory twice."""
    yield encode_summary(session)[:-1] + b',"timeline":['
    for place, entry in enumerate(session.timeline):
        yield (b"," if place else b"") + encode_tree(to_builtins(entry))
    yield b"]}"


def encode_summary(session: Session) -> bytes:
    """Return a session without its timeline on one line."""
    tree = to_builtins(msgspec.structs.replace(session, timeline=()))
    del tree["timeline"]
    return encode_tree(tree)


def encode_step(step: "AnyStep") -> bytes:
    """Return an event on one line."""
    return encode_tree(to_builtins(step))


def encode_problem(problem: Problem) -> bytes:
    """Return a problem on one line."""
    return msgspec.json.encode(problem)


def decode_session(data: bytes) -> Session:
    """Return the session that `encode_session` wrote."""
    return msgspec.json.decode(data, type=Session)


def decode_summary(text: str) -> Session:
    """Return the session that `encode_summary` wrote, with an empty timeline."""
    return msgspec.json.decode(text[:-1] + ',"timeline":[]}', type=Session)


def to_builtins(value: Any) -> dict[str, Any]:
    """Return a model value as dicts and lists with times as text."""
    with allow_deep_values():
        tree: dict[str, Any] = msgspec.to_builtins(value, builtin_types=_TIMES)
    for holder in (tree, *tree.get("timeline", ())):
        _format_times(holder)
        for part in holder.get("parts", ()):
            _format_times(part)
    return tree


def format_utc(at: datetime) -> str:
    """Return a time as ISO 8601 in UTC, always to the millisecond, so that texts sort like times."""
    spec = "microseconds" if at.microsecond % 1000 else "milliseconds"
    return at.astimezone(UTC).isoformat(timespec=spec).removesuffix("+00:00") + "Z"


def encode_tree(tree: Any) -> bytes:
    """Return JSON without line breaks; integers of any size stay exact."""
    try:
        return msgspec.json.encode(tree)
    except (OverflowError, RecursionError):
        pass  # the usual limits are enough for nearly every value
    with allow_deep_values():
        try:
            return msgspec.json.encode(tree)
        except OverflowError:  # msgspec stops at 64 bits
            return json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode()


def _format_times(holder: dict[str, Any]) -> None:
    for key in ("at", "started_at", "ended_at", "last_at"):
        at = holder.get(key)
        if type(at) is datetime:
            holder[key] = format_utc(at)


def schemas() -> dict[str, dict[str, Any]]:
    """Return each schema by the name of its object."""
    from retold.model.events import AnyStep

    kinds: dict[str, Any] = {"session": Session, "event": AnyStep, "problem": Problem}
    found = {name: _schema(name, kind) for name, kind in kinds.items()}
    return {**found, "summary": _summary(found["session"])}


def _summary(session: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a session without its timeline, as `list` prints it."""
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


class UnpackError(Exception):
    """The bytes are not the output of `pack` or `bundle`."""


class ValuePacker(Generic[T]):
    """Packs values of one kind as bytes."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._decoder: msgspec.msgpack.Decoder[T] = msgspec.msgpack.Decoder(kind)

    def pack(self, value: T) -> bytes:
        """Return a value as bytes; none for one that is too deep, which has to be read from its file instead."""
        with allow_deep_values():
            try:
                return msgspec.msgpack.encode(value)
            except (UnicodeEncodeError, OverflowError):  # half a character, or more than 64 bits
                return _pack_slowly(value)
            except RecursionError:
                return b""

    def unpack(self, data: bytes) -> T:
        """Return the value in bytes; raise UnpackError for other bytes."""
        try:
            if data[:1] == b"{":
                value: T = msgspec.convert(json.loads(data), self._kind)
                return value
            return self._decoder.decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise UnpackError(str(error)) from error


def _pack_slowly(value: object) -> bytes:
    try:
        return json.dumps(msgspec.to_builtins(value)).encode()
    except RecursionError:
        return b""


def bundle(packed: Iterable[bytes]) -> bytes:
    """Return several packed values as one."""
    return msgspec.msgpack.encode(list(packed))


def unbundle(data: bytes) -> list[bytes]:
    """Return the packed values of a bundle; raise UnpackError for other bytes."""
    try:
        return _BUNDLES.decode(data)
    except msgspec.MsgspecError as error:
        raise UnpackError(str(error)) from error


ENTRY_PACKER: ValuePacker[Entry] = ValuePacker(Entry)
