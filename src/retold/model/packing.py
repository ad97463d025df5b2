"""Values of the model as bytes that are read back fast, to the last bit: for caches of ours, never for others."""

import json
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import msgspec

from retold.model.depth import room_for_depth
from retold.model.entries import Entry

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
