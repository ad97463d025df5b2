"""Messages that a program spread character by character over the keys of an object: "0", "1", "2", and so on.

A client of the SDK that got an API stream as one string (2.1.81, `sdk-ts`) wrote `{...string}` in place of a message. The
string is put together again; if it is a stream of server-sent events, it is the message that these events build.

Evidence: `docs/formats/claude.md`, section 3.
"""

import re
from collections.abc import Iterator
from typing import Any, TypeGuard

from retold.agents.claude.raw import Record
from retold.model.serialization import shown_value
from retold.reading.diagnostics import ReaderNotes
from retold.reading.json_decode import Decoded, decode

FIRST = "0"
"""The key that every spread string has, and no other message."""
_GROWN = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
"""The field of a block that grows, by the type of a delta; the deltas have it under the same name."""
_SILENT = ("ping", "content_block_stop", "message_stop")


_HALVES = re.compile(
    rb'("(\d{1,9})": ?"\\u[dD][89abAB][0-9a-fA-F]{2})",( ?"(\d{1,9})": ?")(\\u[dD][c-fC-F][0-9a-fA-F]{2})"'
)


def join_halves(raw: bytes | memoryview) -> bytes | memoryview:
    """Return a line in which both halves of a character stand under the first of their keys.

    JavaScript spreads a string by units of UTF-16: an emoji is two of them, and neither is a character.
    """
    line = bytes(raw)
    if b'"0":' not in line or b"\\u" not in line:
        return raw
    return _HALVES.sub(_joined, line)


def _joined(found: re.Match[bytes]) -> bytes:
    first, number, second_key, second_number, second = found.groups()
    return first + second + b'",' + second_key + b'"' if int(second_number) == int(number) + 1 else found[0]


def gather_message(record: Record, notes: ReaderNotes) -> Record:
    """Return a line whose message is whole; the line itself if nothing in it is spread."""
    message = record.get("message")
    if type(message) is dict and FIRST in message:
        text, rest = _gather(message)
        return record if text is None else {**record, "message": _message(text, rest, notes)}
    if message is None and FIRST in record:
        text, rest = _gather(record)
        return record if text is None else {**rest, "message": _message(text, {}, notes)}
    return record


def is_spread(record: Any) -> bool:
    """Tell whether a line without a type may be a spread message."""
    return type(record) is dict and FIRST in record and record.keys().isdisjoint(("type", "message"))


def _gather(record: Record) -> tuple[str | None, Record]:
    """Return the string that is spread over an object, None if there is none, and the other fields."""
    characters: list[str] = []
    while _is_character(found := record.get(str(len(characters)))):
        characters.append(found)
    rest = {key: value for key, value in record.items() if not key.isdecimal()}
    is_whole = len(rest) + len(characters) == len(record)
    return ("".join(characters), rest) if is_whole else (None, record)


def _is_character(value: Any) -> TypeGuard[str]:
    return type(value) is str and len(value) <= 1


def _message(text: str, rest: Record, notes: ReaderNotes) -> Record:
    """Return the message that a string holds, with the other fields where the string does not tell them."""
    stream = _Stream(notes)
    for event in _events(text):
        stream.take(event)
    if not stream.message:
        notes.kept("unexpected-shape", f"a message of {len(text)} characters, each under a key of its own")
        return {**rest, "content": rest.get("content") or text}
    return {**rest, **stream.message, "content": rest.get("content") or list(stream.blocks())}


def _events(text: str) -> Iterator[Any]:
    """Yield the data of server-sent events: JSON on lines that begin with `data:`."""
    for line in text.split("\n"):  # not `splitlines`: JSON strings may hold other line ends
        if line.startswith("data:"):
            found = decode(line.removeprefix("data:").strip().encode("utf-8", "replace"))
            yield found.value if isinstance(found, Decoded) else None


class _Stream:
    """A message while its events are taken in."""

    def __init__(self, notes: ReaderNotes) -> None:
        self.message: Record = {}
        self._notes = notes
        self._blocks: dict[Any, Record] = {}
        self._inputs: dict[Any, list[str]] = {}
        """Pieces of the JSON that is the input of a call, by the place of its block."""
        self._texts: dict[tuple[Any, str], list[str]] = {}
        """Pieces of what a field of a block says, by the place of the block and the field."""

    def take(self, event: Any) -> None:
        match event:
            case {"type": "message_start", "message": dict(message)}:
                self.message = {**message}
            case {"type": "content_block_start", "index": int(place), "content_block": dict(block)}:
                self._blocks[place] = {**block}
            case {"type": "content_block_delta", "index": int(place), "delta": dict(delta)}:
                self._grow(place, delta)
            case {"type": "message_delta", "delta": dict(delta)}:
                self.message |= delta
                self._count(event.get("usage"))
            case {"type": kind} if kind in _SILENT:
                pass
            case _:
                kind = event.get("type") if type(event) is dict else None
                self._notes.kept("unknown-part", f"an event of type {shown_value(kind)} in a stream")

    def _grow(self, place: int, delta: Record) -> None:
        kind = delta.get("type")
        block = self._blocks.setdefault(place, {"type": "text", "text": ""})
        field = _GROWN.get(kind) if type(kind) is str else None
        if field is not None and type(delta.get(field)) is str:
            before = block.get(field)
            pieces = self._texts.setdefault((place, field), [before] if type(before) is str else [])
            pieces.append(delta[field])
        elif kind == "input_json_delta" and type(delta.get("partial_json")) is str:
            self._inputs.setdefault(place, []).append(delta["partial_json"])
        else:
            self._notes.kept("unknown-part", f"a delta of type {shown_value(kind)} in a stream")

    def _count(self, usage: Any) -> None:
        """Take in the counts at the end of a response: they replace those at its start."""
        if type(usage) is dict:
            before = self.message.get("usage")
            told = {name: count for name, count in usage.items() if count is not None}
            self.message["usage"] = {**(before if type(before) is dict else {}), **told}

    def blocks(self) -> Iterator[Record]:
        """Yield the blocks in their order, calls with their input."""
        for (place, field), pieces in self._texts.items():
            self._blocks[place][field] = "".join(pieces)
        for place, block in sorted(self._blocks.items()):
            given = "".join(self._inputs.get(place, ()))
            found = decode(given.encode("utf-8", "replace")) if given else None
            if found is None:
                yield block
            elif isinstance(found, Decoded) and type(found.value) is dict:
                yield {**block, "input": found.value}
            else:  # the stream broke off within the call
                yield {**block, "input": {"partial_json": given}}
