"""Settings files of agents: JSON in which comments may stand."""

from pathlib import Path
from typing import Any

from retold.model.problem import Problem, problem
from retold.reading.decoding import BOM, Undecodable, decode
from retold.reading.disk import Disk
from retold.reading.files import FileBytes, printable, read_bytes

MOST = 4 << 20
"""Bytes; what is larger is no settings file."""


def read_settings(path: Path, disk: Disk) -> dict[str, Any] | Problem:
    """Return what a settings file says: nothing, where there is none; a Problem, where it cannot be understood."""
    file = read_bytes(path, disk)
    if not isinstance(file, FileBytes):
        return {} if file.code == "missing-file" else file
    if len(file.data) > MOST:
        return problem("unexpected-shape", "too large for a settings file", printable(path))
    found = decode(without_comments(file.data.removeprefix(BOM)) or b"{}")
    if isinstance(found, Undecodable):
        return problem(found.code, found.message, printable(path))
    if type(found.value) is not dict:
        return problem("unexpected-shape", "the settings are no JSON object", printable(path))
    return found.value


def without_comments(text: bytes) -> bytes:
    """Return JSON without `//` and `/* */`; what stands in a string stays."""
    kept = bytearray()
    place = 0
    while place < len(text):
        end = _end(text, place)
        if text[place : place + 2] not in (b"//", b"/*"):
            kept += text[place:end]
        place = end
    return bytes(kept).strip()


def _end(text: bytes, place: int) -> int:
    """Return where the string, the comment or the run of anything else ends that begins at a place."""
    begin = text[place : place + 2]
    if begin == b"//":
        return _after(text, b"\n", place)
    if begin == b"/*":
        return _after(text, b"*/", place + 2)
    if begin[:1] == b'"':
        return _string_end(text, place + 1)
    stops = [found for mark in (b'"', b"/") if (found := text.find(mark, place + 1)) >= 0]
    return min(stops, default=len(text))


def _string_end(text: bytes, place: int) -> int:
    while (quote := text.find(b'"', place)) >= 0:
        backslashes = quote - len(text[place:quote].rstrip(b"\\")) - place
        if backslashes % 2 == 0:
            return quote + 1
        place = quote + 1
    return len(text)


def _after(text: bytes, mark: bytes, place: int) -> int:
    found = text.find(mark, place)
    return len(text) if found < 0 else found + len(mark)
